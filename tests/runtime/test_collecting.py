"""Tasks that are born in finalisers never enter a run."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import secrets
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agentloom import Trace, agent, record
from agentloom.runtime import scope, strays
from agentloom.runtime.collecting import COLLECTING, is_inner, watch_collector
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


class Looks:
    """Counts what is asked of a context while the collector is at work."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.count = 0

    def get(self) -> Any:
        self.count += vars(scope)["get_ident"]() in COLLECTING
        return self.variable.get()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.variable, name)


def everything(folder: str) -> list[object]:
    """All that is virtual in a run, and all that a run adopts."""
    os.environ["OF_A_FINALISER"] = "x"
    time.sleep(0)
    if LOCK.acquire(False):
        LOCK.release()
    found: list[object] = [
        time.time(), time.clock_gettime(0), os.times(), datetime.now(), datetime.now(UTC),  # noqa: DTZ005
        datetime.fromtimestamp(0), datetime(2026, 7, 1).astimezone(),  # noqa: DTZ006
        random.random(), random.Random().random(),
        random.SystemRandom().random(), os.urandom(4), secrets.token_hex(4), uuid.uuid1(), uuid.uuid4(), uuid.getnode(),
        next(tempfile._get_candidate_names()), os.environ.pop("OF_A_FINALISER"), os.environ.get("HOME"),  # type: ignore[attr-defined]
        len(os.environ), os.getcwd(), os.getpid(), id(folder), os.path.exists(folder), os.listdir(folder), sys.argv[:1],
        LOCK.locked(), threading.get_ident(), gc.get_count(),
        logging.makeLogRecord({}).created, threading.Thread(target=int).name,
    ]  # fmt: skip
    with open(os.path.join(folder, "of a finaliser"), "w") as file:
        file.write("x")
    thread = threading.Thread(target=seen.append, args=("in a thread",))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(1) as pool:
        found.append(pool.submit(time.time).result())
    return found


LOCK = threading.Lock()


class Everything:
    def __init__(self, folder: str) -> None:
        self.itself = self
        self.folder = folder

    def __del__(self) -> None:
        seen.append(everything(self.folder))


@agent
def around(folder: str) -> list[object]:
    out: list[object] = []
    for turn in range(3):
        if folder and turn == 1:
            Everything(folder)
        gc.collect()
        out += [
            time.monotonic_ns(),
            random.random(),
            str(uuid.uuid4()),
            os.urandom(4).hex(),
            random.Random().random(),
        ]
        thread = threading.Thread(target=out.append, args=(turn,))
        out.append(thread.name)
        thread.start()
        thread.join()
    return out


@pytest.mark.usefixtures("no_ticks")
def test_a_finaliser_is_no_part_of_the_run_whatever_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    around.run("", seed=7, store=MemoryStore())  # everything is in place and loaded
    asked = [(module, name, Looks(getattr(module, name))) for module, name in
             ((scope, "_scope"), (scope, "_overlay"), (strays, "_session"))]  # fmt: skip
    for module, name, looks in asked:
        monkeypatch.setattr(module, name, looks)
    for (_, _, looks), name in zip(asked, ("in_context", "set_variables"), strict=False):
        original = getattr(scope, name)
        for module in list(sys.modules.values()):
            if getattr(module, name, None) is original:
                monkeypatch.setattr(module, name, looks.get)
    with_it = around.run(str(tmp_path), seed=7, store=MemoryStore())
    assert [name for _, name, looks in asked if looks.count] == []
    assert [type(one) for one in seen] == [str, list]
    assert threading.active_count() == 1
    assert with_it.status == "completed"
    assert with_it.unrecorded == []
    assert with_it.replay().verdict == "identical"
    without = around.run("", seed=7, store=MemoryStore())
    # The clock since the start, the seeded draws, the names of threads. What is drawn from the entropy is another.
    assert moved(with_it) == moved(without)


def moved(trace: Trace) -> list[object]:
    out = trace.output
    return [
        [out[at] - out[0] for at in range(0, len(out), 7)], [out[at] for at in range(1, len(out), 7)],
        [out[at].partition(" ")[0] for at in range(5, len(out), 7)],
    ]  # fmt: skip


@pytest.mark.usefixtures("no_ticks")
@pytest.mark.parametrize("first", [False, True])
def test_callbacks_of_others_lie_between_and_move_no_clock(first: bool) -> None:
    def other(*_: object) -> None:
        time.perf_counter()
        asyncio.events._get_running_loop()

    plain = reads.run(False, seed=7, store=MemoryStore())
    gc.callbacks.insert(0 if first else len(gc.callbacks), other)
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


def test_a_stock_loop_is_not_that_of_a_run() -> None:
    async def inner() -> bool:
        return is_inner(asyncio.get_running_loop())

    @agent
    async def asks() -> bool:
        return is_inner(asyncio.get_running_loop())

    assert asks.run(store=MemoryStore()).output is True
    assert asyncio.run(inner()) is False
    assert not is_inner(None)
