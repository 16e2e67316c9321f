"""Pools of threads in a run: made in it or before it, nested, left, broken; their order is recorded."""

from __future__ import annotations

import contextvars
import queue
import threading
import time
from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Future,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from typing import Any

import pytest

from agentloom import agent, tool
from agentloom.errors import NotSupported
from agentloom.store import MemoryStore
from tests.runtime.fakes import WAIT, in_time, recorded

BEFORE = ThreadPoolExecutor(2, thread_name_prefix="before")


@tool(effect="read")
def find(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    time.sleep(0.001 * (number % 3))
    return number


def test_submit_map_and_as_completed() -> None:
    @agent
    def uses() -> list[object]:
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(find, number) for number in (2, 1, 0)]
            completed = [future.result() for future in as_completed(futures)]
            return [sorted(completed), list(pool.map(find, range(4))), threading.current_thread().name]

    trace = recorded(uses)
    assert trace.output == [[0, 1, 2], [0, 1, 2, 3], "MainThread"]
    assert {call.request["args"]["number"]: call.id for call in trace.calls[:3]} == {
        2: "root/uses/thread[0]#1", 1: "root/uses/thread[1]#1", 0: "root/uses/thread[2]#1",
    }  # fmt: skip


def test_no_more_run_at_once_than_the_pool_may_have() -> None:
    under_way: list[int] = []
    most: list[int] = []

    @tool(effect="read")
    def counted(number: int) -> int:
        under_way.append(number)
        most.append(len(under_way))
        time.sleep(0.002)
        under_way.remove(number)
        return number

    @agent
    def narrow() -> list[int]:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(counted, range(6)))

    recorded(narrow)
    assert max(most) == 2


def test_workers_are_named_and_kept_as_ever() -> None:
    @agent
    def names() -> list[object]:
        local = threading.local()

        def work(number: int) -> tuple[str, int]:
            local.count = getattr(local, "count", 0) + 1
            find(number)
            return threading.current_thread().name, local.count

        with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1, "mine") as second:
            return [
                first.submit(work, 1).result(),
                first.submit(work, 1).result(),
                second.submit(work, 1).result(),
            ]

    for _ in range(2):
        assert recorded(names).output == [
            ("ThreadPoolExecutor-0_0", 1),
            ("ThreadPoolExecutor-0_0", 2),
            ("mine_0", 1),
        ]


def test_a_pool_from_before_the_run_is_used_by_many_and_by_nobody_afterwards() -> None:
    BEFORE.submit(int).result()

    @agent
    def uses() -> list[object]:
        futures = [BEFORE.submit(find, number) for number in range(4)]
        idents = {BEFORE.submit(lambda: threading.current_thread().name).result() for _ in range(2)}
        return [[future.result() for future in futures], sorted(idents)]

    for _ in range(2):
        trace = recorded(uses)
        assert trace.output[0] == [0, 1, 2, 3]
        assert all(name.startswith("before_") for name in trace.output[1])
        assert len(trace.calls) == 4
    assert BEFORE.submit(find, 5).result() == 5  # outside of runs it is a function


def test_exceptions_are_the_futures() -> None:
    @agent
    def raises() -> list[object]:
        with ThreadPoolExecutor(2) as pool:
            future = pool.submit(find, -1)
            leaves = pool.submit(exit, 3)
            seen: list[object] = [str(future.exception()), repr(leaves.exception())]
            try:
                list(pool.map(find, [1, -2, 3]))
            except ValueError as error:
                seen.append(str(error))
            return seen

    assert recorded(raises).output == ["-1", "SystemExit(3)", "-2"]


def test_waiting_for_some_and_cancelling_the_rest() -> None:
    @agent
    def waits() -> list[object]:
        pool = ThreadPoolExecutor(1)
        futures = [pool.submit(find, number) for number in (1, 2, 1, 1)]
        done, left = wait(futures, return_when=FIRST_COMPLETED)
        cancelled = sorted(futures.index(future) for future in left if future.cancel())
        wait(futures, return_when=ALL_COMPLETED)
        pool.shutdown(cancel_futures=True)
        with pytest.raises(CancelledError):
            futures[3].result()
        with pytest.raises(RuntimeError, match="cannot schedule new futures after shutdown"):
            pool.submit(find, 1)
        return [
            sorted(futures.index(future) for future in done),
            cancelled,
            [future.cancelled() for future in futures],
        ]

    assert recorded(waits).output == [[0], [2, 3], [False, False, True, True]]


def test_a_failure_among_several_is_waited_for() -> None:
    @agent
    def waits() -> list[int]:
        with ThreadPoolExecutor(3) as pool:
            futures = [pool.submit(find, number) for number in (-1, 5, 2)]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
            return sorted(futures.index(future) for future in done)

    assert 0 in recorded(waits).output


def test_a_result_that_comes_too_late() -> None:
    @agent
    def waits() -> list[object]:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(time.sleep, 0.05)
            try:
                future.result(timeout=0.001)
            except TimeoutError:
                return ["late", future.done(), future.result()]
        return ["in time"]

    assert recorded(waits).output == ["late", False, None]


