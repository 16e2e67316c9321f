"""Tasks that are born in finalisers never enter a run."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom import agent, record
from agentloom.runtime.collecting import COLLECTING, watch_collector
from agentloom.runtime.scope import current
from agentloom.store import MemoryStore
from tests.api.recorded_programs import in_loop, look

seen: list[Any] = []


class Client:
    """As SDKs' clients: it closes itself in a task, whenever it is collected."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        try:
            asyncio.get_running_loop().create_task(look(99))
        except RuntimeError:
            seen.append("no loop")
        else:
            seen.append("a task")


async def program(steps: int) -> list[int]:
    out: list[int] = []
    for step in range(steps):
        Client()
        out += await asyncio.gather(look(step), look(step + 1))
        gc.collect()
    return out


@pytest.fixture(autouse=True)
def nothing_before() -> Iterator[None]:
    gc.collect()
    seen.clear()
    yield
    gc.collect()


@in_loop
async def test_a_finaliser_finds_no_loop_in_the_run() -> None:
    run = record(program(4), store=MemoryStore())
    await run
    assert seen == ["no loop"] * 4
    assert len(run.trace.calls) == 8
    assert run.trace.replay().verdict == "identical"


@in_loop
async def test_the_collector_comes_at_another_time_on_replay() -> None:
    run = record(program(10), store=MemoryStore())
    gc.set_threshold(20, 1, 1)
    try:
        await run
    finally:
        gc.set_threshold(700, 10, 10)
    for threshold in (30, 10_000):
        gc.set_threshold(threshold, 2, 2)
        try:
            assert run.trace.replay().verdict == "identical"
        finally:
            gc.set_threshold(700, 10, 10)


def test_the_run_goes_on_after_a_collection() -> None:
    @agent
    async def goes_on() -> bool:
        loop = asyncio.get_running_loop()
        gc.collect()
        return current() is not None and asyncio.get_running_loop() is loop

    trace = goes_on.run(store=MemoryStore())
    assert trace.output is True
    assert trace.replay().verdict == "identical"


class Reads:
    """Reads a clock and draws a number, whenever it is collected."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        seen.append((time.time(), random.random(), uuid.uuid4(), current()))


@agent
def reads(garbage: bool) -> list[object]:
    before = time.monotonic_ns()
    if garbage:
        Reads()
    gc.collect()
    return [time.monotonic_ns() - before, random.random(), str(uuid.uuid4())]


@pytest.mark.usefixtures("no_ticks")
def test_a_finaliser_moves_nothing_that_the_run_reads() -> None:
    with_it, without = (reads.run(garbage, seed=7, store=MemoryStore()) for garbage in (True, False))
    assert len(seen) == 1
    assert seen[0][0] > 1_700_000_000
    assert seen[0][3] is None
    assert with_it.output[:2] == without.output[:2]
    assert with_it.replay().verdict == "identical"


@pytest.mark.usefixtures("no_ticks")
def test_callbacks_of_others_lie_between_and_move_no_clock() -> None:
    def other(*_: object) -> None:
        time.perf_counter()
        asyncio.events._get_running_loop()

    plain = reads.run(False, seed=7, store=MemoryStore())
    gc.callbacks.append(other)
    try:
        seen_by = reads.run(False, seed=7, store=MemoryStore())
    finally:
        gc.callbacks.remove(other)
    assert seen_by.output[:2] == plain.output[:2]
    assert seen_by.replay().verdict == "identical"


def test_callbacks_that_are_added_in_the_middle_leave_no_thread_marked() -> None:
    """Another thread may add one, and begin a run, while a collector is at work here."""

    def other(*_: object) -> None:
        pass

    def meanwhile(phase: str, _: object) -> None:
        gc.callbacks.append(other)
        if phase == "stop":
            thread = threading.Thread(target=watch_collector)
            thread.start()
            thread.join()

    watch_collector()
    before = list(gc.callbacks)
    gc.callbacks.insert(1, meanwhile)
    try:
        gc.collect()
        assert COLLECTING == set()
        gc.callbacks.remove(meanwhile)
        gc.collect()
        assert COLLECTING == set()
        watch_collector()
        gc.collect()
        assert COLLECTING == set()
    finally:
        gc.callbacks[:] = before
