"""The clock of a run goes on while real time passes: what waits for it ends, and replays alike in another process."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import Trace, agent, tool
from agentloom.errors import StoreFailed
from agentloom.format.journal import Journal, check
from agentloom.replay.recording import Recording
from agentloom.runtime.source import TICK
from agentloom.store import MemoryStore, open_store
from spec import verify
from tests.cli.scripts import Scripts
from tests.guard.ticking import STEP, WAIT, compute
from tests.runtime.fakes import FailingStore

ROOT = Path(__file__).parents[2]


def child(mode: str, folder: Path, **more: str) -> str:
    """Record or replay in another process."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": str(folder)} | more
    command = [sys.executable, "-m", "tests.guard.ticking", mode, str(folder)]
    return subprocess.run(command, env=env, stdout=subprocess.PIPE, check=True, timeout=120).stdout.decode()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("ticks")
    child("record", folder, PYTHONHASHSEED="1", TZ="Asia/Tokyo")
    return folder, json.loads((folder / "recorded.json").read_text())


def test_every_program_ends_and_is_measured_as_long_as_it_took(recorded: tuple[Path, dict[str, Any]]) -> None:
    for name, (_, output, seconds, entries, ticks) in recorded[1].items():
        assert WAIT <= output[0] <= max(seconds, WAIT) + 0.1, name
        assert ticks <= seconds * 1e9 / TICK + 1, name
        assert entries <= ticks + seconds / STEP + 20, name


def test_every_program_replays_alike_in_another_process(recorded: tuple[Path, dict[str, Any]]) -> None:
    folder, found = recorded
    again = json.loads(child("replay", folder, PYTHONHASHSEED="2", TZ="America/St_Johns"))
    assert again == {name: ["identical", row[1]] for name, row in found.items()}


def test_both_checkers_know_ticks(recorded: tuple[Path, dict[str, Any]]) -> None:
    folder, found = recorded
    store = open_store(folder / "store")
    data = store.read(found["agent slow"][0])
    kinds = [entry["kind"] for entry in Journal.parse(data).entries]
    assert "tick" in kinds
    assert check(data).complete is verify.check(data)["complete"] is True


SCRIPT = """
import asyncio, queue, threading, time
began = time.time()
while time.time() - began < .1:
    try:
        queue.Queue().get(timeout=.03)
    except queue.Empty:
        print("empty")
print(round(time.time() - began, 6))
began = time.monotonic()
while time.monotonic() < began + .05:
    pass
async def main():
    began = time.monotonic()
    while time.monotonic() - began < .1:
        await asyncio.sleep(.03)
    print(round(time.monotonic() - began, 6))
asyncio.run(main())
def look():
    began = time.perf_counter()
    while time.perf_counter() - began < .1:
        threading.Event().wait(.03)
    print(round(time.perf_counter() - began, 6))
thread = threading.Thread(target=look)
thread.start()
thread.join()
"""


