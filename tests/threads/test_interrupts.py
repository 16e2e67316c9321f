"""Ctrl-C while threads of a run are under way: it reaches the agent's own thread, as one recorded event."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentloom import Trace, agent, tool
from agentloom.store import MemoryStore
from tests.runtime.fakes import WAIT


@contextlib.contextmanager
def pressing(when: threading.Event, *, released: threading.Event) -> Generator[None]:
    """Press Ctrl-C once ``when`` is set; then let go what waits for ``released``."""

    def press() -> None:
        when.wait(WAIT)
        time.sleep(0.01)  # the agent's thread comes to its wait
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)
        released.set()

    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        when.set()
        thread.join(WAIT)


def run(
    made: Callable[[Callable[[], int], list[object]], Any],
) -> tuple[Trace, BaseException | None, list[object]]:
    """Run the agent that ``made`` makes from a tool that is under way when Ctrl-C is pressed."""
    started, released, seen = threading.Event(), threading.Event(), list[object]()

    @tool(effect="read")
    def slow() -> int:
        started.set()
        released.wait(WAIT)
        return 1

    agent_made = made(slow, seen)
    store, raised = MemoryStore(), None
    with pressing(started, released=released):
        try:
            agent_made.run(store=store)
        except KeyboardInterrupt as error:
            raised = error
    trace = Trace.open("last", store)
    live = list(seen)
    seen.clear()
    report = trace.replay(agent=agent_made, check=False)
    assert report.verdict == "identical", str(report)
    assert seen == live
    return trace, raised, live


def kinds(trace: Trace) -> list[str]:
    return [str(entry["kind"]) for entry in trace.journal.entries]


def test_a_join_is_interrupted_and_the_thread_goes_on() -> None:
    def made(slow: Callable[[], int], seen: list[object]) -> Any:
        @agent
        def joins() -> list[object]:
            thread = threading.Thread(target=lambda: seen.append(slow()))
            thread.start()
            try:
                thread.join()
            except KeyboardInterrupt:
                seen.append("interrupted")
            thread.join()
            return list(seen)

        return joins

    trace, raised, seen = run(made)
    assert (raised, seen) == (None, ["interrupted", 1])
    assert kinds(trace).count("cancel") == 1
    assert [call.status for call in trace.calls] == ["ok"]


def test_a_pool_ends_its_work_before_the_interruption_leaves_its_block() -> None:
    def made(slow: Callable[[], int], seen: list[object]) -> Any:
        @agent
        def pools() -> None:
            with ThreadPoolExecutor(2) as pool:
                pool.submit(lambda: seen.append(slow()))
                pool.submit(slow).result()

        return pools

    trace, raised, seen = run(made)
    assert isinstance(raised, KeyboardInterrupt)
    assert seen == [1]
    assert trace.status == "cancelled"
    assert [call.status for call in trace.calls] == ["ok", "ok"]


def test_a_wait_for_a_lock_is_interrupted() -> None:
    def made(slow: Callable[[], int], seen: list[object]) -> Any:
        @agent
        def waits() -> None:
            lock, ready = threading.Lock(), threading.Event()

            def holds() -> None:
                with lock:
                    ready.set()
                    seen.append(slow())

            thread = threading.Thread(target=holds)
            thread.start()
            ready.wait()
            with lock:
                seen.append("taken")

        return waits

    trace, raised, seen = run(made)
    assert isinstance(raised, KeyboardInterrupt)
    assert seen == [1]
    assert trace.status == "cancelled"


def test_the_second_press_gives_the_run_up() -> None:
    started, over = threading.Event(), threading.Event()

    @tool(effect="read")
    def hangs() -> None:
        started.set()
        over.wait(WAIT)

    @agent
    def waits() -> None:
        thread = threading.Thread(target=hangs, daemon=True)
        thread.start()
        with contextlib.suppress(KeyboardInterrupt):  # deaf to the first
            thread.join()
        thread.join()

    def press() -> None:
        started.wait(WAIT)
        for _ in range(2):
            time.sleep(0.02)
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    store = MemoryStore()
    with pytest.raises(KeyboardInterrupt):
        waits.run(store=store)
    over.set()
    thread.join(WAIT)
    assert Trace.open("last", store).status == "unfinished"
