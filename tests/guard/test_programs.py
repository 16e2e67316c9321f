"""Random programs replay byte for byte in another process, under another zone, locale, hash seed and environment."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from agentloom import Trace
from agentloom.store import open_store

ROOT = Path(__file__).parents[2]
COUNT = int(os.environ.get("GUARD_PROGRAMS", "200"))
SEED = int(os.environ.get("GUARD_SEED", "6021"))


def child(mode: str, folder: Path, draw: random.Random, **more: str) -> str:
    """Record or replay in another process, under a hash seed of its own."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    base = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "HOME": str(folder)}
    base["PYTHONHASHSEED"] = str(draw.randint(0, 2**31))
    command = [sys.executable, "-m", "tests.guard.programs", mode, str(folder), str(SEED), str(COUNT)]
    done = subprocess.run(command, env=base | more, stdout=subprocess.PIPE, check=True, timeout=240)
    return done.stdout.decode()


def test_random_programs_replay_elsewhere(tmp_path: Path) -> None:
    print(f"GUARD_SEED={SEED} GUARD_PROGRAMS={COUNT}")
    draw = random.Random(SEED)
    zones = draw.sample(["Europe/Berlin", "America/St_Johns", "Asia/Tokyo", "Pacific/Apia", "UTC"], 2)
    child("record", tmp_path, draw, TZ=zones[0], LC_ALL="C", GUARD_1="a", GUARD_2="b")
    verdicts = json.loads(child("replay", tmp_path, draw, TZ=zones[1], LC_ALL="C.UTF-8", GUARD_3="c"))
    assert [verdict for verdict in verdicts if verdict != "identical"] == []
    assert len(verdicts) == COUNT


def test_two_runs_of_a_program_differ(tmp_path: Path) -> None:
    """Or equal replays would say nothing."""
    from tests.guard.programs import record

    store = open_store(tmp_path)
    outputs = [[Trace.open(run, store).output for run in record(tmp_path, SEED, 6)] for _ in range(2)]
    assert sum(one != two for one, two in zip(*outputs, strict=True)) >= 5
