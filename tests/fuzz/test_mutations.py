"""Damaged traces: every reader gives a clear answer, and two readers written apart give the same one.

A failure names the number of a trace: ``tests.fuzz.mutations.mutated(NUMBER)`` makes it again.
"""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from agentloom.format.journal import check
from tests.fuzz.mutations import mutated, seeds_of
from tests.fuzz.victims import VICTIMS

FIRST, COUNT = 0, 600
COMMANDS = range(FIRST, 60)
#: Numbers that once brought a reader down.
FOUND = (92, 123, 277, 283, 415, 1161, 1555, 2757)


@pytest.fixture(scope="module")
def own_checker() -> Any:
    spec = importlib.util.spec_from_file_location(
        "loom_verify", Path(__file__).resolve().parents[2] / "spec/verify.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_mutations_reach_far() -> None:
    print(f"seeds {FIRST} to {FIRST + COUNT - 1}, from {len(seeds_of())} traces")
    codes = {check(mutated(seed)).code for seed in range(FIRST, FIRST + COUNT)}
    assert len(codes) > 25, sorted(map(str, codes))


def test_two_checkers_written_apart_agree(own_checker: Any) -> None:
    for seed in range(FIRST, FIRST + COUNT):
        data = mutated(seed)
        ours, theirs = check(data), own_checker.check(data)
        same = (ours.consistent, ours.complete) == (theirs["consistent"], theirs["complete"])
        assert same, f"mutated({seed}): {ours.code} {ours.message} / {theirs['message']}"


@pytest.mark.parametrize("victim", ["parse", "recording"])
def test_readers_answer_clearly(tmp_path: Path, victim: str) -> None:
    path = tmp_path / "mutated.loom"
    for seed in [*range(FIRST, FIRST + COUNT), *FOUND]:
        path.write_bytes(mutated(seed))
        with said(seed):
            VICTIMS[victim](str(path))


@pytest.mark.parametrize("victim", ["store", "show", "show_call", "show_json", "diff", "verify", "replay"])
def test_commands_answer_clearly(tmp_path: Path, victim: str) -> None:
    path = tmp_path / "mutated.loom"
    for seed in [*COMMANDS, *FOUND]:
        path.write_bytes(mutated(seed))
        with said(seed):
            VICTIMS[victim](str(path))


@contextlib.contextmanager
def said(seed: int) -> Any:
    try:
        yield
    except Exception as error:
        error.add_note(f"of mutated({seed})")
        raise
