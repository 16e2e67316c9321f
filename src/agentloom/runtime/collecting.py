"""What finalisers do when the garbage collector comes by is no part of a run: when it comes is nobody's decision.

While it is at work in a run, no event loop is running for the code that it calls: a client that would close itself in
a task (``asyncio.get_running_loop().create_task(self.aclose())``) finds none, as when the loop has ended, and leaves
its connection to its transport's own finaliser. What it reads of clocks and draws is the process's own, or it would
move what the run itself reads. Not meant: objects that go as soon as nobody holds them, which is the
program's doing and the same each time.

The context is left alone on purpose. CPython 3.11 collects in the middle of allocations, also in those of
``contextvars``, which then go on with what they had read before.
"""

# The running loop is set through underscore names of asyncio; there is no public way.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
from asyncio import AbstractEventLoop, events
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import Literal

__all__ = ["COLLECTING", "is_inner", "watch_collector"]

COLLECTING: set[int] = set()
"""Threads in which the collector is at work: their code is no part of a run meanwhile."""

_loops: dict[int, AbstractEventLoop] = {}
"""By thread: the inner loop that was running when the collector came up."""


def is_inner(loop: AbstractEventLoop | None) -> bool:
    """Whether an event loop is the deterministic one of a run (``loop.InnerLoop``)."""
    return hasattr(loop, "fire_timer")


def watch_collector() -> None:
    """From now on inner loops do not run while garbage is collected. Idempotent; cheap.

    Other callbacks of the collector (Hypothesis has one that reads a clock, and puts it first) lie between the two of
    this module, also those that were added since, at either end. Nothing is taken out of their list or moved behind
    others: a collector that is at work in another thread walks it by number, and would leave one out.
    """
    COLLECTING.discard(get_ident())  # whoever begins a run is no finaliser
    if not gc.callbacks or gc.callbacks[0] is not _begins:
        gc.callbacks.insert(0, _begins)
    if type(gc.callbacks[-1]) is not _End:
        gc.callbacks.append(_End())


def _begins(phase: Literal["start", "stop"], _: dict[str, int]) -> None:
    """Called first by the collector, in the thread that it came up in. A second time it changes nothing."""
    if phase == "start":
        COLLECTING.add(get_ident())
        running = events._get_running_loop()
        if running is not None and is_inner(running):
            _loops[get_ident()] = running
            events._set_running_loop(None)


class _End:
    """Called last by the collector, in the thread that it came up in. One behind which another was added does nothing
    any more."""

    def __call__(self, phase: Literal["start", "stop"], _: dict[str, int]) -> None:
        last = next((one for one in reversed(gc.callbacks) if type(one) is _End), self)
        if phase == "stop" and last is self:
            COLLECTING.discard(get_ident())
            loop = _loops.pop(get_ident(), None) if _loops else None
            if loop is not None:
                events._set_running_loop(loop)
