"""The guard of a run that begins, and that of its replay."""

from __future__ import annotations

import time

import pytest

from agentloom.runtime.guard import OFF
from agentloom.runtime.guard_start import begins, guard_for_recording, guard_for_replay


def unknown(what: str, where: str) -> BaseException:
    return LookupError(what, where)


def test_a_recording_has_fresh_entropy_and_begins_now() -> None:
    one, two = guard_for_recording("strict"), guard_for_recording("virtual")
    assert (one.policy, two.policy) == ("strict", "virtual")
    assert one.entropy != two.entropy
    assert len(one.entropy or b"") == 32
    assert abs(one.start - time.time_ns()) < 60 * 10**9
    assert one.clock_facts() == {"start": one.start, "monotonic": one.monotonic}
    assert one.pending == {}


def test_off_has_nothing_of_its_own() -> None:
    guard = guard_for_recording("off")
    assert [guard.entropy, guard.environment, guard.pending] == [None, None, None]
    assert guard.facts() == {"guard": "off"}
    assert set(guard.clock_facts()) == {"start"}


def test_a_replay_goes_by_what_was_recorded() -> None:
    recorded = guard_for_recording("virtual")
    clock = {**recorded.clock_facts(), "resolution": 1}
    again = guard_for_replay({**recorded.facts()}, clock, dict, lambda: {"A": "1"}, unknown)  # type: ignore[arg-type]
    assert (again.policy, again.entropy) == ("virtual", recorded.entropy)
    assert (again.start, again.monotonic, again.zone) == (recorded.start, recorded.monotonic, None)
    assert again.environment is not None
    assert again.environment.get("A", lambda: None) == "1"
    assert again.draw("root", 8) == recorded.draw("root", 8)


def test_a_trace_from_before_the_guard_has_none() -> None:
    assert guard_for_replay({"durability": "process"}, {"start": 5}, dict, dict, unknown) is OFF


def test_a_run_begins_when_everything_is_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = guard_for_recording("virtual")
    monkeypatch.setattr("agentloom.runtime.guard_start._time_ns", lambda: 70)
    monkeypatch.setattr("agentloom.runtime.guard_start._monotonic_ns", lambda: 7)
    begins(guard)
    assert guard.clock_facts() == {"start": 70, "monotonic": 7}
    off = guard_for_recording("off")
    begins(off)
    assert off.clock_facts() == {"start": 70}
