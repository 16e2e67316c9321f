"""The table of peers: what is a ratio, who is ahead of whom, what is printed of who could not be measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.machine import described
from benchmarks.peers import environments
from benchmarks.peers.__main__ import data, measured
from benchmarks.peers.contestants import CLASSES
from benchmarks.peers.table import CONTESTANTS, Row, behind, compared, lines


def row(name: str, record: float, replay: float | None, *, notices: bool = True, floor: float = 1.0) -> Row:
    """A row of two rounds; the first of each takes twice as long."""
    seconds: dict[str, list[float]] = {"bare": [0.2, 0.1], "record": [2 * record, record]}
    seconds |= {"floor record": [2 * floor, floor], "floor replay": [2 * floor, floor]}
    if replay is not None:
        seconds["replay"] = [2 * replay, replay]
    found: dict[str, Any] = {"turns": 100, "seconds": seconds, "bytes": 1000, "growth": 4.0}
    return Row(name, {**found, "noticed": "Changed" if notices else "", "performed": {"model": 0, "tool": 0}})


ROOT = Path(__file__).resolve().parents[2]
OURS = row("agentloom model", 3, 2)


def test_every_line_has_its_class_and_every_peer_its_environment() -> None:
    assert set(CLASSES) == set(CONTESTANTS)
    used = {contest.environment for contest in CONTESTANTS.values()} - {None}
    assert used == set(environments.PINS)
    assert all("==" in pin for pins in environments.PINS.values() for pin in pins)


def test_a_ratio_is_to_floor_a_of_the_same_process() -> None:
    assert row("agentcassette", 6, 4, floor=2).ratio("record") == (3, 3, 3)
    uneven = row("agentcassette", 6, 4)
    uneven.found["seconds"]["record"] = [6.0, 9.0]
    assert uneven.ratio("record") == (6, 3, 9)
    assert row("ai-agent-vcr", 6, None).ratio("replay") is None


def test_ahead_is_below_every_peer_that_does_the_same() -> None:
    assert behind([OURS, row("agentcassette", 4, 3)]) == []
    # On a machine half as fast, in times of its own floor, the same.
    assert behind([OURS, row("agentcassette", 8, 6, floor=2)]) == []


@pytest.mark.parametrize(("record", "replay", "word"), [(2, 9, "record"), (3, 9, "record"), (9, 1, "replay")])
def test_behind_names_what_and_whom(record: float, replay: float, word: str) -> None:
    (found,) = behind([OURS, row("agentcassette", record, replay)])
    assert word in found
    assert "agentcassette" in found


def test_an_unchecked_replay_and_another_seam_are_not_the_same() -> None:
    unchecked = row("langgraph functional", 9, 1, notices=False)
    elsewhere = row("vcrpy + openai", 1, 1)
    assert behind([OURS, unchecked, elsewhere, row("ai-agent-vcr", 9, None)]) == []
    assert len(behind([row("agentloom openai", 3, 2), elsewhere])) == 2


def at_sdk(name: str, bare: float, record: float, replay: float, *, floor: float = 1.0) -> Row:
    made = row(name, record, replay, floor=floor)
    made.found["seconds"]["bare"] = [2 * bare, bare]
    return made


def test_at_the_sdk_what_recording_adds_is_compared_in_times_of_the_bare_agent_of_its_process() -> None:
    ours, peer = at_sdk("agentloom openai", 10, 11, 10), at_sdk("vcrpy + openai", 20, 24, 30)
    assert ours.cost("record") == pytest.approx(0.1)
    assert peer.cost("record") == pytest.approx(0.2)
    assert (ours.cost("replay"), peer.cost("replay")) == (1, 1.5)
    assert behind([ours, peer]) == []
    # A process with a slower floor A is no better recorder for it.
    assert behind([ours, at_sdk("vcrpy + openai", 20, 24, 30, floor=50)]) == []
    (found,) = behind([ours, at_sdk("vcrpy + openai", 20, 21, 30)])
    assert found == (
        "agentloom openai: record adds 10.0% to the bare call, vcrpy + openai adds 5.0% to the bare call"
    )
    (record, replay) = compared([ours, peer])
    assert "adds 10.0%" in record
    assert "vcrpy + openai adds 20.0%" in record
    assert "1.00x the bare call; beside vcrpy + openai 1.50x" in replay


def test_a_row_of_ours_that_is_missing_or_checks_nothing_is_not_ahead() -> None:
    assert behind([Row("agentloom model", failed="does not run: boom")]) == [
        "agentloom model: does not run: boom"
    ]
    assert len(behind([row("agentloom model", 1, 1, notices=False)])) == 1


def test_the_table_says_why_a_peer_is_not_measured() -> None:
    text = "\n".join(lines([OURS, Row("dbos SQLite", failed="does not install: no such version")]))
    assert "not measured: does not install: no such version" in text
    assert "3.0 (3.0 - 3.0)" in text
    assert "yes" in text
    assert behind([OURS, Row("dbos SQLite", failed="does not run")]) == []


def test_what_a_replay_performs_is_told() -> None:
    peer = row("agentcassette", 4, 3)
    peer.found["performed"] = {"model": 0, "tool": 7}
    assert "replay performs 7 tool calls" in "\n".join(lines([peer]))


def test_a_version_that_is_not_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "PINS", {"dbos": ("--no-index", "no-such-package-of-anybody==1")})
    made = measured("dbos SQLite", 2, 1, tmp_path / "cache")
    assert made.failed.startswith("does not install: ")
    assert "\n" not in made.failed


def test_our_own_rows_are_measured(tmp_path: Path) -> None:
    rows = [measured(name, 3, 1, tmp_path) for name in ("agentloom model", "agentloom openai")]
    assert [made.failed for made in rows] == ["", ""]
    assert [made.checks for made in rows] == [True, True]
    assert [made.found["performed"] for made in rows] == [{"model": 0, "tool": 0}, {"model": 0, "tool": 3}]
    assert behind(rows) == []
    told = data(rows, [])
    assert told["ahead"]
    assert all(part["bytes"] > 0 and part["record_times_floor"] for part in told["rows"].values())


def test_a_name_that_is_no_line_is_refused() -> None:
    command = [sys.executable, "-m", "benchmarks.peers", "--only", "nobody"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "agentcassette" in done.stderr


def test_the_machine_is_told_without_its_name() -> None:
    text = described()
    assert "cores" in text
    assert "Python 3" in text
