"""What threads of a run wait for hands the baton over: locks, queues, events; from before the run too."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

import pytest

from agentloom import agent, sync, tool
from agentloom.runtime import baton as baton_module
from agentloom.runtime import thread_locks
from agentloom.runtime.loop import Deadlock
from agentloom.store import MemoryStore
from tests.runtime.fakes import WAIT, fails, in_time, recorded

LOCK, AGAIN, CONDITION, QUEUE = (
    threading.Lock(),
    threading.RLock(),
    threading.Condition(),
    queue.Queue[int](1),
)


@tool(effect="read")
def find(number: int) -> int:
    return number


def joined(*works: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize("lock", [LOCK, AGAIN, CONDITION], ids=["lock", "again", "condition"])
def test_a_lock_of_the_module_held_around_a_call(lock: Any) -> None:
    @agent
    def holds() -> list[int]:
        seen: list[int] = []

        def work(number: int) -> None:
            with lock:
                seen.append(number)
                find(number)
                seen.append(number)

        joined(*(lambda n=n: work(n) for n in range(4)))
        return seen

    output = in_time(lambda: recorded(holds)).output  # type: ignore[attr-defined]
    assert output[::2] == output[1::2]


def test_a_lock_that_was_taken_before_there_were_threads() -> None:
    """Leaving the block releases it by a method that was looked up before anything stood in for it."""

    @agent
    def holds() -> list[str]:
        seen: list[str] = []

        def work() -> None:
            with LOCK:
                seen.append("thread")

        with LOCK:
            thread = threading.Thread(target=work)
            thread.start()
            find(1)
            seen.append("agent")
        thread.join()
        return seen

    assert in_time(lambda: recorded(holds)).output == ["agent", "thread"]  # type: ignore[attr-defined]


def test_a_condition_and_a_queue_from_before_the_run() -> None:
    @agent
    def waits() -> list[int]:
        got: list[int] = []

        def work(number: int) -> None:
            find(number)
            QUEUE.put(number)
            with CONDITION:
                CONDITION.notify()
                find(number + 10)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        with CONDITION:
            CONDITION.wait()
        for _ in threads:
            got.append(QUEUE.get())
            QUEUE.task_done()
        for thread in threads:
            thread.join()
        QUEUE.join()
        return sorted(got)

    assert in_time(lambda: recorded(waits)).output == [0, 1, 2]  # type: ignore[attr-defined]


def test_waits_end_late_in_virtual_time() -> None:
    @agent
    def waits() -> list[object]:
        seen: list[object] = []

        held, over = threading.Event(), threading.Event()

        def holds() -> None:
            with LOCK:
                held.set()
                over.wait()

        thread = threading.Thread(target=holds)
        thread.start()
        held.wait()
        seen.append(LOCK.acquire(timeout=0.001))
        seen.append(LOCK.acquire(blocking=False))
        for line in (queue.Queue[int](), queue.SimpleQueue[int]()):
            try:
                line.get(timeout=0.001)
            except queue.Empty:
                seen.append("empty")
        seen.append(threading.Event().wait(0.001))
        seen.append(threading.Semaphore(0).acquire(timeout=0.001))
        with CONDITION:
            seen.append(CONDITION.wait_for(lambda: False, 0.001))
        thread.join(0.001)
        seen.append(thread.is_alive())
        over.set()
        thread.join()
        return seen

    trace: Any = in_time(lambda: recorded(waits))
    assert trace.output == [False, False, "empty", "empty", False, False, False, True]
    assert [str(entry["kind"]) for entry in trace.journal.entries].count("timer") == 7


def test_wrong_arguments_are_refused_as_ever() -> None:
    @agent
    def misuses() -> list[str]:
        said: list[str] = []

        def work() -> None:
            for wrong in (
                lambda: LOCK.acquire(False, 1.0), lambda: LOCK.acquire(timeout=-2), LOCK.release, AGAIN.release,
                lambda: queue.SimpleQueue[int]().get(timeout=-1), lambda: queue.Queue[int]().get(timeout=-1),
            ):  # fmt: skip
                try:
                    wrong()
                except (ValueError, RuntimeError, OverflowError) as error:
                    said.append(type(error).__name__)
                    if LOCK.locked():
                        LOCK.release()

        joined(work)
        return said

    outside: list[str] = []
    for wrong in (
        lambda: LOCK.acquire(False, 1.0),
        lambda: LOCK.acquire(timeout=-2),
        LOCK.release,
        AGAIN.release,
    ):
        with pytest.raises((ValueError, RuntimeError)) as caught:
            wrong()
        outside.append(type(caught.value).__name__)
    assert recorded(misuses).output[:4] == outside


# -- nobody comes ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_two_threads_that_wait_for_each_other_are_a_deadlock_that_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(baton_module, "PATIENCE", 0.05)

    @agent
    def crosses() -> None:
        one, other = threading.Lock(), threading.Lock()

        def work(first: Any, second: Any) -> None:
            with first:
                find(1)
                with second:
                    find(2)

        joined(lambda: work(one, other), lambda: work(other, one))

    error, trace = fails(crosses)
    assert isinstance(error, Deadlock)
    assert "MainThread in tests/threads/test_waits.py:" in str(error)
    assert str(error).count("test_waits.py") == 3
    assert trace.status == "failed"


def test_a_deadlock_is_found_where_other_threads_are_alive_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(baton_module, "PATIENCE", 0.05)

    @agent
    def waits() -> str:
        threading.Thread(target=find, args=(1,)).start()
        try:
            threading.Event().wait()
        except Deadlock:
            return "deadlock"
        return "?"

    assert in_time(lambda: recorded(waits)).output == "deadlock"  # type: ignore[attr-defined]


def test_a_thread_from_outside_may_end_a_wait() -> None:
    """What it does is not part of the run; when it is done, the run goes on."""
    asked, answers = queue.Queue[int](), queue.Queue[int]()

    def serves() -> None:
        while (number := asked.get()) >= 0:
            answers.put(number * 2)

    @agent
    def asks() -> list[int]:
        seen: list[int] = []

        def work() -> None:
            asked.put(1)
            seen.append(answers.get())
            find(1)

        joined(work)
        asked.put(2)
        seen.append(answers.get())
        return seen

    thread = threading.Thread(target=serves, daemon=True)
    thread.start()
    assert in_time(lambda: recorded(asks)).output == [2, 4]  # type: ignore[attr-defined]
    asked.put(-1)
    thread.join(WAIT)


def test_so_it_may_while_the_run_goes_on() -> None:
    asked, answers = queue.Queue[int](), queue.Queue[int]()

    def serves() -> None:
        while (number := asked.get()) >= 0:
            answers.put(number * 2)

    @agent
    def asks() -> list[int]:
        seen: list[int] = []

        def work() -> None:
            asked.put(1)
            seen.append(answers.get())
            find(1)

        def beside() -> None:
            sync.sleep(0.03)
            seen.append(0)

        joined(work, beside)
        return sorted(seen)

    thread = threading.Thread(target=serves, daemon=True)
    thread.start()
    assert in_time(lambda: recorded(asks)).output == [0, 2]  # type: ignore[attr-defined]
    asked.put(-1)
    thread.join(WAIT)


# -- nobody else is touched --------------------------------------------------------------------------------------------


def test_locks_are_what_they_were_when_no_run_has_threads() -> None:
    types = (type(threading.Lock()), type(threading.RLock()), queue.SimpleQueue)
    before = [dict(vars(owner)) for owner in types]

    @agent
    def uses() -> None:
        joined(lambda: find(1))

    uses.run(store=MemoryStore())
    after = [dict(vars(owner)) for owner in types]
    assert before == after
    assert thread_locks._users == 0


def test_threads_outside_of_a_run_wait_as_ever_while_it_has_threads() -> None:
    line, done = queue.SimpleQueue[int](), threading.Event()
    inside = threading.Event()

    def outside() -> None:
        inside.wait(WAIT)
        with LOCK, AGAIN, CONDITION:
            line.put(1)
        done.set()

    @tool
    def lets() -> int:
        inside.set()
        done.wait(WAIT)
        return line.get()

    @agent
    def uses() -> list[int]:
        seen: list[int] = []
        joined(lambda: seen.append(lets()), lambda: find(1))
        return seen

    thread = threading.Thread(target=outside)
    thread.start()
    assert in_time(lambda: recorded(uses)).output == [1]  # type: ignore[attr-defined]
    thread.join(WAIT)
