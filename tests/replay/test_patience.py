"""Real time in a replay, with a clock of our own."""

from __future__ import annotations

import pytest

from agentloom.replay.patience import RealTime
from agentloom.runtime.source import TICK

SECOND = 1_000_000_000


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    clock = [1_000 * SECOND]
    monkeypatch.setattr("agentloom.replay.patience._monotonic_ns", lambda: clock[0])
    return clock


def test_patience_ends_after_half_a_minute_in_one_place(now: list[int]) -> None:
    real = RealTime()
    for _ in range(31):
        assert not real.lost_patience((3, 0), 5)
        now[0] += SECOND
    assert real.lost_patience((3, 0), 5)


def test_another_place_of_the_recording_begins_anew(now: list[int]) -> None:
    real = RealTime()
    for place in range(100):
        assert not real.lost_patience((place // 20, 0), 5)
        now[0] += SECOND


def test_a_long_halt_counts_as_two_seconds(now: list[int]) -> None:
    real = RealTime()
    for _ in range(16):
        assert not real.lost_patience((0, 0), 5)
        now[0] += 3600 * SECOND
    assert real.lost_patience((0, 0), 5)


def test_a_clock_that_moves_buys_patience(now: list[int]) -> None:
    real = RealTime()
    shown = 0
    for _ in range(200):
        assert not real.lost_patience((0, 0), shown)
        now[0] += SECOND
        shown += SECOND // 1000


def test_the_clock_of_a_program_that_went_astray_goes_by_itself(now: list[int]) -> None:
    real = RealTime()
    assert real.astray(7) is None  # from here on
    assert real.strayed == now[0] - 7
    now[0] += TICK
    assert real.astray(7) is None
    now[0] += 1
    assert real.astray(7) == 7 + TICK + 1
