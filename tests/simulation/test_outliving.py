"""Runs outlive their processes in simulated histories: crashes, power cuts, faults, answers, takeovers, by one seed.

``python -m tests.simulation.outliving 2000`` is the long form; a failure names the command that repeats its seed.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.simulation.outliving import failures, simulate

FEW, MANY = 80, 2000


def test_histories_lose_nothing() -> None:
    assert failures(0, FEW, processes=1 if "PYTEST_XDIST_WORKER" in os.environ else None) == []


@pytest.mark.slow
def test_many_histories_lose_nothing() -> None:
    assert failures(FEW, MANY - FEW) == []


def test_a_seed_is_the_same_history_again() -> None:
    for seed in range(12):
        assert simulate(seed).told == simulate(seed).told


def test_everything_happens_in_them() -> None:
    """Otherwise nothing would be proven."""
    seen: Counter[str] = Counter()
    for seed in range(60):
        world = simulate(seed)
        seen.update(life.end for life in world.lives)
        seen["in doubt"] += any("happened" in line for line in world.told)
        for word in (
            "power cut",
            "fails",
            "from outside",
            "at operation",
            "in a write",
            "behind entry",
            "sent",
            "answered",
            "refused",
        ):
            seen[word] += any(word in line for line in world.told)
    for what in (
        "ended", "Suspend", "LeaseHeld", "StoreFailed", "dead", "in doubt", "power cut", "fails", "from outside",
        "at operation", "in a write", "behind entry", "sent", "answered", "refused",
    ):  # fmt: skip
        assert seen[what] >= 3, (what, seen)


@pytest.mark.parametrize("seed", [5688, 5778])
def test_streams_read_side_by_side_when_the_process_dies(seed: int) -> None:
    """Their chunks are written one stream after the other: between the two, numbers of deliveries are missing."""
    simulate(seed)
