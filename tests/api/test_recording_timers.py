"""Timers of a stock event loop, and its clock, beside the calls of a block: events, or marked where time decided."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

import agentloom
from agentloom import DivergenceError, Trace, record, replaying, tool
from agentloom.runtime.scope import current
from agentloom.runtime.stock import SETTLING, StockCalls
from agentloom.store import MemoryStore
from tests.api.recorded_programs import in_loop, look

_LONG = 60.0
_SHORT = 0.001
_events: list[asyncio.Event] = []


@tool(effect="read")
async def until_set() -> str:
    """Ends some turns of the loop after it may: a timer of the run and its end are two moments."""
    await _events[-1].wait()
    for _ in range(3 * SETTLING):
        await asyncio.sleep(0)
    return "done"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def gaps(trace: Trace) -> list[Any]:
    return [entry["why"] for entry in trace.journal.entries if entry["kind"] == "gap"]


def stock_calls() -> StockCalls:
    scope = current()
    assert scope is not None
    assert scope.session.stock is not None
    return scope.session.stock


def opens() -> Callable[[], None]:
    _events.append(asyncio.Event())
    return _events[-1].set


async def sleep_beside() -> None:
    release = opens()
    task = asyncio.create_task(until_set())
    await asyncio.sleep(_SHORT)
    release()
    await task


async def shielded() -> None:
    release = opens()
    task = asyncio.create_task(until_set())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(task), _SHORT)
    release()
    await task


async def waited_with_a_timeout() -> None:
    release = opens()
    task = asyncio.create_task(until_set())
    done, _ = await asyncio.wait({task}, timeout=_SHORT)
    assert not done
    release()
    await task


async def polled() -> None:
    release = opens()
    task = asyncio.create_task(until_set())
    while not task.done():
        await asyncio.sleep(_SHORT)
        release()


async def call_later() -> None:
    asyncio.get_running_loop().call_later(_SHORT, opens())
    await until_set()


async def in_anyio() -> None:
    release = opens()
    task = asyncio.create_task(until_set())
    with anyio.move_on_after(_SHORT):
        await asyncio.shield(task)
    release()
    await task


async def deadline_set_before_and_over_after() -> None:
    """The timer goes off when no call waits, but a call took a part of its time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            await look(1)
            await asyncio.sleep(_LONG)


async def set_meanwhile() -> None:
    release = opens()
    task = asyncio.create_task(until_set())
    while not stock_calls().waits[0]:  # noqa: ASYNC110 - until the call waits
        await asyncio.sleep(0)
    timer = asyncio.create_task(asyncio.sleep(_SHORT))
    await asyncio.sleep(0)
    release()
    await task
    await timer


@pytest.mark.parametrize("work", [sleep_beside, shielded, waited_with_a_timeout, call_later, in_anyio])
@in_loop
async def test_a_timer_beside_a_call_that_waits_all_the_time_is_an_event(
    store: MemoryStore, caplog: pytest.LogCaptureFixture, work: Callable[[], Awaitable[None]]
) -> None:
    async def main(where: Any = None) -> Any:
        with record("beside", store=where) as run:
            await work()
            run.output = await look(1)
        return run

    with caplog.at_level(logging.WARNING, "agentloom.recording"):
        run = await main(store)
    assert not gaps(run.trace)
    assert not caplog.records
    assert run.trace.verify().complete
    kinds = [entry["kind"] for entry in run.trace.journal.entries]
    assert kinds == ["start", "request", "timer", "outcome", "request", "outcome", "end"]
    for _ in range(5):
        with replaying(run.trace):
            assert (await main()).report.verdict == "identical"


@in_loop
async def test_several_timers_beside_a_call_replay_in_their_order(store: MemoryStore) -> None:
    async def main(where: Any = None) -> Any:
        seen: list[Any] = []

        async def after(seconds: float, what: int) -> None:
            await asyncio.sleep(seconds)
            seen.append(what)
            if what == 3:
                release()

        release = opens()
        with record("several", store=where) as run:
            await asyncio.gather(until_set(), after(0.5, 3), after(0.02, 1), after(0.25, 2))
            run.output = [seen, await look(1)]
        return run

    run = await main(store)
    assert run.trace.output == [[1, 2, 3], 2]
    assert not gaps(run.trace)
    for _ in range(2):
        with replaying(run.trace):
            assert (await main()).report.verdict == "identical"


