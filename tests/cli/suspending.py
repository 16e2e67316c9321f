"""Agents that wait, for tests of the commands that deal with them."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom.errors import Suspended
from agentloom.store import Store
from tests.cli.scripts import Done, Scripts, clean

__all__ = [
    "REFUND", "SEVERAL", "WRITES", "Seat", "begin", "ended", "on_terminal", "paid", "reaped", "refunds", "runs",
    "suspended", "until", "waits",
]  # fmt: skip

REFUND = """
import os
from agentloom import agent, ask, tool

@tool(effect="read")
async def lookup_order(order: int) -> dict:
    return {"order": order, "total": 400}

@tool
async def issue_refund(order: int, total: int) -> str:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "refunds.txt"), "a") as file:
        file.write(f"{order} {total}\\n")
    return "ok"

@agent
async def support(order: int) -> str:
    found = await lookup_order(order)
    said = await ask(f"Refund order {order} for ${found['total']}?", choices=["yes", "no"], evidence=found)
    if said == "yes":
        await issue_refund(order, found["total"])
        return f"Refunded order {order}."
    return f"Order {order} stays paid."
"""
"""Asks once, then does something that must not happen twice."""

SEVERAL = """
import asyncio
from agentloom import agent, ask, signal, sleep

@agent
async def several() -> str:
    first, second = await asyncio.gather(ask("The first?"), ask("The second?", schema=int))
    return f"{first} {second}"

@agent
async def message() -> str:
    return f"paid {await signal('payment')}"

@agent
async def nap() -> str:
    await sleep(3600)
    return "rested"

@agent
async def soon() -> str:
    return await ask("Still there?", deadline=61.0, default="no answer")
"""
"""Two questions at once, a message, a time, a deadline."""

WRITES = """
import os, pathlib, time
from agentloom import agent, tool
from agentloom.sync import ask

HERE = pathlib.Path(__file__).parent

@tool
def charge(order: int) -> str:
    (HERE / "began.tmp").write_text(str(os.getpid()))
    (HERE / "began.tmp").rename(HERE / "began.txt")
    while not (HERE / "go.txt").exists():
        time.sleep(0.01)
    with open(HERE / "charges.txt", "a") as file:
        file.write(f"{order}\\n")
    return "ok"

@agent
def shop(order: int) -> str:
    if ask(f"Charge {order}?", choices=["yes", "no"]) == "no":
        return "not charged"
    return charge(order)
"""
"""A write that takes as long as the test wants it to."""


@agentloom.agent
async def paid() -> object:
    """Waits for a message."""
    return await agentloom.signal("payment")


def waits(program: Any, store: Store | str, *args: object) -> str:
    """Run an agent in this process until it waits; its run id."""
    with pytest.raises(Suspended) as caught:
        program.run(*args, store=store)
    return str(caught.value.run)


def suspended(scripts: Scripts, text: str = REFUND, target: str = "support", *args: str) -> str:
    """Record an agent that waits; its run id."""
    scripts.write(text)
    before = set(runs(scripts))
    done = scripts.call("run", f"agent.py:{target}", "--", *args)
    assert done.code == 75, done.all
    (run,) = set(runs(scripts)) - before
    return run


def runs(scripts: Scripts) -> list[str]:
    """The runs of the store, by their files."""
    folder = scripts.store / "runs"
    return sorted(path.stem for path in folder.glob("*.loom")) if folder.exists() else []


def refunds(scripts: Scripts, name: str = "refunds.txt") -> list[str]:
    """What the tool that writes has done."""
    path = scripts.folder / name
    return path.read_text().splitlines() if path.exists() else []


_begun: list[subprocess.Popen[str]] = []


def begin(scripts: Scripts, *args: str) -> subprocess.Popen[str]:
    """Start a command, and do not wait for it. ``reaped`` ends what a test that fails leaves behind."""
    process = subprocess.Popen(
        [sys.executable, "-m", "agentloom", "--store", str(scripts.store), *args],
        cwd=scripts.folder, env=clean(), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _begun.append(process)
    return process


@pytest.fixture
def reaped() -> Iterator[None]:
    """No command that `begin` started outlives the test."""
    yield
    while _begun:
        process = _begun.pop()
        process.kill()
        if process.stdout is not None and not process.stdout.closed:
            process.communicate()


def ended(process: subprocess.Popen[str]) -> Done:
    """What a command that was started left behind."""
    out, err = process.communicate(timeout=60)
    return Done(process.returncode, out, err)


def until(path: Path, process: subprocess.Popen[str] | None = None, seconds: float = 30) -> None:
    """Wait until a file is there."""
    limit = time.monotonic() + seconds
    while not path.exists():
        if time.monotonic() > limit or (process is not None and process.poll() is not None):
            raise AssertionError(f"no {path.name}: {process and ended(process)}")
        time.sleep(0.01)


class Seat:
    """A command at a terminal of its own: what it shows, and what is typed."""

    def __init__(self, scripts: Scripts, args: Sequence[str]) -> None:
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(scripts.folder)
            command = [sys.executable, "-m", "agentloom", "--store", str(scripts.store), *args]
            os.execve(sys.executable, command, clean() | {"NO_COLOR": "1"})
        self.shown = ""
        self._seen = 0

    def sees(self, text: str, seconds: float = 30) -> None:
        """Wait until ``text`` is shown, behind what was waited for before."""
        limit = time.monotonic() + seconds
        while (at := self.shown.find(text, self._seen)) < 0:
            if not self._read(max(0, limit - time.monotonic())):
                raise AssertionError(f"never showed {text!r}: {self.shown[self._seen :]}")
        self._seen = at + len(text)

    def types(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def ends(self) -> int:
        """Its exit code."""
        while self._read(30):
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.terminal)
        return os.waitstatus_to_exitcode(status)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.terminal)

    def _read(self, seconds: float) -> bool:
        if not select.select([self.terminal], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # the other end is closed
            return False
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)


def on_terminal(scripts: Scripts, *args: str) -> Seat:
    """Start a command at a terminal."""
    return Seat(scripts, args)
