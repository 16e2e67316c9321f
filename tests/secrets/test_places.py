"""No shape of secret is in a store, wherever a run had it, and the run replays without it (Done-when of the
redactor)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.secrets.shapes import SHAPES, core, holds, make

SEED = 20261128
HERE = Path(__file__).parent

RUN = """
import sys
sys.path.insert(0, {here!r})
from agent_places import everywhere
trace = everywhere.run("begin with " + sys.stdin.read(), store={store!r}, tags={{"about": "x"}}, conversation="c")
print(trace.run_id)
"""
REPLAY = """
import sys
sys.path.insert(0, {here!r})
from agent_places import everywhere
import agentloom
report = agentloom.Trace.load({file!r}).replay(agent=everywhere)
print(report.verdict)
print(report)
"""


def _python(code: str, home: Path, given: str = "", **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=given,
        capture_output=True,
        text=True,
        env={"HOME": str(home), "PATH": os.environ["PATH"], **env},
        cwd=home,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_is_nowhere_in_the_store_and_the_run_replays_without_it(shape: str, tmp_path: Path) -> None:
    print(f"seed {SEED}")
    secret = make(shape, random.Random(f"{SEED} {shape}"))
    home, empty, store = tmp_path / "home", tmp_path / "empty", tmp_path / "store"
    home.mkdir()
    empty.mkdir()
    (home / "secret").write_text(secret)
    _python(RUN.format(here=str(HERE), store=str(store)), home, secret, SECRET_FILE=str(home / "secret"))
    assert holds(store, core(shape, secret)) == []
    (home / "secret").unlink()
    file = next(store.glob("runs/*.loom"))
    said = _python(REPLAY.format(here=str(HERE), file=str(file)), empty)
    assert said.startswith("identical\n"), said
