"""The async driver: one event at a time, cancellation from outside, what is left over at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import agentloom
from agentloom import Agent, Trace, agent
from agentloom.errors import ControlFlow, Diverged, StoreFailed
from agentloom.runtime.calls import Arrival
from agentloom.runtime.driver_async import AsyncDriver
from agentloom.store import MemoryStore
from tests.runtime.fakes import Bench, fails, kinds_of, recorded

LOG: list[object] = []


@pytest.fixture(autouse=True)
def empty() -> None:
    LOG.clear()


def replays(which: Agent[..., Any], store: MemoryStore) -> Trace:
    trace = Trace.open("last", store)
    report = trace.replay(agent=which, check=False)
    assert report.verdict == "identical", str(report)
    return trace


# -- order


def test_an_arrival_goes_before_a_timer_that_is_due_at_the_same_time() -> None:
    bench = Bench()
    driver = AsyncDriver(bench.session)
    bench.source.coming.append(Arrival("timer", vt=10))
    seen: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(5e-9, seen.append, "timer")
        await asyncio.sleep(0)
        seen.append("ready")
        await asyncio.sleep(10e-9)

    bench.source.coming.append(Arrival("timer", vt=10))
    driver.run_blocking(main())
    assert seen == ["ready", "timer"]
    assert bench.kinds == ["start", "timer", "timer"]


def test_live_the_earlier_of_arrival_and_timer_wins_and_stays_the_winner() -> None:
    @agent
    async def race(pause: float, limit: float) -> str:
        try:
            async with asyncio.timeout(limit):
                await agentloom.sleep(pause)
        except TimeoutError:
            return "timer"
        return "arrival"

    assert recorded(race, 0, 60).output == "arrival"
    assert recorded(race, 60, 0.005).output == "timer"


def test_a_program_that_polls_is_let_go_on_and_how_often_is_recorded() -> None:
    @agent
    async def polls() -> int:
        task = asyncio.ensure_future(agentloom.sleep(0.001))
        rounds = 0
        while not task.done():
            rounds += 1
            await asyncio.sleep(0)
        return rounds

    trace = recorded(polls)
    assert trace.output > 1
    assert "turn" in kinds_of(trace)


# -- cancellation from outside


@agent
async def waits(stubborn: bool) -> str:
    try:
        await agentloom.sleep(60)
    except asyncio.CancelledError:
        LOG.append("cancelled")
        await agentloom.note("clean-up")
        if not stubborn:
            raise
    return "went on"


async def cancelled_after(which: Agent[..., Any], store: MemoryStore, *args: object, times: int = 1) -> Any:
    task = asyncio.create_task(which.arun(*args, store=store))
    while not task.done() and not store.runs():  # noqa: ASYNC110 - nobody sets an event
        await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)
    for _ in range(times):
        task.cancel()
    return await task


def test_a_cancellation_from_outside_is_delivered_once_recorded_and_replayed() -> None:
    store = MemoryStore()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_after(waits, store, False, times=2))
    assert LOG == ["cancelled"]
    trace = replays(waits, store)
    assert trace.status == "cancelled"
    assert kinds_of(trace).count("cancel") == 1
    assert trace.calls[0].status == "cancelled"


def test_an_agent_may_answer_a_cancellation_and_go_on() -> None:
    store = MemoryStore()
    assert asyncio.run(cancelled_after(waits, store, True)).output == "went on"
    assert replays(waits, store).status == "completed"


@agent
async def leaves_clean_up() -> str:
    async def worker() -> None:
        try:
            await agentloom.sleep(60)
        finally:
            try:
                await agentloom.sleep(60)  # a clean-up that takes long
            finally:
                await agentloom.note("cleaned")

    task = asyncio.create_task(worker())
    await asyncio.sleep(0)
    LOG.append(task.done())
    return "done"


def test_a_cancellation_that_comes_when_the_agent_has_returned_ends_the_clean_up_and_is_seen() -> None:
    store = MemoryStore()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_after(leaves_clean_up, store))
    trace = replays(leaves_clean_up, store)
    assert (trace.status, trace.output) == ("completed", "done")
    assert [call.status for call in trace.calls] == ["cancelled", "cancelled"]
    assert kinds_of(trace)[-2:] == ["note", "end"]


def test_a_timeout_around_a_run_is_a_timeout() -> None:
    async def service() -> None:
        async with asyncio.timeout(0.01):
            await waits.arun(False, store=MemoryStore())

    with pytest.raises(TimeoutError):
        asyncio.run(service())


# -- the end


def test_tasks_left_over_are_cancelled_clean_up_and_generators_are_closed() -> None:
    @agent
    async def careless() -> str:
        async def worker(name: str) -> None:
            try:
                await agentloom.sleep(60)
            finally:
                await agentloom.note(name)
                asyncio.ensure_future(agentloom.sleep(60))  # noqa: RUF006 - one more, from the clean-up

        async def numbers() -> AsyncIterator[int]:
            try:
                yield 1
            finally:
                await agentloom.note("generator")

        for name in "ab":
            asyncio.create_task(worker(name))  # noqa: RUF006
        kept = numbers()
        LOG.append(kept)  # alive until the end
        await anext(kept)
        return "done"

    trace = recorded(careless)
    notes = [trace.journal.tree(str(e["val"])) for e in trace.journal.entries if e["kind"] == "note"]
    assert notes == ["a", "b", "generator"]
    assert kinds_of(trace)[-1] == "end"


@pytest.mark.parametrize("leave", [SystemExit, KeyboardInterrupt])
def test_an_exit_of_the_agent_lets_the_other_tasks_clean_up(leave: type[BaseException]) -> None:
    @agent
    async def leaving() -> None:
        async def worker() -> None:
            try:
                await agentloom.sleep(60)
            finally:
                await agentloom.note("clean")

        task = asyncio.create_task(worker())
        await agentloom.sleep(0)
        LOG.append(task.done())
        raise leave(3)

    error, trace = fails(leaving)
    assert type(error) is leave
    assert kinds_of(trace)[-2:] == ["note", "end"]
    assert [call.status for call in trace.calls] == ["ok", "cancelled"]


def test_wrong_arguments_fail_as_they_do_without_agentloom_and_leave_no_loop_open() -> None:
    @agent
    async def takes(one: int) -> int:
        return one

    error, trace = fails(takes)
    assert isinstance(error, TypeError)
    assert trace.status == "failed"


@pytest.mark.parametrize("failure", [Diverged("now"), StoreFailed("full")])
def test_after_a_verdict_clean_up_runs_without_events_and_without_host_calls(failure: BaseException) -> None:
    bench = Bench()
    driver = AsyncDriver(bench.session)

    async def worker() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            LOG.append("clean")
            await agentloom.sleep(0)
            LOG.append("never")

    async def swallows() -> str:
        task = asyncio.ensure_future(worker())
        await asyncio.sleep(0)
        bench.source.raises = failure
        try:
            await agentloom.sleep(0)
        except BaseException:  # noqa: BLE001 - what careless agents do
            LOG.append(task.done())
        return "fine"

    with pytest.raises(ControlFlow):
        driver.run_blocking(swallows())
    assert LOG == [False, "clean"]
    assert bench.engine.failure is failure
    assert driver.loop.is_closed()
    assert bench.source.closed == 1


def test_a_source_with_nothing_to_give_is_a_fault_that_is_said() -> None:
    bench = Bench()
    with pytest.raises(RuntimeError, match="nothing to deliver"):
        AsyncDriver(bench.session).run_blocking(asyncio.Event().wait())
