"""Values in context variables for the time of a block, such that the collector may come by at any moment.

CPython 3.11 collects in the middle of allocations. ``ContextVar.reset`` takes a variable that was not there before out
of the context, and allocates meanwhile: a finaliser or a callback of the collector that asks for the variable then
makes CPython remember the value that is being taken out, without holding it. Whoever asks next is given it, and later
the memory of something else. ``set`` remembers the new value last, and is safe; so is a reset to a value.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TypeVar

__all__ = ["put"]

T = TypeVar("T")


def put(variable: ContextVar[T], value: T) -> Token[T]:
    """As ``variable.set(value)``; a reset to the token leaves in the context what ``variable.get()`` gave before, also
    where that was the default."""
    variable.set(variable.get())
    return variable.set(value)
