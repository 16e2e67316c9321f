"""Case 10: a run of 300,000 calls: the first screen at once, a jump to the last call and to any other, bounded memory,
and a view that is partial says so. The command runs in a process of its own, whose time and memory are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

CALLS = 300_000
SECONDS = 1.0  # of processor time, start of the interpreter included
MEBIBYTES = 120

pytestmark = pytest.mark.slow


READER = """
import sys
from agentloom import agent, tool
from agentloom.store import LocalStore

@tool(effect="read")
def row(number: int) -> dict[str, object]:
    return {"row": number, "text": f"{number} " * 20}

@agent
def reader(count: int) -> int:
    return sum(row(number)["row"] for number in range(count))

reader.run(int(sys.argv[2]), store=LocalStore(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run is made in a process of its own: what it holds meanwhile would slow down every fork of later tests."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "reader.py").write_text(READER)
    command = [sys.executable, str(folder / "reader.py"), str(folder / "store"), str(CALLS)]
    subprocess.run(command, check=True)
    return folder / "store"


@dataclass(frozen=True)
class Shown:
    out: str
    err: str
    code: int
    seconds: float
    mebibytes: float


def loom(store: Path, *words: str) -> Shown:
    """Run the command; its processor time and the most memory that it held."""
    program = (
        "import resource, subprocess, sys, json\n"
        "done = subprocess.run(sys.argv[1:], capture_output=True, text=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([done.stdout, done.stderr, done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss]))"
    )
    command = [sys.executable, "-m", "agentloom", "--store", str(store), *words]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, *command],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    out, err, code, seconds, kibibytes = json.loads(done.stdout)
    return Shown(out, err, code, seconds, kibibytes / 1024)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ls"], "300,000 calls"),
        (["show", "last"], "299,990 calls more"),
        (["show", "last", "300000"], "call 300000 of 300000"),
        (["show", "last", "150000"], "call 150000 of 300000"),
        (["show", "last", "root/reader#123456"], "call 123456 of 300000"),
        (["show", "last", "299999:outcome.row"], "299998"),
        (["show", "last", "output"], "44999850000"),
    ],
)  # fmt: skip
def test_any_screen_comes_at_once_in_bounded_memory(store: Path, words: list[str], expected: str) -> None:
    shown = loom(store, *words)
    assert shown.code == 0, shown.err
    assert expected in shown.out
    assert shown.seconds < SECONDS
    assert shown.mebibytes < MEBIBYTES
    if words[0] == "show":
        assert "partial view" in shown.err
        assert "of 300,000 calls were read" in shown.err


def test_a_call_that_is_not_there_is_refused_at_once(store: Path) -> None:
    shown = loom(store, "show", "last", "300001")
    assert shown.code == 1
    assert "the run has 300,000" in shown.err
    assert shown.seconds < SECONDS
