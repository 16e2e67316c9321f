"""Deterministic results against a recording: each way not to fit is one whole finding; and waits that never end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentloom.errors import Diverged
from agentloom.format.journal import Journal
from agentloom.replay.fields import compare
from agentloom.replay.mismatch import goto_finding
from agentloom.replay.recording import Recording
from agentloom.replay.replayer import session_for
from agentloom.replay.report import CallRef, Finding
from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.session import Session
from tests.runtime.fakes import Bench

THEN, NOW = "then.py:3 step", "now.py:5 step"
REF = CallRef("root/probe#1", "state", "route", None, NOW, THEN)


def _record(act: Callable[[Bench], object], *, end: str | None = "completed") -> Recording:
    bench = Bench()
    act(bench)
    if end is not None:
        bench.engine.finish(end, None)
    return Recording.from_journal(bench.tape.journal)


def _route(bench: Bench) -> None:
    bench.engine.state(bench.session.root, "route", {"a": 1, "b": 2}, ("input",), THEN, goto="pay")


def _nothing(bench: Bench) -> None:
    pass


def _without(recording: Recording, field: str, kind: str) -> Recording:
    """The recording with one payload of the first entry of a kind erased."""
    journal: Journal = recording.journal
    blob = next(str(entry[field]) for entry in journal.entries if entry["kind"] == kind)
    del journal._blobs[blob]
    return Recording.from_journal(journal)


def _replaying(recording: Recording) -> tuple[ReplaySource, Session]:
    source = ReplaySource(recording)
    return source, session_for(recording, source, "/")


def _set(session: Session, value: object, name: str = "route", goto: str | None = "pay") -> None:
    session.engine.state(session.root, name, value, ("input",), NOW, goto=goto)


def _begin(session: Session, q: str) -> Call:
    return session.engine.begin(CallSpec("tool", "find", {"q": q}, effect="read"), session.root)


def _found(recording: Recording, value: object, name: str = "route", goto: str | None = "pay") -> Finding:
    source, session = _replaying(recording)
    with pytest.raises(Diverged):
        _set(session, value, name, goto)
    assert source.finding is not None
    return source.finding


def test_a_state_where_something_else_came() -> None:
    ref = CallRef("root/probe#1", "state", "route", None, NOW)
    found = _found(_record(lambda bench: bench.begin(q="a")), 1)
    words = "State route is set here; when recorded call 1 (tool find)."
    assert found == Finding("extra", ref, words, reason="state")
    found = _found(_record(_nothing), 1)
    assert found == Finding(
        "extra", ref, "State route is set here; when recorded the run had ended.", reason="state"
    )


def test_a_state_after_a_crash() -> None:
    found = _found(_record(_nothing, end=None), 1)
    message = "The recording ends here: its process died after call 0."
    assert found == Finding("ended early", None, message, reason="recording ends")
    source, session = _replaying(_record(_route, end=None))
    _set(session, {"a": 1, "b": 2})  # was recorded before the crash
    assert source.finding is None


def test_a_state_of_another_step() -> None:
    found = _found(_record(_route), {"a": 1, "b": 2}, name="respond")
    ref = CallRef("root/probe#1", "state", "respond", None, NOW, THEN)
    message = "State respond is set here; when recorded it was route."
    assert found == Finding("changed", ref, message, reason="state")


@pytest.mark.parametrize("goto", ["refuse", None])
def test_a_step_that_goes_on_elsewhere(goto: str | None) -> None:
    assert _found(_record(_route), {"a": 1, "b": 2}, goto=goto) == goto_finding(REF, "pay", goto)


def test_a_state_of_another_value() -> None:
    found = _found(_record(_route), {"b": 2, "a": 3})
    items = compare({"a": 1, "b": 2}, {"b": 2, "a": 3}, ordered=True, root="route")
    assert found == Finding("changed", REF, "", items, reason="state")


def test_without_the_nonce_states_are_compared_as_values() -> None:
    recording = _without(_record(_route), "nonce", "start")
    source, session = _replaying(recording)
    _set(session, {"a": 1, "b": 2})
    session.engine.finish("completed", None)
    assert source.complete
    found = _found(recording, {"b": 2, "a": 1})
    items = compare({"a": 1, "b": 2}, {"b": 2, "a": 1}, ordered=True, root="route")
    assert items.total == 1
    assert found == Finding("changed", REF, "", items, reason="state")


def test_a_state_whose_key_is_the_same_is_not_read() -> None:
    source, session = _replaying(_without(_record(_route), "val", "state"))
    _set(session, {"a": 1, "b": 2})
    session.engine.finish("completed", None)
    assert source.complete


def test_states_one_after_the_other() -> None:
    def act(bench: Bench) -> None:
        for number in range(3):
            bench.engine.state(bench.session.root, "route", number, ("input",), THEN, goto="pay")

    source, session = _replaying(_record(act))
    for number in range(3):
        _set(session, number)
    session.engine.finish("completed", None)
    assert source.complete


def test_calls_that_do_not_fit_are_judged_where_a_state_is_set() -> None:
    """What comes after the state is not known yet: only the calls before the one that was found are missing."""

    def act(bench: Bench) -> None:
        for q in ("a", "b", "c"):
            bench.begin(q=q)

    source, session = _replaying(_record(act))
    _begin(session, "b")
    with pytest.raises(Diverged):
        _set(session, 1)
    assert source.finding is not None
    assert (source.finding.cls, source.finding.reason) == ("missing", "skipped")
    assert source.finding.message.startswith(
        'find("a") was made here when recorded; now it is not. Now: find("b") at '
    )


# -- waits that never end -------------------------------------------------------------------------------------------


def _waiting(recording: Recording) -> tuple[ReplaySource, Call]:
    """The program made the recorded call and waits for its outcome."""
    source, session = _replaying(recording)
    call = _begin(session, "a")
    source.want(call)
    with pytest.raises(Diverged):
        source.poll(None)
    return source, call


def test_an_outcome_that_never_came() -> None:
    source, call = _waiting(_record(lambda bench: bench.begin(q="a")))
    recorded = source.recording.calls[0]
    ref = CallRef(call.id, "tool", "find", 1, call.src, recorded.src, "read", 'find("a")')
    message = "The agent waits for its outcome; when recorded the run ended before it came."
    assert source.finding == Finding("extra", ref, message, reason="past the end")


def test_an_outcome_that_a_crash_cut_off() -> None:
    source, call = _waiting(_record(lambda bench: bench.begin(q="a"), end=None))
    recorded = source.recording.calls[0]
    ref = CallRef(call.id, "tool", "find", 1, call.src, recorded.src, "read", 'find("a")')
    dead = "call 1 (tool find) has no outcome, it is in doubt"
    message = f"The recording ends here: its process died after call 1; {dead}."
    assert source.finding == Finding("ended early", ref, message, reason="recording ends")


@pytest.mark.parametrize(
    ("timer", "due"),
    [(None, ""), (0, " (a timer due at 0.000 s)"), (2_500_000_000, " (a timer due at 2.500 s)")],
)
def test_a_timer_that_never_fired(timer: int | None, due: str) -> None:
    source, _ = _replaying(_record(_nothing))
    with pytest.raises(Diverged):
        source.poll(timer)
    message = f"The agent still waits{due}; when recorded the run had ended here."
    assert source.finding == Finding("extra", None, message, reason="past the end")
