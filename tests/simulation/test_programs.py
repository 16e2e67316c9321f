"""Random concurrent programs replay equal on the inner loop, and the check can fail."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from agentloom.runtime import loop_tasks
from tests.asyncio_suite.run import interpreters
from tests.simulation import harness
from tests.simulation.programs import generate

_ROOT = Path(__file__).resolve().parents[2]
_COUNT = 400


def test_recorded_programs_replay_equal_and_use_every_construct() -> None:
    tally = harness.check(range(_COUNT), swap=True)
    assert tally.unequal == []  # seeds
    assert tally.rare() == []
    assert tally.deliveries > 10 * _COUNT


def test_swapping_two_neighbouring_deliveries_is_noticed() -> None:
    tally = harness.check(range(1000, 1000 + _COUNT), swap=True)
    assert tally.swaps > 0.9 * _COUNT
    assert tally.unnoticed < 0.1 * tally.swaps


def test_two_live_runs_on_the_stock_loop_differ() -> None:
    """Otherwise equal replays would prove nothing."""
    differ = 0
    with harness.quiet():
        for seed in range(20):
            program = generate(seed)
            logs = [harness.run_stock(program, random.Random(f"{seed} {i}"), longest_ms=2) for i in range(2)]
            differ += logs[0] != logs[1]
    assert differ >= 12


def test_address_hashes_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_tasks.Task, "__hash__", object.__hash__)
    assert harness.check(range(_COUNT)).unequal


def test_as_completed_in_set_order_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    loop_tasks.install()
    monkeypatch.setitem(vars(asyncio.tasks), "set", set)
    monkeypatch.setattr("agentloom.runtime.loop.install", lambda: None)
    assert harness.check(range(_COUNT)).unequal


def test_logs_are_the_same_in_other_processes_with_other_hash_seeds() -> None:
    code = "from tests.simulation import harness; print(harness.digest(range(150)))"
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone},
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo"))
    }
    assert digests == {harness.digest(range(150)) + "\n"}


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_programs_replay_equal_on_every_python_found(version: str) -> None:
    python = interpreters().get(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    code = (
        "from tests.asyncio_suite.worker import bare; bare();"
        "from tests.simulation import harness; print(harness.check(range(200)).unequal)"
    )
    done = subprocess.run([python, "-c", code], cwd=_ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
