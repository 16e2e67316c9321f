"""Timers of event loops that are not a run's own, and their clocks, as the code of a run uses them.

A replay answers a recorded call at once, and the timers of such a loop are real. A timer that goes off beside a call
which waits all the time is an event of the run, and the call goes on behind it on replay. One that was set before a
call was over, and goes off after it, is out of order on replay, and so is the loop's clock that is read before a call
and after it: these are marked. Timers that are taken back (a timeout that is kept) say nothing, and timers between two
calls are the same on replay.

Looked at on the classes of the loops, from the first run of that kind in a process on: a loop may be started, and its
timers set, before the run makes its first call on it.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable
from contextvars import Context
from types import FrameType
from typing import TYPE_CHECKING, Any

from agentloom.runtime.places import PACKAGE
from agentloom.runtime.scope import Scope, here
from agentloom.runtime.scope import _scope as _in_context  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from agentloom.runtime.stock import StockCalls

__all__ = ["watch_timers"]

_watched: set[type] = set()


def watch_timers() -> None:
    """From now on runs without a loop of their own are told of timers and of the loop's clock. Done once for each
    kind of loop that is loaded."""
    base = asyncio.BaseEventLoop
    if base not in _watched:
        _watched.add(base)
        _watch(base, "call_at")  # call_later calls it
        _watch_clock(base)
    uvloop: Any = getattr(sys.modules.get("uvloop"), "Loop", None)
    if isinstance(uvloop, type) and uvloop not in _watched:
        _watched.add(uvloop)
        _watch(uvloop, "call_at")
        _watch(uvloop, "call_later")
        _watch_clock(uvloop)


def _watch(loops: type, name: str) -> None:
    original: Callable[..., asyncio.TimerHandle] = getattr(loops, name)

    @functools.wraps(original)
    def set_timer(
        self: Any, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        scope = here() if context is None else context.get(_in_context)
        stock = _of(scope)
        if scope is not None and stock is not None and not _own(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
            callback = _Watched(scope, stock, callback)
        return original(self, when, callback, *args, context=context)

    setattr(loops, name, set_timer)


def _watch_clock(loops: Any) -> None:
    original: Callable[[Any], float] = loops.time

    @functools.wraps(original)
    def time(self: Any) -> float:
        scope = here()
        stock = _of(scope)
        if scope is not None and stock is not None:
            asker = _asker(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
            if asker is not None and scope.session.engine.places.name(asker.f_code) is not None:
                stock.clock_read(scope)
        return original(self)

    loops.time = time


def _of(scope: Scope | None) -> StockCalls | None:
    """Who makes the calls of the run, where it is one in place that is under way."""
    return None if scope is None or scope.session.engine.over else scope.session.stock


class _Watched:
    """What a timer does, for a run that is told when it goes off."""

    __slots__ = ("_call", "_scope", "_since", "_stock", "_where")

    def __init__(self, scope: Scope, stock: StockCalls, call: Callable[..., object]) -> None:
        self._scope = scope
        self._stock = stock
        self._call = call
        self._since = stock.waits
        self._where = scope.session.engine.place(scope)

    def __call__(self, *args: Any) -> object:
        self._stock.timer_fired(self._scope, self._where, self._since)
        return self._call(*args)

    def __repr__(self) -> str:
        return repr(self._call)


def _own(frame: FrameType | None) -> bool:
    """Whether agentloom itself sets the timer."""
    if frame is not None and frame.f_code.co_name == "call_later":
        frame = frame.f_back
    return frame is not None and frame.f_code.co_filename.startswith(PACKAGE)


def _asker(frame: FrameType | None) -> FrameType | None:
    """Who reads the clock: also by way of anyio."""
    while frame is not None and frame.f_code.co_name == "current_time":
        frame = frame.f_back
    return frame