def test_a_script(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    done = scripts.run(SCRIPT)
    assert done.code == 0, done.all
    measured = [float(line) for line in done.out.splitlines() if line != "empty"]
    assert len(measured) == 3
    assert all(0.1 <= seconds < 5 for seconds in measured)
    again = scripts.replay()
    assert again.code == 0, again.all
    assert "IDENTICAL" in again.out


def test_a_process_takes_the_time_that_it_takes(tmp_path: Path) -> None:
    scripts = Scripts(tmp_path)
    done = scripts.run(
        """
        import subprocess, sys, time
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import time; time.sleep(.2)"])
        print(time.perf_counter() - began)
        """
    )
    assert float(done.out) >= 0.2, done.all


# -- another number of readings ---------------------------------------------------------------------------------------

READINGS = {"before": 4, "between": 3}
SEEN: list[float] = []


@tool(effect="read")
def say(text: str) -> str:
    return text


@agent(guard="virtual")
async def counted() -> bool:
    for _ in range(READINGS["before"]):
        time.time()
    compute()
    SEEN.append(time.monotonic())
    say("one")
    for _ in range(READINGS["between"]):
        time.time()
    compute()
    await asyncio.sleep(STEP)
    SEEN.append(time.monotonic())
    say("two")
    return SEEN[-1] - SEEN[-2] >= STEP


@pytest.mark.parametrize("before", [0, 3, 4, 5, 50])
@pytest.mark.parametrize("between", [0, 2, 3, 4, 50])
def test_another_number_of_readings_is_no_divergence(
    before: int, between: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    SEEN.clear()
    trace = counted.run(store=MemoryStore())
    assert Recording.from_journal(trace.journal).ticks
    monkeypatch.setitem(READINGS, "before", before)
    monkeypatch.setitem(READINGS, "between", between)
    assert trace.replay().verdict == "identical"
    assert SEEN[2] < SEEN[3]
    if (before, between) == (4, 3):
        assert SEEN[2:] == SEEN[:2]


# -- what stops, and what goes on -------------------------------------------------------------------------------------


@agent(guard="virtual")
def goes_on() -> float:
    compute()
    with contextlib.suppress(BaseException):
        time.monotonic()
    began = time.monotonic()
    while time.monotonic() - began < STEP:  # the run is lost, and yet this ends
        compute()
    return time.monotonic() - began


def test_a_tick_that_cannot_be_written_stops_the_run_and_no_clock() -> None:
    with pytest.raises(StoreFailed, match="the disk is full"):
        goes_on.run(store=FailingStore(fail_at=2))


def test_no_ticks_without_a_guard() -> None:
    @agent(guard="off")
    def off() -> bool:
        before = time.monotonic()
        compute()
        return time.monotonic() - before >= STEP

    trace = off.run(store=MemoryStore())
    assert trace.output is True
    assert not Recording.from_journal(trace.journal).ticks


def test_importing_and_finalisers_are_no_readings() -> None:
    @agent(guard="virtual")
    def imports() -> float:
        before = time.monotonic()
        sys.modules.pop("tests.guard.slow_import", None)
        import tests.guard.slow_import  # noqa: F401

        return time.monotonic() - before

    trace = imports.run(store=MemoryStore())
    assert sum(tick.reads for tick in Recording.from_journal(trace.journal).ticks) == 2
    assert trace.replay().verdict == "identical"
    assert trace.replay().verdict == "identical", "now that it is loaded"


def test_a_replay_that_has_diverged_comes_to_an_end() -> None:
    told = ["first"]

    @agent(guard="virtual")
    def waits_after() -> None:
        with contextlib.suppress(BaseException):
            say(told[0])
        began = time.monotonic()
        while time.monotonic() - began < WAIT:
            compute()

    trace = waits_after.run(store=MemoryStore())
    told[0] = "second"
    assert trace.replay(check=False).verdict == "diverged"


@tool(effect="read")
async def later(number: int) -> int:
    return number


async def part(number: int) -> None:
    for one in range(3):
        await later(number + one)
        time.time()
        await asyncio.sleep(0)


async def shared_block(wrong: list[float]) -> Trace:
    """A block whose run is in several threads at once, which all read its clock."""
    over = threading.Event()
    inside = [True]

    def read() -> None:
        last = 0.0
        while not over.is_set():
            now = time.monotonic()
            if now < last and inside[0]:
                wrong.append(now - last)
            last = now

    async with agentloom.record("shared", store=MemoryStore()) as run:
        threads = [threading.Thread(target=contextvars.copy_context().run, args=(read,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for number in range(30):
            await later(number)
            if number % 10 == 0:
                await agentloom.record(part(number))
        inside[0] = False
    over.set()
    for thread in threads:
        thread.join()
    return run.trace


def test_threads_that_share_a_run_write_one_at_a_time_and_never_go_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentloom.runtime.live.TICK", 0)
    wrong: list[float] = []
    for _ in range(3):
        trace = asyncio.run(shared_block(wrong))
        assert trace.status == "completed"
        assert trace.verify().consistent
    assert wrong == []
