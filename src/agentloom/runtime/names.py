"""Names that users give: of agents, tools and templates. They stand in every trace, and runs are found by them."""

from __future__ import annotations

from collections.abc import Callable

from agentloom.format.words import kind_of
from agentloom.runtime.sendable import half_pair

__all__ = ["function_name", "name_of", "refuse_uncallable"]


def name_of(what: str, given: object) -> str:
    """``given`` as the name of ``what`` ("an agent"). ``TypeError`` where it is no text, ``ValueError`` where it is
    blank or has half of a surrogate pair, which cannot be written."""
    if not isinstance(given, str):
        raise TypeError(f"name={given!r}: the name of {what} is a text, not {kind_of(given)}")
    if not given.strip() or half_pair(given) is not None:
        raise ValueError(f"name={given!r}: the name of {what} is a text that it can be listed under")
    return given


def refuse_uncallable(what: str, function: object) -> None:
    """``TypeError`` where ``what`` cannot be made of ``function``."""
    if not callable(function):
        raise TypeError(f"{what} is made of a function, not of {kind_of(function)}")


def function_name(what: str, function: Callable[..., object], name: object = None) -> str:
    """The name of ``what`` made of ``function``: ``name`` where one is given, else the function's own. ``TypeError``
    where ``function`` cannot be called, or has no name of its own."""
    refuse_uncallable(what, function)
    if name is not None:
        return name_of(what, name)
    own = getattr(function, "__name__", None) or getattr(function, "__qualname__", None)
    if not isinstance(own, str):
        raise TypeError(f"{kind_of(function)} has no name of its own: give {what} one with name=")
    return own
