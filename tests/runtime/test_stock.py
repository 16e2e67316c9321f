"""What performs the calls of a run without a loop of its own: context, order, cancellation."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from agentloom import record
from agentloom.runtime.boundary import call_async, open_async
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.scope import current
from agentloom.runtime.stock import SETTLING
from agentloom.store import MemoryStore

marked: contextvars.ContextVar[str] = contextvars.ContextVar("marked", default="")


def spec(name: str = "x", *, stream: bool = False) -> CallSpec:
    return CallSpec("http", name, {}, stream=stream)


def run(work: Any) -> Any:
    async def main() -> Any:
        async with record("stock", store=MemoryStore()) as block:
            block.output = await work()
        return block.trace

    return asyncio.run(main())


def test_work_is_done_outside_of_the_run_with_its_context() -> None:
    async def perform(_: object) -> object:
        await asyncio.sleep(0)
        return [current() is None, marked.get()]

    async def work() -> object:
        marked.set("here")
        return await call_async(spec(), perform)

    assert run(work).output == [True, "here"]


def test_work_that_is_cancelled_by_itself_is_an_error_of_the_call() -> None:
    async def perform(_: object) -> object:
        raise asyncio.CancelledError("by itself")

    async def work() -> object:
        with pytest.raises(asyncio.CancelledError):
            await call_async(spec(), perform)
        return "went on"

    trace = run(work)
    assert trace.output == "went on"
    assert trace.calls[0].status == "error"


def test_one_task_reads_a_stream_from_its_beginning_to_its_end() -> None:
    seen: list[Any] = []

    async def perform(_: object) -> AsyncIterator[object]:
        seen.append(asyncio.current_task())
        async with asyncio.timeout(30):  # has to be left by the task that entered it
            for number in range(3):
                yield number
                await asyncio.sleep(0)
        seen.append(asyncio.current_task())

    async def work() -> object:
        return [value async for value in open_async(spec(stream=True), perform)]

    assert run(work).output == [0, 1, 2]
    assert seen[0] is seen[1]


def test_of_two_recorded_coroutines_in_two_threads_one_has_the_deterministic_loop() -> None:
    """The other one takes it between the question whether there is one and the answer, if the two are not one step."""

    class Lock:
        """Before it is had for the first time, another thread has been here."""

        def __init__(self, stock: Any) -> None:
            self.stock, self.lock, self.first = stock, stock._lock, True

        def __enter__(self) -> None:
            if self.first:
                self.first, self.stock._segment = False, True
            self.lock.acquire()

        def __exit__(self, *_: object) -> None:
            self.lock.release()

    async def loops() -> object:
        return type(asyncio.get_running_loop())

    async def work() -> object:
        scope = current()
        assert scope is not None
        stock = scope.session.stock
        assert stock is not None
        cast(Any, stock)._lock = Lock(stock)
        return [type(asyncio.get_running_loop()) is await record(loops()), stock._segment]

    trace = run(work)
    assert trace.output == [True, True]
    assert [entry["why"] for entry in trace.journal.entries if entry["kind"] == "gap"] == ["stock-loop"]


def test_what_a_timer_sets_going_is_waited_for_from_the_last_one_on() -> None:
    seen: list[int] = []

    async def work() -> None:
        scope = current()
        assert scope is not None
        stock: Any = scope.session.stock
        loop = asyncio.get_running_loop()

        def look(turns: int) -> None:
            seen.append(stock._settling)
            if turns:
                loop.call_soon(look, turns - 1)

        with stock.waiting(scope):
            stock.timer_fired(scope, "here", stock.waits)
            loop.call_soon(look, 2 * SETTLING)  # sees what a call sees that ends in between
            for _ in range(SETTLING // 2):
                await asyncio.sleep(0)
            stock.timer_fired(scope, "here", stock.waits)
            for _ in range(2 * SETTLING):
                await asyncio.sleep(0)

    run(work)
    first = seen.index(0)
    assert first >= SETTLING + SETTLING // 2 - 1, seen
    assert not any(seen[first:]), seen


def test_a_stream_that_is_left_is_closed() -> None:
    closed = asyncio.Event()

    async def perform(_: object) -> AsyncIterator[object]:
        try:
            yield 1
            await asyncio.sleep(30)
        finally:
            closed.set()

    async def work() -> object:
        stream = open_async(spec(stream=True), perform)
        async with stream:
            value = await anext(stream)
        await closed.wait()
        return value

    trace = run(work)
    assert trace.output == 1
    assert trace.calls[0].status == "closed"


def test_an_error_of_a_stream_comes_after_its_chunks() -> None:
    async def perform(_: object) -> AsyncIterator[object]:
        yield 1
        raise ValueError("torn")

    async def work() -> object:
        got: list[object] = []
        with pytest.raises(ValueError, match="torn"):  # noqa: PT012
            async for value in open_async(spec(stream=True), perform):
                got.append(value)  # noqa: PERF401 - what came before the error counts
        return got

    assert run(work).output == [1]


def test_reading_and_calling_in_one_task_is_no_overlap() -> None:
    async def perform(_: object) -> AsyncIterator[object]:
        yield 1
        yield 2

    async def one(_: object) -> object:
        return 3

    async def work() -> object:
        got: list[object] = []
        async for value in open_async(spec(stream=True), perform):
            got += [value, await call_async(spec(), one)]
        return got

    trace = run(work)
    assert trace.output == [1, 3, 2, 3]
    assert not [entry for entry in trace.journal.entries if entry["kind"] == "gap"]
