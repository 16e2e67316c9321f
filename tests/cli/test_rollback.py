"""``agentloom rollback``: what a run has done is taken back in processes of their own, each call once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom import Trace

AGENT = """
import os
from agentloom import agent, tool

def note(*what):
    with open("effects.txt", "a") as file:
        print(*what, file=file)

def free(seat, result):
    note("free", seat, result)
    if os.path.exists("fail"):
        os.unlink("fail")
        raise ConnectionError("down")
    if os.path.exists("die"):
        os.unlink("die")
        os._exit(9)

@tool(undo=free)
def book(seat):
    note("book", seat)
    return f"ticket {seat}"

@tool
def mail_to(who):
    note("mail", who)

@agent
def trip():
    book("1A")
    mail_to("ann")
    book("2B")
    return "booked"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(AGENT)
    assert call(tmp_path, "run", "bot.py:trip").returncode == 0
    (tmp_path / "effects.txt").unlink()
    return tmp_path


def call(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentloom", *command, "--store", "store"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def effects(folder: Path) -> list[str]:
    path = folder / "effects.txt"
    return path.read_text().splitlines() if path.exists() else []


def run_of(folder: Path) -> str:
    return Trace.open("last", folder / "store").run_id


def test_the_plan_does_nothing(folder: Path) -> None:
    run = run_of(folder)
    done = call(folder, "rollback", run, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        f"{run[-4:]}  2 to take back, in this order; nothing was done",
        "  3 book  -> free(seat='2B', result='ticket 2B')",
        "  1 book  -> free(seat='1A', result='ticket 1A')",
        "  2 mail_to  cannot be taken back: it has no undo",
    ]
    assert effects(folder) == []
    plan = json.loads(call(folder, "rollback", run, "--dry-run", "--json").stdout)
    assert [one["number"] for one in plan["can"]] == [3, 1]
    assert plan["cannot"] == [{"number": 2, "tool": "mail_to"}]


def test_it_is_taken_back_once(folder: Path) -> None:
    run = run_of(folder)
    first = call(folder, "rollback", run)
    assert first.returncode == 0, first.stderr
    assert f"-- 2 calls of run {run[-4:]} taken back" in first.stderr
    assert effects(folder) == ["free 2B ticket 2B", "free 1A ticket 1A"]
    again = json.loads(call(folder, "rollback", run, "--json").stdout)
    assert (again["status"], again["undone"]) == ("completed", [3, 1])
    assert len(effects(folder)) == 2


def test_an_undo_that_fails_is_tried_again_when_it_is_called_again(folder: Path) -> None:
    run = run_of(folder)
    (folder / "fail").touch()
    first = call(folder, "rollback", run)
    assert first.returncode == 1
    assert "ConnectionError: down" in first.stderr
    assert "-- failed  not all of run" in first.stderr
    assert call(folder, "rollback", run).returncode == 0
    assert effects(folder) == ["free 2B ticket 2B", "free 2B ticket 2B", "free 1A ticket 1A"]


def test_an_undo_in_which_the_process_died_is_asked_about(folder: Path) -> None:
    run = run_of(folder)
    (folder / "die").touch()
    assert call(folder, "rollback", run).returncode == 9
    asked = call(folder, "rollback", run)
    assert asked.returncode == 75, asked.stderr
    by = json.loads(call(folder, "rollback", run, "--json").stdout)["by"]
    answered = call(folder, "answer", by, "yes", "--result", "null")
    assert answered.returncode == 0, answered.stderr
    assert call(folder, "rollback", run).returncode == 0
    assert effects(folder) == ["free 2B ticket 2B", "free 1A ticket 1A"]


def test_a_run_with_nothing_to_take_back(folder: Path) -> None:
    (folder / "bot.py").write_text(AGENT.replace("@tool(undo=free)", "@tool"))
    done = call(folder, "rollback", run_of(folder))
    assert done.returncode == 1
    assert "no call that can be taken back" in done.stderr


def test_a_replay_up_to_a_call(folder: Path) -> None:
    (folder / "bot.py").write_text(AGENT.replace('book("2B")', 'book("2C")'))
    assert call(folder, "replay", "last").returncode == 3
    done = call(folder, "replay", "last", "--until", "2")
    assert done.returncode == 0, done.stderr
    assert "up to call 2 of 3: the rest was not replayed" in done.stdout + done.stderr
    wrong = call(folder, "replay", "last", "--until", "7")
    assert wrong.returncode == 1
    assert "has no call 7" in wrong.stderr