def test_sets_of_futures_iterate_in_the_order_of_their_making() -> None:
    @agent
    def sets() -> list[int]:
        with ThreadPoolExecutor(4) as pool:
            made = {pool.submit(int, number): number for number in range(20)}
            return [made[future] for future in set(made)]

    assert recorded(sets).output == list(range(20))
    one: Future[Any] = Future()
    assert hash(one) == object.__hash__(one)


def test_how_many_workers_a_pool_has_is_no_matter_of_the_machine() -> None:
    @agent
    def asks() -> int:
        return ThreadPoolExecutor()._max_workers

    assert recorded(asks).output == 32


def test_done_callbacks_run_in_their_turn() -> None:
    @agent
    def calls_back() -> list[object]:
        seen: list[object] = []
        with ThreadPoolExecutor(2) as pool:
            for number in (2, 1, 0):
                pool.submit(find, number).add_done_callback(
                    lambda future: seen.append((future.result(), find(9)))
                )
        return seen

    trace = recorded(calls_back)
    assert sorted(trace.output) == [(0, 9), (1, 9), (2, 9)]


def test_pools_inside_pools_and_copied_contexts() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    @agent
    def nests() -> list[object]:
        def outer(number: int) -> int:
            with ThreadPoolExecutor(2) as inner:
                return sum(inner.map(find, [number, number]))

        variable.set(7)
        with ThreadPoolExecutor(2) as pool:
            copied = pool.submit(contextvars.copy_context().run, lambda: (variable.get(), find(1)))
            return [list(pool.map(outer, [1, 2])), copied.result(), pool.submit(variable.get).result()]

    trace = recorded(nests)
    assert trace.output == [[2, 4], (7, 1), 0]
    assert "root/nests/thread[0]#1" in [call.id for call in trace.calls]


def test_an_initializer_runs_once_for_each_worker_and_may_fail() -> None:
    @agent
    def initialises() -> list[object]:
        seen: list[object] = []
        with ThreadPoolExecutor(2, initializer=lambda: seen.append(find(0))) as pool:
            wait([pool.submit(find, number) for number in (1, 2, 1, 2)])

        def bad() -> None:
            raise LookupError

        with ThreadPoolExecutor(1, initializer=bad) as broken:
            try:
                broken.submit(find, 1).result()
            except BrokenExecutor as error:
                seen.append(type(error).__name__)
        return seen

    assert recorded(initialises).output == [0, 0, "BrokenThreadPool"]


def test_what_a_pool_that_is_not_shut_down_was_given_is_done_before_the_run_ends() -> None:
    @agent
    def leaves() -> str:
        pool = ThreadPoolExecutor(1, "left")
        pool.submit(find, 1)
        pool.submit(find, 2)
        return "returned"

    trace = recorded(leaves)
    assert [call.status for call in trace.calls] == ["ok", "ok"]
    for thread in threading.enumerate():
        if thread.name.startswith("left"):
            thread.join(WAIT)
            assert not thread.is_alive()


def test_a_pool_of_the_run_is_an_ordinary_one_after_it() -> None:
    pools: list[ThreadPoolExecutor] = []

    @agent
    def makes() -> int:
        pools.append(ThreadPoolExecutor(1))
        return pools[-1].submit(find, 1).result()

    recorded(makes)
    assert [pool.submit(int, 3).result() for pool in pools] == [3, 3]
    for pool in pools:
        pool.shutdown()


def test_a_pool_in_a_tool_is_host_work() -> None:
    names: list[str] = []

    @tool
    def fans_out(number: int) -> list[int]:
        with ThreadPoolExecutor(2) as pool:
            names.append(pool.submit(lambda: threading.current_thread().name).result())
            return list(pool.map(lambda one: one * 2, range(number)))

    @agent
    def asks() -> list[object]:
        with ThreadPoolExecutor(2) as pool:
            return [fans_out(3), *pool.map(fans_out, [1, 2])]

    trace = recorded(asks)
    assert trace.output == [[0, 2, 4], [0], [0, 2]]
    assert len(names) == 3  # not on replay


def test_a_thread_that_a_tool_starts_is_real() -> None:
    said: queue.Queue[str] = queue.Queue()

    @tool
    def starts() -> str:
        def work() -> None:
            try:
                said.put(str(find(4)))
            except NotSupported as error:
                said.put(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(WAIT)
        return said.get(timeout=WAIT)

    @agent
    def asks() -> list[str]:
        return [starts()]

    trace = in_time(lambda: recorded(asks))
    assert isinstance(trace.output, list)  # type: ignore[attr-defined]
    assert trace.output == ["4"]  # type: ignore[attr-defined]
    assert len(trace.calls) == 1  # type: ignore[attr-defined]


def test_outside_of_runs_pools_are_what_they_were() -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(int, ["1", "2"])) == [1, 2]
        assert pool.submit(threading.current_thread).result().name.endswith("_0")

    @agent
    def nothing() -> None:
        return None

    nothing.run(store=MemoryStore())
