"""Signals that ask the process of an agent to end: it cleans up, its run ends cancelled, the process by the signal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentloom import Trace
from tests.cli.test_script_ends import LISTENS

AGENT = """
import asyncio, time
from agentloom import agent, ask, tool
import agentloom.sync

@tool
async def slow(seconds):
    if seconds > 1:
        open("there", "w").close()
    await asyncio.sleep(seconds)
    return seconds

@tool
def blocks(seconds):
    open("there", "w").close()
    time.sleep(seconds)

@agent
async def main():
    try:
        await slow(60)
    finally:
        await slow(0)

@agent
def in_sync():
    blocks(60)

@agent
async def asks():
    await ask("go on?")
    await slow(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(AGENT)
    return tmp_path


def ended_by(folder: Path, number: int, *command: str) -> int:
    """The exit status of a command that gets the signal when the agent is under way."""
    (folder / "there").unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-c", LISTENS, sys.executable, "-m", "agentloom", *command, "--store", "store"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (folder / "there").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        os.sched_yield()
    process.send_signal(number)
    return process.wait(60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize(("name", "calls"), [("main", ["cancelled", "ok"]), ("in_sync", ["error"])])
def test_a_recorded_run_ends_cancelled(folder: Path, number: int, name: str, calls: list[str]) -> None:
    assert ended_by(folder, number, "run", f"bot.py:{name}") == -number
    trace = Trace.open("last", folder / "store")
    assert trace.status == "cancelled"
    assert [call.status for call in trace.calls] == calls
    assert trace.verify().complete


def test_a_resumed_run_ends_cancelled(folder: Path) -> None:
    command = [sys.executable, "-m", "agentloom"]
    first = subprocess.run(
        [*command, "run", "bot.py:asks", "--store", "store"], cwd=folder, stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
    )  # fmt: skip
    assert first.returncode == 75, first.stderr
    subprocess.run(
        [*command, "answer", "last", "yes", "--store", "store"], cwd=folder, capture_output=True, check=True
    )
    assert ended_by(folder, signal.SIGTERM, "resume", "last") == -signal.SIGTERM
    trace = Trace.open("last", folder / "store")
    assert (trace.status, [call.status for call in trace.calls]) == ("cancelled", ["ok", "cancelled"])
