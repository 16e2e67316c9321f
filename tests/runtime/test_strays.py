"""Threads that a run starts and that are no part of it, as under ``guard="off"``: tools are refused there while the run
goes on, and are functions afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from agentloom import agent, sync, tool
from agentloom.errors import NoActiveRun, NotSupported
from agentloom.runtime.strays import stray
from agentloom.store import MemoryStore
from tests.runtime.fakes import recorded

RAN: list[int] = []


@tool
def find(number: int) -> int:
    RAN.append(number)
    return number


def in_thread(work: Callable[[], object]) -> str:
    said: list[str] = []

    def run() -> None:
        try:
            said.append(str(work()))
        except (NotSupported, NoActiveRun) as error:
            said.append(type(error).__name__)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return said[0]


@agent(guard="off")
def starts_threads() -> list[str]:
    return [
        in_thread(lambda: find(1)),
        in_thread(sync.now),
        in_thread(lambda: in_thread(lambda: find(2))),  # a thread of a thread
        in_thread(lambda: stray() is not None),
    ]


def test_a_tool_in_a_thread_of_the_run_is_refused_live_and_on_replay() -> None:
    RAN.clear()
    trace = recorded(starts_threads)
    assert trace.output == ["NotSupported", "NoActiveRun", "NotSupported", "True"]
    assert (trace.calls, RAN) == ([], [])


def test_a_thread_that_outlives_its_run_is_free() -> None:
    RAN.clear()
    over, said = threading.Event(), []

    @agent
    def leaves() -> None:
        def work() -> None:
            over.wait()  # nobody in the run will end it: it is let go
            said.append(find(3))

        threads.append(threading.Thread(target=work))
        threads[0].start()

    threads: list[Any] = []
    leaves.run(store=MemoryStore())
    over.set()
    threads[0].join()
    assert said == RAN == [3]


def test_host_work_is_no_stray() -> None:
    @tool
    def works() -> list[object]:
        return [in_thread(lambda: find(4)), stray()]

    @agent
    def calls() -> Any:
        return works()

    RAN.clear()
    calls.run(store=MemoryStore())
    assert stray() is None
