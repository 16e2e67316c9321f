"""Calls of a replayed run without a loop of its own: answered from the trace where they are made."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Arrival, Call
from agentloom.runtime.driver_async import AsyncDriver, one_turn

__all__ = ["MORE", "ReplayInPlace"]

T = TypeVar("T")


MORE = 5.0
"""Seconds that are waited for a cancellation beyond twice the time after which it came when recorded."""


class ReplayInPlace:
    """Answers in the recorded order; nothing is performed, and nothing is waited for but what cancelled a call."""

    def __init__(self, source: ReplaySource) -> None:
        self._source = source
        self.on_cut_off: Callable[[], None] | None = None
        """Called where the agent is to be cancelled, before that is waited for."""

    async def awaited(self, call: Call, perform: Callable[[], Awaitable[object]]) -> Arrival:
        await self._cut_off(call)
        arrival = self._source.inline(call, _never)
        await one_turn()  # other tasks of the loop go on while a call is under way
        return arrival

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        self._source.open_inline(call, _never)

    async def next(self, call: Call) -> Arrival:
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


def _never() -> Any:
    raise RuntimeError("a replay performs nothing")
