"""What stands in for locks and queues: counted, gone afterwards, and nothing to threads of no run."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.runtime import thread_locks
from agentloom.runtime.baton import Baton
from agentloom.runtime.thread_locks import install, is_free, uninstall, woken_by
from tests.runtime.fakes import Bench

KINDS = (type(threading.Lock()), type(threading.RLock()), queue.SimpleQueue)


@pytest.fixture
def standing() -> Iterator[None]:
    install()
    yield
    uninstall()


def test_it_is_counted_and_leaves_the_types_as_they_were() -> None:
    before = [dict(vars(kind)) for kind in KINDS]
    install()
    install()
    during = [dict(vars(kind)) for kind in KINDS]
    uninstall()
    assert [dict(vars(kind)) for kind in KINDS] == during != before
    uninstall()
    assert [dict(vars(kind)) for kind in KINDS] == before


@pytest.mark.usefixtures("standing")
def test_locks_and_queues_of_no_run_do_what_they_did() -> None:
    lock: Any = threading.Lock()
    again: Any = threading.RLock()
    line = queue.SimpleQueue[int]()
    with lock:
        assert not lock.acquire(blocking=False)
        assert not lock.acquire(timeout=0.001)
        assert lock.locked()
    for release in (lock.release, again.release):
        with pytest.raises(RuntimeError):
            release()
    for kind in (lock, again):
        with pytest.raises(ValueError, match="timeout"):
            kind.acquire(timeout=-3)
        with pytest.raises(ValueError, match="non-blocking"):
            kind.acquire(False, 1)
    with again, again:
        assert again.acquire(timeout=1)
        again.release()
    line.put(1)
    line.put_nowait(2)
    assert (line.get(), line.get(block=False)) == (1, 2)
    for ask in (lambda: line.get(timeout=0.001), lambda: line.get(block=False)):
        with pytest.raises(queue.Empty):
            ask()  # type: ignore[no-untyped-call]


@pytest.mark.usefixtures("standing")
def test_a_condition_waits_and_is_notified() -> None:
    condition, seen = threading.Condition(), list[int]()

    def work() -> None:
        with condition:
            seen.append(1)
            condition.notify_all()

    thread = threading.Thread(target=work)
    with condition:
        thread.start()
        assert condition.wait_for(lambda: seen, 20)
    thread.join()


def test_what_is_free_is_known_without_taking_it() -> None:
    lock, again, line = threading.Lock(), threading.RLock(), queue.SimpleQueue[int]()
    assert is_free(lock)
    assert is_free(again)
    assert not is_free(line)
    line.put(1)
    assert is_free(line)
    assert is_free(lock)
    with lock:
        assert not is_free(lock)
    taken, over = threading.Event(), threading.Event()

    def holds() -> None:
        with again:
            taken.set()
            over.wait(20)

    thread = threading.Thread(target=holds)
    thread.start()
    taken.wait(20)
    assert not is_free(again)
    over.set()
    thread.join()
    assert is_free(again)
    woken_by(lock)  # nobody waits


def test_waiting_is_measured_in_virtual_time_by_strands_alone() -> None:
    bench = Bench()
    bench.engine.take()
    bench.engine.vt = 3_000_000_000
    real = thread_locks._waited()
    baton = Baton(bench.session)
    try:
        assert thread_locks._waited() == 3.0
        with baton.aside():
            assert thread_locks._waited() >= real
    finally:
        baton.end()
