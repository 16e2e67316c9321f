"""Threads that a run starts: part of it, with paths of their own, whatever way they are started and end."""

from __future__ import annotations

import _thread
import contextvars
import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentloom import Trace, agent, sync, tool
from agentloom.errors import NotSupported
from agentloom.runtime.scope import here
from agentloom.runtime.strays import stray
from agentloom.store import MemoryStore
from tests.runtime.fakes import WAIT, FailingStore, fails, in_time, recorded


@tool(effect="read")
def find(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return number


def started(*works: Callable[[], object], daemon: bool | None = None) -> list[threading.Thread]:
    threads = [threading.Thread(target=work, daemon=daemon) for work in works]
    for thread in threads:
        thread.start()
    return threads


def joined(*works: Callable[[], object]) -> None:
    for thread in started(*works):
        thread.join()


def test_calls_have_the_path_of_the_thread_in_the_order_of_start() -> None:
    @agent
    def paths() -> None:
        def nested() -> None:
            find(2)
            joined(lambda: find(3), lambda: find(4))

        find(0)
        joined(lambda: find(1), nested)
        joined(lambda: find(5))

    trace = recorded(paths)
    root = "root/paths"
    assert {call.request["args"]["number"]: call.id for call in trace.calls} == {
        0: f"{root}#1", 1: f"{root}/thread[0]#1", 2: f"{root}/thread[1]#1", 3: f"{root}/thread[1]/thread[0]#1",
        4: f"{root}/thread[1]/thread[1]#1", 5: f"{root}/thread[2]#1",
    }  # fmt: skip


def test_host_calls_of_threads_overlap() -> None:
    meeting = threading.Barrier(3)

    @tool(effect="read")
    def meet(number: int) -> int:
        meeting.wait(WAIT)  # host work: three of these end only when all are under way
        return number

    @agent
    def three() -> list[int]:
        seen: list[int] = []
        threads = started(*(lambda n=n: seen.append(meet(n)) for n in range(2)))
        seen.append(meet(2))
        for thread in threads:
            thread.join()
        return sorted(seen)

    assert in_time(lambda: recorded(three)).output == [0, 1, 2]  # type: ignore[attr-defined]


def test_names_and_life_are_what_they_were_when_recorded() -> None:
    @agent
    def named() -> list[object]:
        go = threading.Event()

        def work() -> None:
            go.wait()
            find(1)

        thread = threading.Thread(target=work)
        before = thread.is_alive()
        thread.start()
        during = thread.is_alive()
        thread.join(0)
        go.set()
        thread.join()
        other = threading.Thread(target=print)
        return [before, during, thread.is_alive(), thread.name, other.name, threading.current_thread().name]

    names = [False, True, False, "Thread-1 (work)", "Thread-2 (print)", "MainThread"]
    assert named.run(store=MemoryStore()).output == names
    assert recorded(named).output == names


def test_misuse_is_said_as_ever() -> None:
    @agent
    def misuses() -> list[str]:
        said: list[str] = []
        thread = threading.Thread(target=lambda: said.append(str(find(1))))
        for wrong in (thread.join, thread.start, thread.start, threading.current_thread().join):
            try:
                wrong()
            except RuntimeError as error:
                said.append(str(error))
        thread.join()
        return sorted(said)

    assert recorded(misuses).output == [
        "1", "cannot join current thread", "cannot join thread before it is started",
        "threads can only be started once",
    ]  # fmt: skip


def test_an_exception_of_a_thread_goes_to_the_excepthook_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(
        threading, "excepthook", lambda args: said.append((args.exc_type, args.thread.name, here()))
    )

    @agent
    def raises() -> list[str]:
        log: list[str] = []

        def bad() -> None:
            log.append("calls")
            find(-1)

        def leaves() -> None:
            raise SystemExit(3)

        joined(bad, leaves)
        return [*log, "goes on"]

    trace = recorded(raises)
    assert trace.output == ["calls", "goes on"]
    assert [(kind.__name__, name) for kind, name, _ in said] == [
        ("SystemExit", "Thread-2 (leaves)"), ("ValueError", "Thread-1 (bad)"),
    ] * 2  # fmt: skip
    assert all(scope is not None for _, _, scope in said)


def test_a_thread_has_a_context_of_its_own_and_its_own_locals() -> None:
    variable = contextvars.ContextVar("variable", default="none")
    local = threading.local()

    @agent
    def contexts() -> list[object]:
        variable.set("mine")
        local.value = "mine"
        seen: list[object] = []

        def work() -> None:
            seen.extend((variable.get(), getattr(local, "value", "none")))
            variable.set("other")

        joined(work)
        taken = contextvars.copy_context()
        joined(lambda: taken.run(lambda: seen.extend((variable.get(), find(1)))))
        return [*seen, variable.get()]

    trace = recorded(contexts)
    assert trace.output == ["none", "none", "mine", 1, "mine"]
    assert trace.calls[0].id == "root/contexts/thread[1]#1"  # although the context is that of the root


def test_clocks_and_draws_of_a_thread_are_the_runs() -> None:
    @agent
    def reads() -> list[object]:
        import random
        import uuid

        seen: list[object] = []

        def work() -> None:
            seen.extend((time.time(), time.monotonic(), random.random(), str(uuid.uuid4())))
            time.sleep(0.001)
            seen.append(time.perf_counter_ns())

        joined(work, work)
        _thread.start_new_thread(work, ())
        while len(seen) < 15:
            time.sleep(0.0005)
        return seen

    recorded(reads)


def test_a_timer_fires_in_virtual_time() -> None:
    @agent
    def waits() -> list[object]:
        seen: list[object] = []
        began = time.monotonic()
        timers = [threading.Timer(seconds, seen.append, (seconds,)) for seconds in (0.03, 0.01, 9.0)]
        for timer in timers:
            timer.start()
        timers[0].join()
        timers[2].cancel()
        timers[2].join()
        return [*seen, time.monotonic() - began < 5]

    store = MemoryStore()
    assert waits.run(store=store).output == [0.01, 0.03, True]
    began = time.monotonic()
    assert Trace.open("last", store).replay(agent=waits).verdict == "identical"
    assert time.monotonic() - began < 5


# -- the end -----------------------------------------------------------------------------------------------------------


def test_threads_that_are_no_daemons_come_to_their_end_with_the_run() -> None:
    @agent
    def leaves() -> str:
        def work() -> None:
            find(1)
            time.sleep(0.001)
            find(2)

        started(work)
        return "returned"

    trace = recorded(leaves)
    assert trace.output == "returned"
    assert [call.name for call in trace.calls] == ["find", "sleep", "find"]


def test_so_they_do_when_the_agent_raises() -> None:
    @agent
    def fails_early() -> None:
        started(lambda: find(1))
        raise LookupError("no")

    error, trace = fails(fails_early)
    assert isinstance(error, LookupError)
    assert [call.status for call in trace.calls] == ["ok"]


def test_a_daemon_is_let_go_and_its_call_ends_cancelled() -> None:
    over, ended = threading.Event(), queue.Queue[str]()

    @tool
    def hangs() -> None:
        over.wait(WAIT)

    @agent
    def leaves() -> None:
        def work() -> None:
            try:
                hangs()
            except BaseException as error:
                ended.put(type(error).__name__)
                raise

        started(work, daemon=True)
        find(1)

    store = MemoryStore()
    leaves.run(store=store)
    over.set()
    assert ended.get(timeout=WAIT) == "Stopped"
    trace = Trace.open("last", store)
    assert {call.name: call.status for call in trace.calls} == {"find": "ok", "hangs": "cancelled"}
    assert trace.replay(agent=leaves).verdict == "identical"
    assert ended.get(timeout=WAIT) == "Stopped"


def test_who_waits_for_what_is_not_the_runs_is_let_go_and_is_free() -> None:
    over, said = threading.Event(), queue.Queue[object]()

    @agent
    def leaves() -> None:
        def work() -> None:
            over.wait()
            said.put((find(3), stray()))

        started(work)

    leaves.run(store=MemoryStore())
    over.set()
    assert said.get(timeout=WAIT) == (3, None)


def test_a_store_that_fails_ends_every_thread() -> None:
    @agent
    def many() -> None:
        def work() -> None:
            for number in range(5):
                try:
                    find(number)
                except BaseException:  # noqa: BLE001 - what careless code does
                    find(number + 10)

        joined(work, work, work)

    before = set(threading.enumerate())
    for at in range(3, 12):
        store = FailingStore(at)
        with pytest.raises(Exception, match="disk is full"):
            in_time(lambda store=store: many.run(store=store))  # type: ignore[misc]
        assert not set(threading.enumerate()) - before


def test_a_divergence_in_a_thread_is_one_of_the_run() -> None:
    order = [1]

    @agent
    def drifts() -> None:
        def work() -> None:
            try:
                find(order[0])
            except BaseException:  # noqa: BLE001 - what careless agents do
                find(7)

        joined(work, lambda: find(2))

    trace = drifts.run(store=MemoryStore())
    order[0] = 5
    report: Any = in_time(lambda: trace.replay(check=False))
    assert report.verdict == "diverged"
    assert "number" in str(report)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_effects_of_a_thread_are_refused_as_the_agents() -> None:
    @agent
    def opens() -> None:
        joined(lambda: Path("notes.txt").read_text())

    store = MemoryStore()
    with pytest.raises(Exception, match=r"test_threads.py:\d+ in <lambda> reads notes.txt"):
        opens.run(store=store)


def test_traces_from_before_threads_were_adopted_and_those_without_a_guard_replay_as_they_were() -> None:
    @agent(guard="off")
    def off() -> str:
        said: list[str] = []

        def work() -> None:
            try:
                find(1)
            except NotSupported as error:
                said.append(str(error))

        joined(work)
        return said[0]

    trace = recorded(off)
    assert "in a thread that the run of off started" in str(trace.output)
    assert trace.calls == []


def test_agents_and_host_functions_are_work_for_threads() -> None:
    @agent
    def inner(number: int) -> int:
        joined(lambda: find(number))
        return number

    @agent
    def outer() -> None:
        joined(lambda: inner(1), lambda: sync.sleep(0.001))
        threading.Thread(target=find, args=(2,)).start()

    trace = recorded(outer)
    assert sorted(call.id for call in trace.calls) == [
        "root/outer/thread[0]#1", "root/outer/thread[0]/inner[0]/thread[0]#1", "root/outer/thread[1]#1",
        "root/outer/thread[2]#1",
    ]  # fmt: skip
