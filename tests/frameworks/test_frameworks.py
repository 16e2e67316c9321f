"""Agents of frameworks, none of them written for agentloom: recorded with one line, replayed in a fresh process.

Timing is shuffled by the server, the hash seed is another one, the first run of a cold process is among them, and on
replay there is no server. ``python -m tests.frameworks.table 50`` makes fifty runs of each.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.frameworks.proving import PROGRAMS, missing, prove

RUNS = int(os.environ.get("FRAMEWORK_RUNS", "5"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_every_run_replays_in_a_fresh_process(program: str, tmp_path: Path) -> None:
    if missing(program):
        pytest.skip(
            f"NOT TESTED: {', '.join(missing(program))} not installed (python -m tests.frameworks.table)"
        )
    equal, first = prove(program, RUNS, tmp_path)
    assert (equal, first) == (RUNS, "")


def test_the_programs_are_short() -> None:
    found = sorted(path.stem for path in (Path(__file__).parent / "programs").glob("*.py"))
    assert found == sorted(PROGRAMS)
    for program in PROGRAMS:
        text = (Path(__file__).parent / "programs" / f"{program}.py").read_text("utf-8")
        assert len(text.splitlines()) < 60
        assert "agentloom" not in text
