"""Real packages that use threads: recorded here, replayed by another process under another hash seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.threads.packages import AGENTS, TIMES

ROOT = Path(__file__).parents[2]


def child(mode: str, folder: Path, seed: str) -> str:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": str(folder), "PYTHONHASHSEED": seed}
    command = [sys.executable, "-m", "tests.threads.packages", mode, str(folder)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_packages_replay_in_another_process(tmp_path: Path) -> None:
    assert "openai_in_a_pool" in AGENTS, "the development extra is not installed"
    child("record", tmp_path, "1")
    assert json.loads(child("replay", tmp_path, "2")) == {name: ["identical"] * TIMES for name in AGENTS}
