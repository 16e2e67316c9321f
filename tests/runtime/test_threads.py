"""Whose a thread is: the rule, case by case; counters of the run; who adopts."""

from __future__ import annotations

import asyncio
import functools
import logging.handlers
import queue
import threading
from collections.abc import Callable
from typing import Any, cast

import pytest

from agentloom import record, tool
from agentloom.runtime import live, threads
from agentloom.runtime.scope import current, entered
from agentloom.runtime.threads import adopting, in_stock_loop, numbered, whose
from agentloom.store import MemoryStore
from tests.runtime.fakes import Bench


def own() -> None: ...


class Own:
    def method(self) -> None: ...

    def __call__(self) -> None: ...


class OwnThread(threading.Thread):
    def run(self) -> None: ...


@tool
def look_up() -> int:
    return 1


LISTENER = logging.handlers.QueueListener(queue.Queue())
LIBRARY = pytest.raises  # a function of an installed package


def made(target: Any = None, *args: Any, daemon: bool = False) -> threading.Thread:
    return threading.Thread(target=target, args=args, daemon=daemon)


CASES: list[tuple[str, Callable[[], threading.Thread], str]] = [
    ("a function of its own", lambda: made(own), "run"),
    ("a daemon of its own", lambda: made(own, daemon=True), "run"),
    ("a method", lambda: made(Own().method, daemon=True), "run"),
    ("an object that can be called", lambda: made(Own(), daemon=True), "run"),
    ("a class of its own", lambda: OwnThread(daemon=True), "run"),
    ("a partial", lambda: made(functools.partial(functools.partial(own)), daemon=True), "run"),
    ("a library's function with one of its own", lambda: made(LIBRARY, own, daemon=True), "run"),
    ("a tool", lambda: made(look_up, daemon=True), "run"),
    ("a timer", lambda: threading.Timer(1, own), "run"),
    ("a library's timer", lambda: threading.Timer(1, LIBRARY), "run"),
    ("a library's function", lambda: made(LIBRARY), "run"),
    ("a library's daemon", lambda: made(LIBRARY, daemon=True), "library"),
    ("a loop of the standard library", lambda: made(cast(Any, LISTENER)._monitor), "library"),
    ("a function in C", lambda: made(int), "run"),
    ("nothing", made, "run"),
    ("one that performs host calls", lambda: made(live.LiveSource.prepare_blocking), "ours"),
]


@pytest.mark.parametrize(("make", "owner"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_whose_a_thread_is(make: Callable[[], threading.Thread], owner: str) -> None:
    thread = make()
    works, given = threads._works_of(thread)
    assert whose(Bench().session, works, given, daemon=thread.daemon) == owner


def test_under_a_loop_that_is_not_the_runs_it_is_real() -> None:
    async def asks() -> tuple[bool, str]:
        return in_stock_loop(), whose(Bench().session, [own], [], daemon=False)

    assert asyncio.run(asks()) == (True, "loop")
    assert not in_stock_loop()


def test_a_run_adopts_in_its_own_thread_while_it_goes_on_and_nothing_is_imported() -> None:
    bench = Bench()
    session = bench.session
    assert adopting() is None
    with entered(session.root):
        assert adopting() is None  # its threads are not adopted
        session.adopts = True
        assert adopting() is None  # nobody has begun it
        bench.engine.take()
        assert adopting() is session
        seen: list[object] = []
        thread = threading.Thread(target=lambda: seen.append(adopting()))
        threads._real_start(thread)
        thread.join()
        session.guard.suspended = 1
        assert adopting() is None
        session.guard.suspended = 0
        session.over = True
        assert adopting() is None
        session.over = False
    assert seen == [None]


def test_counters_of_the_process_count_for_the_run_inside_of_it() -> None:
    count = numbered("probes", iter(range(100, 110)).__next__, 5)
    bench = Bench()
    bench.session.adopts = True
    bench.engine.take()
    assert count() == 100
    with entered(bench.session.root):
        assert [count(), count()] == [5, 6]
    assert count() == 101


def test_a_thread_takes_after_a_strand_and_not_after_the_thread_that_the_run_is_in() -> None:
    seen: list[bool] = []

    def run() -> None:
        bench = Bench()
        bench.session.adopts = True
        bench.engine.take()
        seen.append(threading.Thread().daemon)
        with entered(bench.session.root):
            seen.append(threading.Thread().daemon)
            seen.append(threading.Thread(daemon=True).daemon)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    assert seen == [True, False, True]


def test_a_thread_of_a_block_keeps_what_it_was_given_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[bool] = []

    def run() -> None:
        said.append(current() is not None)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with record("threads", store=MemoryStore()):
        thread: Any = threading.Thread(target=own)
        thread.run = run
        with monkeypatch.context() as patch:
            patch.setattr(threads, "_real_start", refused)
            with pytest.raises(RuntimeError, match="new thread"):
                thread.start()
        assert thread.run is run
        thread.start()
        thread.join()
    assert said == [True]
    assert thread.run is run
