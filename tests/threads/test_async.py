"""Threads of async agents: executors, ``to_thread``, calls back into the loop, and waits of the loop itself."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import agentloom
from agentloom import Trace, agent, sync, tool
from agentloom.errors import NotSupported
from agentloom.runtime import baton as baton_module
from agentloom.runtime.loop import Deadlock
from agentloom.store import MemoryStore
from tests.runtime.fakes import WAIT, fails, in_time, recorded


@tool(effect="read")
def find(number: int) -> int:
    time.sleep(0.001 * (number % 3))
    return number


def test_to_thread_runs_side_by_side_with_calls_in_threads_of_the_run() -> None:
    meeting = threading.Barrier(3)

    @tool(effect="read")
    def meet(number: int) -> int:
        meeting.wait(WAIT)
        return number

    @agent
    async def three() -> list[object]:
        def work(number: int) -> object:
            return meet(number), threading.current_thread().name

        return await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(3)))

    trace: Any = in_time(lambda: recorded(three))
    assert trace.output == [(0, "asyncio_0"), (1, "asyncio_1"), (2, "asyncio_2")]
    assert [call.id for call in trace.calls] == [f"root/three/task[{n}]/thread[0]#1" for n in range(3)]


def test_executors_of_the_agents_own_and_the_loops() -> None:
    @agent
    async def runs() -> list[object]:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "own") as pool:
            named = lambda: (find(1), threading.current_thread().name)  # noqa: E731
            first = await asyncio.gather(*(loop.run_in_executor(pool, named) for _ in range(2)))
            loop.set_default_executor(pool)
            return [*first, await asyncio.to_thread(named), await asyncio.to_thread(find, 2)]

    assert recorded(runs).output == [(1, "own_0")] * 3 + [2]


def test_errors_timeouts_and_cancellation_reach_who_awaits() -> None:
    @agent
    async def waits() -> list[object]:
        seen: list[object] = []

        def fails_there() -> None:
            find(1)
            raise LookupError("no")

        def stops() -> None:
            raise StopIteration

        try:
            await asyncio.to_thread(fails_there)
        except LookupError as error:
            seen.append(str(error))
        try:
            await asyncio.wait_for(asyncio.to_thread(time.sleep, 0.02), 0.001)
        except TimeoutError:
            seen.append("late")
        task = asyncio.create_task(asyncio.to_thread(find, 2))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            seen.append("cancelled")
        return seen

    assert recorded(waits).output == ["no", "late", "cancelled"]


def test_a_thread_calls_back_into_the_loop_and_waits_for_it() -> None:
    @agent
    async def back() -> list[object]:
        loop = asyncio.get_running_loop()
        seen: list[int] = []

        async def asks(number: int) -> int:
            await agentloom.sleep(0.001)
            return await agentloom.step(lambda: number + 1)

        def work(number: int) -> int:
            loop.call_soon_threadsafe(seen.append, number)
            return asyncio.run_coroutine_threadsafe(asks(number), loop).result() + find(number)

        return [
            *await asyncio.gather(*(asyncio.to_thread(work, number) for number in range(3))),
            sorted(seen),
        ]

    assert recorded(back).output == [1, 3, 5, [0, 1, 2]]


def test_the_loop_may_wait_for_threads_itself() -> None:
    @agent
    async def blocks() -> list[object]:
        seen: list[object] = []
        ready = threading.Event()

        def work() -> None:
            seen.append(find(2))
            ready.set()
            seen.append(find(1))

        thread = threading.Thread(target=work)
        thread.start()
        task = asyncio.create_task(agentloom.sleep(0.001))
        ready.wait()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            seen.extend(pool.map(find, [3, 4]))
        await task
        return seen

    assert recorded(blocks).output == [2, 1, 3, 4]


def test_parallel_and_child_agents_work_in_threads() -> None:
    @agent
    def inner(number: int) -> int:
        return sum(sync.parallel(lambda: find(number), lambda: find(1)))

    @agent
    async def outer() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(inner, number) for number in range(3)))

    assert recorded(outer).output == [1, 2, 3]


def test_the_run_waits_for_its_threads_and_shuts_executors_down() -> None:
    @agent
    async def leaves() -> str:
        asyncio.get_running_loop().run_in_executor(None, lambda: (find(1), find(2)))
        return "returned"

    trace = recorded(leaves)
    assert trace.output == "returned"
    assert [call.status for call in trace.calls] == ["ok", "ok"]


def test_a_run_that_is_cancelled_waits_for_its_threads() -> None:
    under_way: list[asyncio.Event] = []

    @tool(effect="read")
    def slow() -> int:
        loops[0].call_soon_threadsafe(under_way[0].set)
        time.sleep(0.02)
        return 1

    @agent
    async def waits() -> None:
        await asyncio.to_thread(lambda: (slow(), find(2)))

    store = MemoryStore()

    loops: list[asyncio.AbstractEventLoop] = []

    async def cancels() -> None:
        loops.append(asyncio.get_running_loop())
        under_way.append(asyncio.Event())
        task = asyncio.create_task(waits.arun(store=store))
        await under_way[0].wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancels())
    trace = Trace.open("last", store)
    assert trace.status == "cancelled"
    assert [call.status for call in trace.calls] == ["ok", "ok"]
    assert trace.replay(agent=waits).verdict == "identical"


def test_a_loop_that_waits_for_what_only_it_could_do_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baton_module, "PATIENCE", 0.05)

    @agent
    async def waits() -> None:
        loop = asyncio.get_running_loop()

        async def never() -> None:
            return None

        def work() -> None:
            asyncio.run_coroutine_threadsafe(never(), loop).result()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join()

    error, _ = fails_quietly(waits)
    assert isinstance(error, Deadlock)


def fails_quietly(made: Any) -> tuple[BaseException, Trace]:
    hook = threading.excepthook
    threading.excepthook = lambda args: None
    try:
        return fails(made)
    finally:
        threading.excepthook = hook


def test_another_threads_call_into_the_loop_is_refused_by_name() -> None:
    said: list[str] = []

    @agent
    async def waits() -> None:
        loop = asyncio.get_running_loop()

        @tool
        def outside() -> None:
            try:
                loop.call_soon_threadsafe(print)
            except NotSupported as error:
                said.append(str(error))

        await asyncio.to_thread(outside)

    recorded(waits)
    assert len(said) == 1
    assert "call_soon_threadsafe" in said[0]


def test_many_at_once_in_one_process() -> None:
    @agent
    async def works(number: int) -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(find, number + one) for one in range(4)))

    store = MemoryStore()

    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(works.arun(number, store=store) for number in range(10)))

    for number, trace in enumerate(asyncio.run(all_of_them())):
        assert trace.output == list(range(number, number + 4))
        assert trace.replay(agent=works).verdict == "identical"
