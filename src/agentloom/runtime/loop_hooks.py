"""The hooks for async generators, while a driver goes to and fro between an inner loop and host work on another one.

A generator belongs to whoever iterates it first: to the inner loop while that is pumped, else to the loop around.
Setting a thread's hooks tells audit hooks of each of them, and every call goes to and fro. So they are set once, for
as long as the driver goes on, to hooks that look at whose turn it is.
"""

# An event loop and its hooks speak through underscore names of asyncio; there is no public way.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentloom.runtime.loop import InnerLoop

__all__ = ["hold_hooks"]

_identity: Callable[[object], int] = object.__hash__
"""Tells objects apart as ``id`` does, without an event of audit."""


def hold_hooks(loop: InnerLoop) -> Callable[[], None]:
    """Set hooks for this thread that give a generator to ``loop`` while it is pumped, and to the hooks that were set
    before at other times; what sets those again. Does nothing where no loop is around."""
    around = sys.get_asyncgen_hooks()
    firstiter, finalizer = around.firstiter, around.finalizer
    if firstiter is None or finalizer is None or loop.hooked:
        return _nothing
    others: set[int] = (
        set()
    )  # generators of the loop around, by identity; of one that is no more it may be stale

    def begins(generator: Any) -> None:
        if loop._pumping:
            others.discard(_identity(generator))
            loop._asyncgen_firstiter_hook(generator)
        else:
            others.add(_identity(generator))
            firstiter(generator)

    def is_dropped(generator: Any) -> None:
        # By now it is in no weak set any more. It has begun under these hooks, which wrote down whose it is.
        if _identity(generator) in others:
            others.discard(_identity(generator))
            finalizer(generator)
        else:
            loop._asyncgen_finalizer_hook(generator)

    def release() -> None:
        loop.hooked = 0
        sys.set_asyncgen_hooks(firstiter, finalizer)

    sys.set_asyncgen_hooks(begins, is_dropped)
    loop.hooked = get_ident()
    return release


def _nothing() -> None:
    pass
