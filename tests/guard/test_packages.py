"""Real packages work in a guarded run, and their values come again in a process that has loaded nothing yet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.guard.packages import AGENTS

ROOT = Path(__file__).parents[2]
NEEDS = {name: name.partition(",")[0].replace("-", "_") for name in AGENTS}


def child(mode: str, folder: Path, names: list[str], **more: str) -> str:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": str(folder)}
    command = [sys.executable, "-m", "tests.guard.packages", mode, str(folder), *names]
    done = subprocess.run(command, env=base | more, stdout=subprocess.PIPE, check=True, timeout=200)
    return done.stdout.decode()


@pytest.mark.slow
def test_packages_replay_in_a_cold_process(tmp_path: Path) -> None:
    names = [name for name in AGENTS if find_spec(NEEDS[name]) is not None]
    assert "openai, in the run" in names, "the development extra is not installed"
    child("record", tmp_path, names, PYTHONHASHSEED="1", TZ="Europe/Berlin")
    verdicts = json.loads(child("replay", tmp_path, names, PYTHONHASHSEED="2", TZ="Asia/Tokyo"))
    assert verdicts == {name: ["identical"] * 3 for name in names}
