"""What the adapters of frameworks ask of the objects that frameworks hand to them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agentloom.errors import ValueRefused
from agentloom.format.guards import is_list
from agentloom.format.values import encode
from agentloom.runtime.registry import TYPES

__all__ = ["can_be_kept", "declare_named", "held_by"]


def can_be_kept(value: Any) -> bool:
    """Whether ``value`` has an exact form in a trace."""
    try:
        encode(value, TYPES)
    except ValueRefused:
        return False
    return True


def declare_named(module: Any, names: Iterable[str]) -> None:
    """Declare the classes of those names in a framework's module, so that values of them come back as what they are.
    Not every release has all of them."""
    for name in names:
        cls = getattr(module, name, None)
        if isinstance(cls, type):
            TYPES.declare(cls)


def held_by(owner: Any) -> list[Any]:
    """What an object is made of: the values of its attributes, and what the lists among them hold."""
    held: list[Any] = list(owner.__dict__.values())
    for one in list(held):
        if is_list(one):
            held.extend(one)
    return held
