"""Agents of frameworks, none of them written for agentloom: recorded with one line, replayed in a fresh process.

Timing is shuffled by the server, the hash seed is another one, the first run of a cold process is among them, and on
replay there is no server. ``FRAMEWORK_RUNS=50 pytest tests/frameworks`` makes as many runs of each.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentloom.store import open_store

ROOT = Path(__file__).resolve().parents[2]
RUNS = int(os.environ.get("FRAMEWORK_RUNS", "6"))
PROGRAMS = {
    "langgraph_agent": ("langgraph", "langchain_openai"),
    "langgraph_sync_agent": ("langgraph", "langchain_openai"),
    "pydantic_ai_agent": ("pydantic_ai",),
    "openai_agents_agent": ("agents",),
}


def missing(program: str) -> list[str]:
    return [name for name in PROGRAMS[program] if importlib.util.find_spec(name) is None]


def process(*arguments: str, seed: int, folder: Path) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    path = os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        env=kept | {"PYTHONHASHSEED": str(seed), "PYTHONPATH": path},
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    return done.stdout


def tape(*arguments: str, seed: int, folder: Path) -> Any:
    return json.loads(
        process("-m", "tests.frameworks.tape", *arguments, seed=seed, folder=folder).splitlines()[-1]
    )


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_run_replays_in_a_fresh_process(program: str, tmp_path: Path) -> None:
    if missing(program):
        pytest.skip(
            f"NOT TESTED: {', '.join(missing(program))} not installed (pip install -e '.[frameworks]')"
        )
    store = tmp_path / "store"
    recorded = tape("record", program, str(store), str(RUNS), seed=1, folder=tmp_path)
    assert recorded["runs"] == RUNS
    assert recorded["kinds"] == ["model"]
    assert (
        recorded["calls"] == recorded["asked"] >= 3 * RUNS
    )  # each model call once, and none beside the seam
    replayed = tape("replay", program, str(store), "0", seed=2, folder=tmp_path)
    assert replayed["verdicts"] == {"identical": RUNS, "compared output": RUNS}, replayed["first"]
    first = open_store(store).runs()[-1].run
    printed = process("-m", "agentloom", "replay", first, "--store", str(store), seed=3, folder=tmp_path)
    assert "IDENTICAL" in printed


def test_the_programs_are_short() -> None:
    for program in PROGRAMS:
        text = (Path(__file__).parent / "programs" / f"{program}.py").read_text("utf-8")
        assert len(text.splitlines()) < 60
        assert "agentloom" not in text
