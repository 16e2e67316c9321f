"""Calls of a replayed run without a loop of its own: answered from the trace where they are made."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from asyncio import events
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from agentloom.errors import NotRecorded
from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.driver_async import AsyncDriver, one_turn
from agentloom.runtime.stock import SETTLING
from agentloom.runtime.stock_timers import watch_timers

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["MORE", "ReplayInPlace"]

T = TypeVar("T")


MORE = 5.0
"""Seconds that are waited for a cancellation, or for the end of the run, beyond twice the time after which it came when
recorded."""

_TURNS = 100  # of the loop, before others of the run are waited for in real time: they may sleep
_PAUSE = 0.005
_PATIENCE = 0.25


class ReplayInPlace:
    """Answers in the recorded order; nothing is performed, and nothing is waited for but what cancelled a call."""

    live = False

    def __init__(self, source: ReplaySource) -> None:
        watch_timers()
        self._source = source
        self.on_cut_off: Callable[[], None] | None = None
        """Called where the agent is to be cancelled, before that is waited for."""
        self._over = threading.Event()
        self._until_over: list[asyncio.Future[None]] = []

    def turn_inline(self, spec: CallSpec) -> None:
        self._wait_for_its_turn(None, spec)

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        self._wait_for_its_turn(call, call.spec)
        self._wait_for_the_end(call)
        return self._source.inline(call, _never)

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        self._source.open_inline(call, _never)

    def next_inline(self, call: Call) -> Arrival:
        self._wait_for_its_turn(call, call.spec)
        self._wait_for_the_end(call)
        return self._source.next_inline(call)

    async def turn(self, spec: CallSpec) -> None:
        await self._until_its_turn(None, spec)

    async def awaited(self, call: Call, perform: Callable[[], Awaitable[object]]) -> Arrival:
        await self._until_its_turn(call, call.spec)
        await self._end(call)
        await self._cut_off(call)
        arrival = self._source.inline(call, _never)
        await one_turn()  # other tasks of the loop go on while a call is under way
        return arrival

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        self._source.open_inline(call, _never)

    async def next(self, call: Call) -> Arrival:
        await self._until_its_turn(call, call.spec)
        await self._end(call)
        await self._cut_off(call)
        arrival = self._source.next_inline(call)
        await one_turn()
        return arrival

    def leave(self, call: Call) -> None:
        pass

    async def segment(self, driver: AsyncDriver, main: Coroutine[Any, Any, T]) -> T:
        source = self._source
        began = source.position
        try:
            return driver.run_blocking(main)
        finally:
            after = source.cancelled_since(began)
            if after is not None and source.finding is None:
                with contextlib.suppress(
                    asyncio.CancelledError
                ):  # the one that was recorded, and taken by the code
                    await self._until_cancelled(None, after)

    def fired(self) -> Arrival | None:
        return self._source.fired()

    def leaves(self, call: Call) -> bool:
        return self._source.left_behind(call) is not None

    def ended(self, session: Session, left: Sequence[Call]) -> None:
        self._over.set()
        for future in self._until_over:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                future.get_loop().call_soon_threadsafe(_wake, future)

    def late(self, call: Call, session: Session) -> None:
        raise _after_the_end(call)

    # Where other tasks and threads of the run did something first when recorded, they are let go on: as long as they
    # get on, and twice as long as it took. Then it is told as it is.

    async def _until_its_turn(self, call: Call | None, spec: CallSpec) -> None:
        source = self._source
        at, turns, waited = source.position, 0, 0.0
        while self._holds(call, spec):
            if source.position != at:
                at, turns, waited = source.position, 0, 0.0
            if turns < _TURNS:
                turns += 1
                await one_turn()
            elif waited > 2 * source.until_next() + _PATIENCE:
                return
            else:
                waited += _PAUSE
                await _pause()
        if call is not None and source.follows_another(call):
            for _ in range(SETTLING):
                await one_turn()

    def _wait_for_its_turn(self, call: Call | None, spec: CallSpec) -> None:
        if events._get_running_loop() is not None:  # pyright: ignore[reportPrivateUsage]
            return  # nobody else can go on while this thread waits
        source = self._source
        at, waited = source.position, 0.0
        while self._holds(call, spec):
            if source.position != at:
                at, waited = source.position, 0.0
            if waited > 2 * source.until_next() + _PATIENCE:
                return
            waited += _PAUSE
            self._over.wait(_PAUSE)

    def _holds(self, call: Call | None, spec: CallSpec) -> bool:
        source = self._source
        return source.comes_first(call, spec) and (call is None or source.left_behind(call) is None)

    # What was under way when the recorded run ended waits until this one does: then it is known that nobody in the run
    # waits for it.

    def _wait_for_the_end(self, call: Call) -> None:
        after = self._source.left_behind(call)
        if after is None:
            return
        limit = 2 * after + MORE
        if not self._over.wait(limit):
            raise self._source.not_left_behind(call)
        raise _after_the_end(call)

    async def _end(self, call: Call) -> None:
        after = self._source.left_behind(call)
        if after is None:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._until_over.append(future)
        if not self._over.is_set():
            await asyncio.wait([future], timeout=2 * after + MORE)
        if not self._over.is_set():
            raise self._source.not_left_behind(call)
        raise _after_the_end(call)

    async def _cut_off(self, call: Call) -> None:
        """Where the agent cancelled the call when recorded: wait until it does so."""
        after = self._source.cut_off(call)
        if after is not None:
            await self._until_cancelled(call, after)

    async def _until_cancelled(self, call: Call | None, after: float) -> None:
        """What cancels is code around the call, in real time: a timeout, a race. Its cancellation is raised."""
        if self.on_cut_off is not None:
            self.on_cut_off()
        limit = 2 * after + MORE
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=limit)
        raise self._source.not_cancelled(call, limit)


async def _pause() -> None:
    """Wait a little in real time, by a timer that is none of the run's."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    handle = loop.call_later(_PAUSE, _wake, future, context=contextvars.Context())
    try:
        await future
    finally:
        handle.cancel()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _after_the_end(call: Call) -> NotRecorded:
    why = "came after the recorded run had ended"
    return NotRecorded(
        f"what {call.type} {call.name} gave {why}, and is not in the trace",
        hint="await it before the run ends, and record again",
        why=why,
    )


def _never() -> Any:
    raise RuntimeError("a replay performs nothing")
