"""A parsed trace in replay order: calls, steps, payloads; fast for many calls; loud for what it cannot replay."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from agentloom.errors import FormatError
from agentloom.replay.recording import Recording, facts_of

SOURCE = """
from agentloom import agent, tool


@tool(effect="read")
def row(number):
    return {"row": number}


@agent
def run(count):
    return sum(row(number)["row"] for number in range(count))
"""


class FakeJournal:
    """Entries without bytes: what ``Recording`` reads of a journal."""

    nonce = bytes(32)

    def __init__(self, entries: list[dict[str, Any]]) -> None:
        self.entries = [{"kind": "start", "seq": 0, "run": "r", "agent": "a", "entry": "m:a"}, *entries]
        for number, entry in enumerate(self.entries):
            entry.setdefault("seq", number)


def _recording(*entries: dict[str, Any]) -> Recording:
    journal: Any = FakeJournal(list(entries))
    return Recording.from_journal(journal)


def _request(call: str) -> dict[str, Any]:
    return {
        "kind": "request",
        "call": call,
        "type": "model",
        "name": "m",
        "key": "k",
        "profile": "p",
        "req": "b",
    }


def test_calls_outcomes_and_facts(program: Any) -> None:
    trace = program.record(SOURCE, 3, seed=7)
    recording = Recording.from_journal(trace.journal)
    assert [call.index for call in recording.calls] == [1, 2, 3]
    assert [step.kind for step in recording.steps] == ["request", "outcome"] * 3
    call = recording.by_id["root/run#2"]
    assert recording.request(call) == {"args": {"number": 1}}
    assert recording.outcome(call) == {"row": 1}
    assert (recording.status, recording.closed, recording.seed) == ("completed", True, 7)
    assert recording.output() == 3
    facts = recording.code_facts()
    assert facts.modules[program.name].text == SOURCE
    assert facts.modules[program.name].file == "agent.py"
    assert "orjson" in facts.packages


def test_chunks_of_two_streams_come_in_delivery_order() -> None:
    recording = _recording(
        _request("a#1"),
        _request("b#1"),
        {"kind": "chunks", "call": "a#1", "items": [[1, 0, 0], [4, 0, 0]], "val": "x"},
        {"kind": "chunks", "call": "b#1", "items": [[2, 0, 0], [3, 0, 0]], "val": "y"},
        {"kind": "outcome", "call": "a#1", "status": "closed", "vt": 5},
    )
    assert [(step.kind, step.d) for step in recording.steps] == [
        ("request", None), ("request", None), ("chunk", 1), ("chunk", 2), ("chunk", 3), ("chunk", 4), ("left", None),
    ]  # fmt: skip
    assert recording.by_id["a#1"].chunks == 2
    assert recording.by_id["a#1"].left
    assert not recording.closed


def test_twelve_thousand_calls_take_little_time(program: Any) -> None:
    trace = program.record(SOURCE, 12_000)
    journal = trace.journal
    gc.disable()  # what it takes depends on what other tests left behind
    try:
        began = time.process_time()
        recording = Recording.from_journal(journal)
        assert time.process_time() - began < 0.3
    finally:
        gc.enable()
    assert len(recording.calls) == 12_000


def test_what_was_said_from_outside_is_no_step() -> None:
    request = {**_request("x#1"), "type": "ask", "name": "ask"}
    recording = _recording(
        request,
        {"kind": "suspend", "ask": "1", "call": "x#1"},
        {"kind": "answer", "ask": "1"},
        {"kind": "signal", "name": "paid"},
        {"kind": "resume", "epoch": 2},
    )
    recording.replayable()
    assert [step.kind for step in recording.steps] == ["request"]
    assert [entry["kind"] for entry in recording.said] == ["answer", "signal"]
    assert (recording.asks, recording.epoch) == ({"1"}, 2)
    assert [call.id for call in recording.open_asks()] == ["x#1"]


def test_retracted_entries_do_not_count() -> None:
    request = {**_request("x#1"), "type": "tool", "name": "t"}
    outcome = {"kind": "outcome", "call": "x#1", "status": "error", "vt": 9, "d": 1}
    again = {"kind": "outcome", "call": "x#1", "status": "ok", "vt": 4, "d": 1}
    entries = (request, outcome, {"kind": "end", "status": "failed"}, {"kind": "retract", "from": 2}, again)
    recording = _recording(*entries)
    assert [step.kind for step in recording.steps] == ["request", "outcome"]
    assert (recording.calls[0].status, recording.closed, recording.reached) == ("ok", False, (1, 4))
    assert recording.void == {2, 3}


def test_an_unknown_entry_is_fatal_for_a_replay() -> None:
    with pytest.raises(FormatError, match="teleport"):
        _recording({"kind": "teleport"}).replayable()
    _recording({"kind": "note"}, {"kind": "index"}).replayable()


def test_an_outcome_without_a_request_is_refused() -> None:
    with pytest.raises(FormatError, match="no request"):
        _recording({"kind": "outcome", "call": "x#1", "status": "ok", "vt": 0})


def test_gaps_are_kept() -> None:
    assert _recording({"kind": "gap", "why": "store"}).gaps[0]["why"] == "store"


def test_facts_of_odd_trees_are_empty() -> None:
    facts = facts_of(None, [1])
    assert (dict(facts.modules), facts.revision, dict(facts.packages)) == ({}, "", {})
