"""Twenty runs, four threads and a foreign task at once: nobody sees another's values, or is refused for another."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import random
import secrets
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentloom import Trace, agent, sync, tool
from agentloom.runtime import guard_start
from agentloom.runtime.scope import current
from agentloom.store import MemoryStore

RUNS, THREADS = 20, 4
LONG_AGO = 1_000_000_000 * 10**9  # in 2001: so a clock tells whose it is
YEARS = (2001, 2001)


@tool(effect="read")
async def ask(number: int) -> dict[str, Any]:
    await asyncio.sleep(random.random() / 200)
    return {"number": number, "year": time.gmtime().tm_year, "tool": os.environ["GUARD_TOGETHER"]}


@tool(effect="read")
def ask_now(number: int) -> dict[str, Any]:
    return {"number": number, "year": time.gmtime().tm_year, "tool": os.environ["GUARD_TOGETHER"]}


def look(number: int) -> list[Any]:
    os.environ["GUARD_TOGETHER"] = str(number)
    years = (time.gmtime().tm_year, dt.datetime.now(dt.UTC).year)
    drawn = [random.random(), secrets.token_hex(8), str(uuid.uuid4()), str(uuid.uuid1())]
    return [years, os.environ["GUARD_TOGETHER"], time.monotonic_ns(), drawn]


@agent(guard="strict")
async def awaited(number: int) -> list[Any]:
    async def branch(step: int) -> list[Any]:
        answer = await ask(number)
        return [answer, look(number), step]

    first = look(number)
    await asyncio.sleep(0.001)
    return [first, *await asyncio.gather(*(branch(step) for step in range(3)))]


@agent(guard="strict")
def blocking(number: int) -> list[Any]:
    first = look(number)
    time.sleep(0.002)
    return [first, [ask_now(number), look(number), 0], [sync.step(lambda: ask_now.__name__), look(number), 1]]


class Foreign:
    """Code that is no part of any run: it must see the world, and may touch it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.wrong: list[str] = []
        self.turns = 0
        self.over = threading.Event()

    def turn(self) -> None:
        self.turns += 1
        facts = {
            "time": time.time() > LONG_AGO / 1e9 + 10**8,
            "date": dt.date.today().year > 2020 and dt.datetime.now(dt.UTC).year > 2020,  # noqa: DTZ011
            "environment": os.environ["GUARD_TOGETHER"] == "foreign",
            "scope": current() is None,
            "address": isinstance(id(self), int),
            "file": (self.folder / "foreign.txt").read_text() == "foreign",
            "bytes": os.urandom(4) != os.urandom(4),
        }
        self.wrong += [name for name, right in facts.items() if not right]

    def keep_on(self) -> None:
        try:
            while not self.over.is_set():
                self.turn()
        except BaseException as error:
            self.wrong.append(repr(error))
            raise

    async def keep_on_too(self) -> None:
        while not self.over.is_set():
            self.turn()
            await asyncio.sleep(0)


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Foreign:
    monkeypatch.setenv("GUARD_TOGETHER", "foreign")
    monkeypatch.setattr(guard_start, "_time_ns", lambda: LONG_AGO)
    (tmp_path / "foreign.txt").write_text("foreign")
    return Foreign(tmp_path)


def checked(number: int, trace: Trace) -> list[str]:
    """What a run has seen is its own: its years, its variable, its time in order. What it drew."""
    output: Any = trace.output
    looks = [output[0], *(row[1] for row in output[1:])]
    assert [tuple(one[0]) for one in looks] == [YEARS] * len(looks)
    assert [one[1] for one in looks] == [str(number)] * len(looks)
    shown = sorted(one[2] for one in looks)
    assert len(set(shown)) == len(shown)
    for row in output[1:]:
        if isinstance(row[0], dict):
            assert (row[0]["number"], row[0]["tool"]) == (number, str(number))
            assert row[0]["year"] > 2020, "a tool is outside the run"
    return [str(value) for one in looks for value in one[3]]


def apart(traces: list[Trace]) -> None:
    drawn = [value for number, trace in enumerate(traces) for value in checked(number, trace)]
    assert len(set(drawn)) == len(drawn), "two runs drew the same"


def threads(work: Callable[[], object]) -> list[threading.Thread]:
    made = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in made:
        thread.start()
    return made


def test_async_runs_threads_and_a_task_at_once(foreign: Foreign) -> None:
    async def everything() -> list[Trace]:
        task = asyncio.create_task(foreign.keep_on_too())
        made = threads(foreign.keep_on)
        try:
            return list(await asyncio.gather(*(awaited.arun(n, store=MemoryStore()) for n in range(RUNS))))
        finally:
            foreign.over.set()
            await task
            for thread in made:
                thread.join()

    traces = asyncio.run(everything())
    assert foreign.wrong == []
    assert foreign.turns > RUNS
    apart(traces)
    assert {trace.replay().verdict for trace in traces} == {"identical"}
    assert os.environ["GUARD_TOGETHER"] == "foreign"


def test_sync_runs_and_replays_in_threads_at_once(foreign: Foreign) -> None:
    made = threads(foreign.keep_on)
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            traces = list(pool.map(lambda n: blocking.run(n, store=MemoryStore()), range(RUNS)))
            verdicts = list(pool.map(lambda trace: trace.replay().verdict, traces))
    finally:
        foreign.over.set()
        for thread in made:
            thread.join()
    assert foreign.wrong == []
    apart(traces)
    assert verdicts == ["identical"] * RUNS
