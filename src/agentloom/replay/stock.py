"""Calls of a replayed run without a loop of its own: answered from the trace where they are made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Arrival, Call
from agentloom.runtime.driver_async import AsyncDriver, one_turn

__all__ = ["ReplayInPlace"]

T = TypeVar("T")


class ReplayInPlace:
    """Answers in the recorded order; nothing is performed and nothing waits."""

    def __init__(self, source: ReplaySource) -> None:
        self._source = source

    async def awaited(self, call: Call, perform: Callable[[], Awaitable[object]]) -> Arrival:
        arrival = self._source.inline(call, _never)
        await one_turn()  # other tasks of the loop go on while a call is under way
        return arrival

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        self._source.open_inline(call, _never)

    async def next(self, call: Call) -> Arrival:
        arrival = self._source.next_inline(call)
        await one_turn()
        return arrival

    def leave(self, call: Call) -> None:
        pass

    async def segment(self, driver: AsyncDriver, main: Coroutine[Any, Any, T]) -> T:
        return driver.run_blocking(main)


def _never() -> Any:
    raise RuntimeError("a replay performs nothing")
