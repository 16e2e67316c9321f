"""States, waits and ends against a recording: each way not to fit is one finding, compared as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentloom.errors import Diverged, PayloadMissing
from agentloom.format.journal import Journal
from agentloom.replay.fields import compare
from agentloom.replay.mismatch import goto_finding
from agentloom.replay.recording import Recording
from agentloom.replay.report import CallRef, Finding
from agentloom.replay.source import ReplaySource
from agentloom.replay.summaries import recorded_ref, ref_now
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.session import Session
from tests.replay.benches import answered, find, record, replaying
from tests.runtime.fakes import Bench

THEN, NOW = "then.py:3 step", "now.py:5 step"
REF = CallRef("root/probe#1", "state", "route", None, NOW, THEN)


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


def _set(session: Session, value: object, name: str = "route", goto: str | None = "pay") -> None:
    session.engine.state(session.root, name, value, ("input",), NOW, goto=goto)


def _found(recording: Recording, value: object, name: str = "route", goto: str | None = "pay") -> Finding:
    source, session = replaying(recording)
    with pytest.raises(Diverged):
        _set(session, value, name, goto)
    assert source.finding is not None
    return source.finding


def test_a_state_where_something_else_came() -> None:
    ref = CallRef("root/probe#1", "state", "route", None, NOW)
    found = _found(record(lambda bench: bench.begin(q="a")), 1)
    words = "State route is set here; when recorded call 1 (tool find)."
    assert found == Finding("extra", ref, words, reason="state")
    found = _found(record(_nothing), 1)
    assert found == Finding(
        "extra", ref, "State route is set here; when recorded the run had ended.", reason="state"
    )


def test_a_state_after_a_crash() -> None:
    found = _found(record(_nothing, end=None), 1)
    message = "The recording ends here: its process died after call 0."
    assert found == Finding("ended early", None, message, reason="recording ends")
    source, session = replaying(record(_route, end=None))
    _set(session, {"a": 1, "b": 2})  # was recorded before the crash
    assert source.finding is None


def test_a_state_of_another_step() -> None:
    found = _found(record(_route), {"a": 1, "b": 2}, name="respond")
    ref = CallRef("root/probe#1", "state", "respond", None, NOW, THEN)
    message = "State respond is set here; when recorded it was route."
    assert found == Finding("changed", ref, message, reason="state")


@pytest.mark.parametrize("goto", ["refuse", None])
def test_a_step_that_goes_on_elsewhere(goto: str | None) -> None:
    assert _found(record(_route), {"a": 1, "b": 2}, goto=goto) == goto_finding(REF, "pay", goto)


def test_a_state_of_another_value() -> None:
    found = _found(record(_route), {"b": 2, "a": 3})
    items = compare({"a": 1, "b": 2}, {"b": 2, "a": 3}, ordered=True, root="route")
    assert found == Finding("changed", REF, "", items, reason="state")


def test_a_state_without_a_place_in_the_trace() -> None:
    recording = record(_route)
    fields = recording.steps[0].fields
    assert fields is not None
    del fields["src"]
    found = _found(recording, 5)
    assert found.call == CallRef("root/probe#1", "state", "route", None, NOW, "")


def test_without_the_nonce_states_are_compared_as_values() -> None:
    recording = _without(record(_route), "nonce", "start")
    source, session = replaying(recording)
    _set(session, {"a": 1, "b": 2})
    session.engine.finish("completed", None)
    assert source.complete
    found = _found(recording, {"b": 2, "a": 1})
    items = compare({"a": 1, "b": 2}, {"b": 2, "a": 1}, ordered=True, root="route")
    assert items.total == 1
    assert found == Finding("changed", REF, "", items, reason="state")


def test_a_state_whose_key_is_the_same_is_not_read() -> None:
    source, session = replaying(_without(record(_route), "val", "state"))
    _set(session, {"a": 1, "b": 2})
    session.engine.finish("completed", None)
    assert source.complete


def test_states_one_after_the_other() -> None:
    def act(bench: Bench) -> None:
        for number in range(3):
            bench.engine.state(bench.session.root, "route", number, ("input",), THEN, goto="pay")

    source, session = replaying(record(act))
    for number in range(3):
        _set(session, number)
    session.engine.finish("completed", None)
    assert source.complete


def test_calls_that_do_not_fit_are_judged_where_a_state_is_set() -> None:
    """What comes after the state is not known yet: only the calls before the one that was found are missing."""

    def act(bench: Bench) -> None:
        for q in ("a", "b", "c"):
            bench.begin(q=q)

    source, session = replaying(record(act))
    find(session, "b")
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
    source, session = replaying(recording)
    call = find(session, "a")
    source.want(call)
    with pytest.raises(Diverged):
        source.poll(None)
    return source, call


def test_an_outcome_that_never_came() -> None:
    source, call = _waiting(record(lambda bench: bench.begin(q="a")))
    recorded = source.recording.calls[0]
    ref = CallRef(call.id, "tool", "find", 1, call.src, recorded.src, "read", 'find("a")')
    message = "The agent waits for its outcome; when recorded the run ended before it came."
    assert source.finding == Finding("extra", ref, message, reason="past the end")


def test_an_outcome_that_a_crash_cut_off() -> None:
    source, call = _waiting(record(lambda bench: bench.begin(q="a"), end=None))
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
    source, _ = replaying(record(_nothing))
    with pytest.raises(Diverged):
        source.poll(timer)
    message = f"The agent still waits{due}; when recorded the run had ended here."
    assert source.finding == Finding("extra", None, message, reason="past the end")


# -- the end --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "word"), [("completed", "returned"), ("failed", "raised"), ("cancelled", "was cancelled")]
)
def test_an_end_before_an_answer_that_came(status: str, word: str) -> None:
    source, session = replaying(record(lambda bench: answered(bench, "a")))
    find(session, "a")
    with pytest.raises(Diverged):
        session.engine.finish(status, None)
    message = f"The agent {word} here; when recorded the outcome of call 1 (tool find) came first."
    ref = replace(recorded_ref(source.recording, source.recording.calls[0]), src=None)
    assert source.finding == Finding("ended early", ref, message, reason="agent ends")


def test_an_output_in_another_order() -> None:
    source, session = replaying(record(_nothing, output={"a": 1, "b": 2}))
    with pytest.raises(Diverged):
        session.engine.finish("completed", {"b": 2, "a": 1})
    items = compare({"a": 1, "b": 2}, {"b": 2, "a": 1}, ordered=True, root="output")
    assert source.finding == Finding("output", None, "", items, reason="value")


def test_a_stream_that_is_read_further() -> None:
    def act(bench: Bench) -> None:
        call = bench.begin(q="a")
        bench.engine.deliver(Arrival("chunk", call, value="one"))
        bench.engine.end_by_agent(call, "closed")

    source, session = replaying(record(act))
    call = find(session, "a")
    session.engine.deliver(source.next_inline(call))
    with pytest.raises(Diverged):
        source.next_inline(call)
    message = "Chunk 2 of the stream is asked for; when recorded the agent left it after 1, so it is not in the trace."
    ref = CallRef(call.id, "tool", "find", 1, call.src, source.recording.calls[0].src, "read", 'find("a")')
    assert source.finding == Finding("extra", ref, message, reason="reads further")


def test_a_state_that_cannot_be_read_is_named() -> None:
    source, session = replaying(_without(record(_route), "val", "state"))
    with pytest.raises(Diverged):
        _set(session, {"a": 1, "b": 3})
    assert isinstance(source.unusable, PayloadMissing)
    assert "the state route" in str(source.unusable)


# -- what the agent did no more -------------------------------------------------------------------------------------


def test_a_state_that_is_not_set_where_the_agent_waits() -> None:
    def act(bench: Bench) -> None:
        call = bench.begin(q="a")
        _route(bench)
        bench.engine.deliver(Arrival("outcome", call))

    source, session = replaying(record(act))
    source.want(find(session, "a"))
    with pytest.raises(Diverged):
        source.poll(None)
    ref = CallRef("root/probe#2", "state", "route")
    message = "State route was set here when recorded; now it is not."
    assert source.finding == Finding("missing", ref, message, reason="state")


def test_a_call_that_is_not_made_where_the_agent_waits() -> None:
    def act(bench: Bench) -> None:
        bench.engine.deliver(Arrival("outcome", bench.begin(q="a")))
        call = bench.begin(q="b")
        bench.begin(q="c")
        bench.engine.deliver(Arrival("outcome", call))

    source, session = replaying(record(act))
    session.engine.deliver(source.inline(find(session, "a"), lambda: None))
    source.want(find(session, "b"))
    with pytest.raises(Diverged):
        source.poll(None)
    ref = replace(recorded_ref(source.recording, source.recording.calls[2]), src=None)
    message = 'find("c") was made here when recorded; now it is not.'
    assert source.finding == Finding("missing", ref, message, reason="skipped")


def test_a_call_that_the_agent_cancelled_and_waits_for_now() -> None:
    def act(bench: Bench) -> None:
        call, other = bench.begin(q="a"), bench.begin(q="b")
        bench.engine.end_by_agent(call, "cancelled")
        bench.engine.deliver(Arrival("outcome", other))

    source, session = replaying(record(act))
    for q in "ab":
        source.want(find(session, q))
    with pytest.raises(Diverged):
        source.poll(None)
    ref = recorded_ref(source.recording, source.recording.calls[0])
    message = "When recorded it was cancelled here; now it is still waited for."
    assert source.finding == Finding("changed", ref, message, reason="ended by the agent")


@pytest.mark.parametrize("status", ["closed", "cancelled"])
def test_a_stream_that_the_agent_ended_and_reads_on_in_now(status: Any) -> None:
    def act(bench: Bench) -> None:
        call, other = bench.begin(q="a"), bench.begin(q="b")
        bench.engine.deliver(Arrival("chunk", call, value="one"))
        bench.engine.end_by_agent(call, status)
        bench.engine.deliver(Arrival("outcome", other))

    source, session = replaying(record(act))
    spec = CallSpec("tool", "find", {"q": "a"}, effect="read", stream=True)
    call = session.engine.begin(spec, session.root)
    find(session, "b")
    source.want(call)
    arrival = source.poll(None)
    assert arrival is not None
    session.engine.deliver(arrival)
    source.want(call)
    with pytest.raises(Diverged):
        source.poll(None)
    message = "Chunk 2 of the stream is asked for; when recorded the agent left it after 1, so it is not in the trace."
    recorded = source.recording.calls[0]
    ref = ref_now(call, recorded, recorded.index)
    assert source.finding == Finding("extra", ref, message, reason="reads further")


# -- how runs end ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [None, "cancelled"])
def test_an_agent_that_ends_where_the_recording_does_not(end: str | None) -> None:
    what = "its process died" if end is None else "the run was interrupted"
    for status in ("completed", "failed"):
        source, _ = replaying(record(_nothing, end=end, output=None))
        with pytest.raises(Diverged):
            source.finished(status, None)
        message = f"The recording ends here: {what} after call 0."
        assert source.finding == Finding("ended early", None, message, reason="recording ends")


def test_an_interrupted_run_that_is_interrupted_again() -> None:
    source, _ = replaying(record(_nothing, end="cancelled", output={"a": 1}))
    source.finished("cancelled", source.recording.output())
    assert source.complete


def test_an_end_of_another_status() -> None:
    recording = record(_nothing, output={"a": 1})
    then = recording.output()
    other: Any = {"a": 2}
    for tree in (then, other):
        source, _ = replaying(recording)
        with pytest.raises(Diverged):
            source.finished("failed", tree)
        message = "The run was completed when recorded; now it is failed."
        items = compare(then, tree, ordered=True, root="output")
        assert source.finding == Finding("output", None, message, items, reason="status")