@in_loop
async def test_a_timer_at_the_moment_at_which_a_call_ends_is_marked(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    async def at_once() -> None:
        await _events[-1].wait()

    with caplog.at_level(logging.WARNING, "agentloom.recording"), record("moment", store=store) as run:
        asyncio.get_running_loop().call_later(_SHORT, opens())
        await at_once()
    assert gaps(run.trace) == ["stock-loop"]
    assert "went off at the moment at which a call ended" in caplog.text


@in_loop
async def test_a_replay_on_which_no_timer_goes_off_says_so(store: MemoryStore) -> None:
    with record("beside", store=store) as run:
        await sleep_beside()

    opens()
    with replaying(run.trace), pytest.raises(DivergenceError, match="when recorded a timer came first"):
        async with record("beside"):
            await until_set()


@pytest.mark.parametrize("work", [polled, deadline_set_before_and_over_after, set_meanwhile])
@in_loop
async def test_a_timer_beside_a_call_that_ends_meanwhile_is_marked(
    store: MemoryStore, caplog: pytest.LogCaptureFixture, work: Callable[[], Awaitable[None]]
) -> None:
    with caplog.at_level(logging.WARNING, "agentloom.recording"), record("beside", store=store) as run:
        await work()
    assert gaps(run.trace) == ["stock-loop"]
    (said,) = [one.getMessage() for one in caplog.records]
    assert "a timer of the event loop (asyncio.sleep, a timeout) ran beside a call" in said
    assert "not replayable past tests/api/test_recording_timers.py:" in said
    assert "await agentloom.record(...)" in said
    assert not run.trace.verify().complete


async def one_after_the_other() -> None:
    await asyncio.sleep(_SHORT)
    await look(1)
    await asyncio.sleep(_SHORT)
    await look(2)
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(asyncio.get_running_loop().create_future(), _SHORT)
    await look(3)


async def timeouts_that_are_kept() -> None:
    async with asyncio.timeout(_LONG):
        await look(1)
    assert await asyncio.wait_for(look(2), _LONG) == 4
    with anyio.fail_after(_LONG):
        await look(3)
    await asyncio.wait([asyncio.create_task(look(4))], timeout=_LONG)
    handle = asyncio.get_running_loop().call_later(_LONG, print)
    await look(5)
    handle.cancel()


async def of_a_recorded_coroutine() -> None:
    async def inner() -> None:
        await asyncio.gather(asyncio.sleep(_SHORT), look(1))

    await record(inner())


async def of_the_call_itself() -> None:
    @tool
    async def slow() -> None:
        await asyncio.sleep(_SHORT)

    await slow()
    await agentloom.sleep(_SHORT)


@pytest.mark.parametrize(
    "work", [one_after_the_other, timeouts_that_are_kept, of_a_recorded_coroutine, of_the_call_itself]
)
@in_loop
async def test_timers_that_do_not_overlap_with_calls_are_not(
    store: MemoryStore, work: Callable[[], Awaitable[None]]
) -> None:
    with record("apart", store=store) as run:
        await work()
    assert not gaps(run.trace)
    with replaying(run.trace), record("apart") as run:
        await work()
    assert run.report is not None
    assert run.report.verdict == "identical"


@in_loop
async def test_timers_of_other_code_on_the_loop_are_none_of_the_run(store: MemoryStore) -> None:
    async def beside() -> None:
        for _ in range(10_000):
            await asyncio.sleep(_SHORT)

    other = asyncio.create_task(beside())
    with record("run", store=store) as run:
        release = opens()
        asyncio.get_running_loop().call_later(_SHORT, release, context=contextvars.Context())
        await until_set()
    other.cancel()
    assert not gaps(run.trace)


def test_a_loop_that_sync_code_starts(store: MemoryStore) -> None:
    with record("sync", store=store) as run:
        asyncio.run(deadline_set_before_and_over_after())
    assert gaps(run.trace) == ["stock-loop"]


@in_loop
async def test_the_loops_clock_read_before_a_call_and_after_it_is_marked(
    store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "agentloom.recording"), record("clock", store=store) as run:
        end = asyncio.get_running_loop().time() + _SHORT
        while asyncio.get_running_loop().time() < end:
            await look(1)
    assert gaps(run.trace) == ["stock-loop"]
    (said,) = [one.getMessage() for one in caplog.records]
    assert "loop.time() was read before a call and after it" in said
    assert "time.monotonic()" in said


@in_loop
async def test_the_loops_clock_read_by_anyio(store: MemoryStore) -> None:
    with record("clock", store=store) as run:
        before = anyio.current_time()
        await look(1)
        run.output = anyio.current_time() > before
    assert gaps(run.trace) == ["stock-loop"]


@in_loop
async def test_the_loops_clock_between_calls_is_not(store: MemoryStore) -> None:
    with record("clock", store=store) as run:
        loop = asyncio.get_running_loop()
        await look(1)
        began = loop.time()
        await asyncio.sleep(_SHORT)
        assert loop.time() > began
        await look(2)
    assert not gaps(run.trace)


@in_loop
async def test_a_replay_marks_nothing(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    with record("beside", store=store) as run:
        await deadline_set_before_and_over_after()
    with caplog.at_level(logging.WARNING, "agentloom.recording"):
        caplog.clear()
        with replaying(run.trace), record("beside"):
            await deadline_set_before_and_over_after()
    assert not caplog.records


def test_uvloop_too(store: MemoryStore) -> None:
    uvloop = pytest.importorskip("uvloop")

    async def main() -> Any:
        with record("uv", store=store) as run:
            await look(0)
            await sleep_beside()
        return run

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        trace = runner.run(main()).trace
    assert not gaps(trace)
    assert "timer" in [entry["kind"] for entry in trace.journal.entries]
