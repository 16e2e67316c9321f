"""The live source: performs outside of the run, hands over in order of arrival."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any

import pytest

from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.live import LiveSource
from agentloom.runtime.scope import current, entered
from tests.runtime.fakes import WAIT, Bench


class Clock:
    """Time that the test sets, in nanoseconds."""

    def __init__(self) -> None:
        self.at = 1000

    def __call__(self) -> int:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


def call(name: str = "t") -> Call:
    return Call(CallSpec("tool", name, {}), f"root#{name}", "root", 1, "?", "", {}, {}, {})


def on_loop(work: Callable[[LiveSource], Coroutine[Any, Any, Any]], clock: Clock) -> Any:
    async def main() -> Any:
        return await work(LiveSource(asyncio.get_running_loop(), clock))

    return asyncio.run(main())


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_blocking_call_says_when_it_ended_and_how_long_it_took(clock: Clock) -> None:
    source = LiveSource(clock=clock)
    clock.at += 10

    def perform() -> str:
        clock.at += 5
        return "x"

    arrival = source.inline(call(), perform)
    assert (arrival.value, arrival.vt, arrival.dur) == ("x", 15, 5)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), SystemExit(1)])
def test_whatever_is_raised_is_the_outcome(clock: Clock, error: BaseException) -> None:
    def perform() -> None:
        raise error

    arrival = LiveSource(clock=clock).inline(call(), perform)
    assert (arrival.status, arrival.error) == ("error", error)


def test_host_work_is_outside_of_the_run() -> None:
    bench = Bench()
    with entered(bench.session.root):
        assert LiveSource().inline(call(), current).value is None

        async def awaited(source: LiveSource) -> object:
            async def perform() -> object:
                return current()

            source.start(call(), perform)
            await turns()
            arrival = source.poll(None)
            assert arrival is not None
            return arrival.value

        assert on_loop(awaited, Clock()) is None


def test_arrivals_go_first_then_a_timer_that_is_due(clock: Clock) -> None:
    async def work(source: LiveSource) -> None:
        async def perform() -> int:
            await asyncio.sleep(0)
            clock.at += 50
            return 1

        source.start(call(), perform)
        assert source.poll(None) is None
        await turns()
        first, second, third = source.poll(20), source.poll(20), source.poll(60)
        assert first is not None
        assert second is not None
        assert (first.kind, first.vt, second.kind, second.vt, third) == ("outcome", 50, "timer", 50, None)

    on_loop(work, clock)


def test_chunks_wait_until_they_are_wanted(clock: Clock) -> None:
    async def work(source: LiveSource) -> None:
        told: list[int] = []
        source.on_arrival = lambda: told.append(1)
        stream = call()

        async def perform() -> AsyncIterator[object]:
            for number in range(2):
                clock.at += 10
                yield number

        source.open(stream, perform)
        assert source.poll(None) is None  # the run has come to rest: the work begins
        await turns()
        assert (source.poll(None), told) == (None, [])  # read ahead, not delivered
        got: list[object] = []
        for _ in range(3):
            source.want(stream)
            arrival = source.poll(None)
            assert arrival is not None
            got.append((arrival.kind, arrival.value, arrival.offset, arrival.dur))
        assert got == [("chunk", 0, 10, None), ("chunk", 1, 20, None), ("outcome", None, 0, 20)]

    on_loop(work, clock)


def test_a_cancelled_call_is_stopped_and_never_arrives(clock: Clock) -> None:
    async def work(source: LiveSource) -> None:
        stopped: list[str] = []
        waiting, arrived, never = call("waiting"), call("arrived"), call("never")

        async def forever() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.append("stopped")

        async def at_once() -> int:
            return 1

        async def never_begun() -> None:
            stopped.append("begun")

        source.start(waiting, forever)
        source.start(call("first"), at_once)
        source.start(arrived, at_once)
        source.start(never, never_begun)
        never.ended = True
        source.cancel(never, "cancelled")
        first = source.poll(None)
        assert first is not None
        assert (first.kind, first.value) == ("outcome", 1)
        await turns()
        for one in (waiting, arrived):  # the second one is already there
            one.ended = True
            source.cancel(one, "cancelled")
        await turns()
        assert stopped == ["stopped"]
        assert source.poll(None) is None

    on_loop(work, clock)


def test_closing_stops_what_is_under_way_and_is_harmless_twice(clock: Clock) -> None:
    stopped: list[str] = []

    async def work(source: LiveSource) -> None:
        async def forever() -> AsyncIterator[object]:
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                stopped.append("async")

        source.open(call(), forever)
        assert source.poll(None) is None
        await turns()
        source.close()
        source.close()
        await turns()

    on_loop(work, clock)
    source = LiveSource()

    def chunks() -> Iterator[object]:
        try:
            yield 1
        finally:
            stopped.append("sync")

    source.open_inline(call(), chunks)
    source.next_inline(call())
    source.close()
    assert stopped == ["async", "sync"]


def test_what_goes_wrong_in_closing_a_stream_is_logged_and_not_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = LiveSource()

    def chunks() -> Iterator[object]:
        try:
            yield 1
        finally:
            raise OSError("the connection was gone")

    stream = call()
    source.open_inline(stream, chunks)
    source.next_inline(stream)
    source.cancel(stream, "closed")
    assert "closing the stream of root#t failed" in caplog.text


def test_a_call_of_a_strand_arrives_from_its_thread(clock: Clock) -> None:
    source = LiveSource(clock=clock)
    here = threading.Event()
    source.on_arrival = here.set
    source.start_blocking(call(), threading.get_ident)
    assert here.wait(WAIT)
    arrival = source.poll(None)
    assert arrival is not None
    assert arrival.value not in (None, threading.get_ident())


def test_no_more_threads_is_an_error_of_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    source = LiveSource()
    source.start_blocking(call(), int)
    arrival = source.poll(None)
    assert arrival is not None
    assert "new thread" in str(arrival.error)


def test_an_interruption_is_the_next_event() -> None:
    source = LiveSource()
    told: list[int] = []
    source.on_arrival = lambda: told.append(1)
    assert source.interrupt()
    arrival = source.poll(None)
    assert arrival is not None
    assert (arrival.kind, told) == ("cancel", [1])


def test_a_sync_run_has_no_loop_for_awaited_calls() -> None:
    async def perform() -> None: ...

    with pytest.raises(RuntimeError, match="cannot perform awaited calls"):
        LiveSource().start(call(), perform)
