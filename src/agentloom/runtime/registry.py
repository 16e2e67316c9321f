"""The user types that the running program declared, for all its runs."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import TypeVar

from agentloom.format.values import Types

__all__ = ["TYPES", "declare_annotations", "register"]

TYPES = Types()
"""One registry for the process: a type name means the same in every run of a program."""

C = TypeVar("C", bound=type)


def register(cls: C) -> C:
    """Declare a user type (dataclass, pydantic model, Enum, NamedTuple, exception), so that its values can be
    recorded and come back exactly. Usable as a decorator."""
    TYPES.register(cls)
    return cls


def declare_annotations(function: Callable[..., object]) -> None:
    """Declare the types in a function's annotations. Names that cannot be resolved yet are left out: a value of such
    a type is then refused when recorded, with the remedy to register it."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        hints = {
            name: annotation
            for name, annotation in inspect.get_annotations(function).items()
            if not isinstance(annotation, str)
        }
    for annotation in hints.values():
        TYPES.declare(annotation)
