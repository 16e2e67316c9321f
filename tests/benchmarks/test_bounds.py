"""The bounds of the benchmark: what is within passes, and a planted slowdown of two fifths does not."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentloom
from benchmarks import ratios
from benchmarks.agent.agents import Backend
from benchmarks.bounds import BOUNDS, TARGETS, beside, failed
from benchmarks.ratios import Ratios


def made(times_floor: float) -> Ratios:
    """Two rounds in which everything of ours takes so many times floor A."""
    seconds = {"floor record": [1.0, 2.0], "floor replay": [1.0, 2.0]}
    for name in ("sync record", "sync replay", "async record", "async replay"):
        seconds[name] = [times_floor, 2 * times_floor]
    return Ratios(100, seconds=seconds)


def test_what_is_past_a_bound_is_named() -> None:
    assert failed(made(1.0).found()) == []
    least = min(bound for name, bound in BOUNDS.items() if name.endswith("N=100"))
    assert failed(made(least).found()) == []
    assert failed(made(least + 0.01).found())
    assert len(failed(made(9.0).found())) == 4


def test_a_target_is_below_the_bound_beside_it_and_printed_with_it() -> None:
    for name, target in TARGETS.items():
        assert target < BOUNDS[name]
        assert "target" in beside(name)
        assert "bound" in beside(name)


@pytest.mark.parametrize("slower", [0.4, 1.0])
def test_a_planted_slowdown_is_in_what_is_measured_of_ours_and_not_of_the_floor(slower: float) -> None:
    planted = Ratios(100, slower)

    def work() -> int:
        return sum(range(200_000))

    for _ in range(9):
        for name in ("floor record", "sync record"):
            planted.time(name, work)
    found = planted.found()["sync record at N=100"]
    assert found > 1 + slower / 2
    assert min(planted.seconds["sync record"]) >= min(planted.seconds["floor record"])


def test_a_run_made_much_slower_fails_its_bounds(tmp_path: Path) -> None:
    before = agentloom.set_backend(Backend())
    try:
        measured = ratios.measure(100, 1, tmp_path, slower=4.0)
    finally:
        agentloom.set_backend(before)
    assert "async record at N=100" in failed(measured.found())
