"""Case 16: twenty processes resume one run: one goes on, nineteen are told who has it; the owner is killed: the next
one gets it."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.cli.scripts import Done, Scripts
from tests.cli.suspending import WRITES, begin, ended, reaped, refunds, suspended, until

KEYED = WRITES.replace("@tool\n", "@tool(idempotent=True)\n")
"""As the other, with a tool that may be called again: it writes once for each key."""


__all__ = ["reaped"]
pytestmark = pytest.mark.usefixtures("reaped")


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def held(scripts: Scripts, number: int) -> tuple[str, list[Done], Done]:
    """``number`` processes resume a run; those who could not, and the one that went on, which ends when they have."""
    run = suspended(scripts, WRITES, "shop", "812")
    assert scripts.call("answer", run, "yes").code == 0
    processes = [begin(scripts, "resume", run) for _ in range(number)]
    limit = time.monotonic() + 200
    while sum(process.poll() is not None for process in processes) < number - 1:
        assert time.monotonic() < limit
        time.sleep(0.02)
    (owner,) = [process for process in processes if process.poll() is None]
    refused = [ended(process) for process in processes if process is not owner]
    (scripts.folder / "go.txt").touch()
    return run, refused, ended(owner)


def test_one_goes_on_and_nineteen_are_told_who_has_it(scripts: Scripts) -> None:
    run, refused, owner = held(scripts, 20)
    assert owner.code == 0, owner.all
    assert refunds(scripts, "charges.txt") == ["812"]
    pid = (scripts.folder / "began.txt").read_text()
    for done in refused:
        assert done.code == 1, done.all
        assert re.search(rf"run {run} is being written by process {pid} on ", done.err), done.err
        assert "next: " in done.err
    assert scripts.replay().code == 0


def test_the_owner_is_killed_and_the_next_one_gets_it(scripts: Scripts) -> None:
    run = suspended(scripts, KEYED, "shop", "812")
    assert scripts.call("answer", run, "yes").code == 0
    owner = begin(scripts, "resume", run)
    until(scripts.folder / "began.txt", owner)
    os.kill(int((scripts.folder / "began.txt").read_text()), signal.SIGKILL)
    done = ended(owner)
    assert done.code == -signal.SIGKILL, done.all
    assert "crashed" in done.err
    (scripts.folder / "go.txt").touch()
    again = scripts.call("resume", run)
    assert again.code == 0, again.all
    assert refunds(scripts, "charges.txt") == ["812"]


def test_the_command_is_killed_and_its_program_with_it(scripts: Scripts) -> None:
    """A write that may have happened is asked about, and the run goes on with the answer."""
    run = suspended(scripts, WRITES, "shop", "812")
    assert scripts.call("answer", run, "yes").code == 0
    owner = begin(scripts, "resume", run)
    until(scripts.folder / "began.txt", owner)
    owner.kill()
    ended(owner)
    again = scripts.call("resume", run)
    assert again.code == 75, again.all
    assert "in doubt" in again.err
    assert f"agentloom answer {run[-4:]} yes --result JSON" in again.err
    assert "crashed" not in scripts.call("ls").out
    (scripts.folder / "go.txt").touch()
    assert scripts.call("answer", run, "no").code == 0
    done = scripts.call("resume", run)
    assert done.code == 0, done.all
    assert refunds(scripts, "charges.txt") == ["812"]
