"""Findings as a whole: the call, both places, the words and the reason, from calls made on the engine itself."""

from __future__ import annotations

import pytest

from agentloom.errors import Diverged
from agentloom.replay.mismatch import Judge, _times
from agentloom.replay.report import CallRef, Finding
from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.session import Session
from tests.replay.benches import answered, find, record, replaying
from tests.runtime.fakes import Bench


def _set(session: Session) -> None:
    session.engine.state(session.root, "route", 1, (), "flow.py:3 route")


def _state_then_answer(bench: Bench) -> None:
    """A state and an answered call; then two calls that could not be made before that answer."""
    bench.engine.state(bench.session.root, "route", 1, (), "flow.py:3 route")
    answered(bench, "a")
    bench.begin(q="b")
    bench.begin(q="c")


def _early(*qs: str) -> tuple[ReplaySource, Session, list[Call]]:
    """The calls ``qs`` are made before the answer to the first one came."""
    source, session = replaying(record(_state_then_answer))
    _set(session)
    find(session, "a")
    return source, session, [find(session, q) for q in qs]


def _ref(source: ReplaySource, call: Call, recorded: int | None, index: int) -> CallRef:
    src = None if recorded is None else source.recording.calls[recorded].src
    return CallRef(call.id, "tool", "find", index, call.src, src, "read", f'find("{call.tree["q"]}")')


def test_the_same_call_before_what_it_waited_for() -> None:
    source, session, calls = _early("b", "c")
    with pytest.raises(Diverged):
        _set(session)
    message = "Call 2 is made earlier: when recorded, something had to arrive first."
    ref = _ref(source, calls[0], 1, 2)
    assert source.finding == Finding("reordered", ref, message, last=2, reason="earlier")


def test_another_call_before_what_it_waited_for() -> None:
    source, session, calls = _early("x", "y")
    with pytest.raises(Diverged):
        _set(session)
    assert source.finding is not None
    assert (source.finding.cls, source.finding.message, source.finding.reason) == ("changed", "", "request")
    assert source.finding.call == _ref(source, calls[0], 1, 2)


def test_a_call_made_again_before_what_it_waited_for() -> None:
    source, session, calls = _early("a", "y")
    with pytest.raises(Diverged):
        _set(session)
    words = 'find("a") is exhausted: recorded once, asked a second time at call 2. Recorded at this place: find("b").'
    assert source.finding == Finding("extra", _ref(source, calls[0], None, 2), words, reason="exhausted")


def test_several_calls_that_are_waited_for_before_the_recorded_answer() -> None:
    source, _, calls = _early("a", "y")
    for call in calls:
        source.want(call)
    with pytest.raises(Diverged):
        source.poll(None)
    words = 'find("a") is exhausted: recorded once, asked a second time at call 2. Recorded at this place: find("b").'
    assert source.finding == Finding("extra", _ref(source, calls[0], None, 2), words, reason="exhausted")


def test_the_last_call_made_again() -> None:
    source, session = replaying(record(lambda bench: answered(bench, "a")))
    source.want(find(session, "a"))
    source.poll(None)
    again = find(session, "a")
    with pytest.raises(Diverged):
        session.engine.finish("completed", None)
    words = 'find("a") is exhausted: recorded once, asked a second time at call 2.'
    assert source.finding == Finding("extra", _ref(source, again, None, 2), words, reason="exhausted")


def test_a_call_to_another_model_has_changed() -> None:
    def spec(model: str) -> CallSpec:
        return CallSpec("model", model, {"model": model, "messages": []}, profile="agentloom.model/1")

    source, session = replaying(record(lambda bench: bench.engine.begin(spec("small"), bench.session.root)))
    session.engine.begin(spec("large"), session.root)
    with pytest.raises(Diverged):
        session.engine.finish("completed", None)
    assert source.finding is not None
    assert (source.finding.cls, source.finding.reason) == ("changed", "request")
    assert source.finding.comparison is not None
    assert [item.path for item in source.finding.comparison.items] == ["model"]


def test_how_often_in_words() -> None:
    assert [_times(count) for count in (0, 1, 2, 3, 1000)] == [
        "never",
        "once",
        "twice",
        "3 times",
        "1,000 times",
    ]


def test_calls_awaited_one_after_the_other_that_are_left_out_are_missing() -> None:
    def three(bench: Bench) -> None:
        for q in "abc":
            answered(bench, q)

    recording = record(three)
    _, session = replaying(record(lambda bench: None))
    session.engine.source.begin = lambda call: None  # type: ignore[method-assign]
    call = find(session, "c")
    finding = Judge(recording, 0, [call], quiescent=True).finding()
    assert (finding.cls, finding.reason) == ("missing", "skipped")
    assert finding.message.startswith('find("a") and 1 more recorded here are not made now. Now: find("c")')
    assert finding.call is not None
    assert finding.call.id == recording.calls[0].id


def test_an_awaited_call_that_was_recorded_twice_is_found_ahead_by_its_place() -> None:
    """The call before it is left out: that is what is missing, not that this one is another one."""

    def make(session: Session, q: str, place: str) -> Call:
        spec = CallSpec("tool", "find", {"q": q}, effect="read", src=place)
        return session.engine.begin(spec, session.root)

    def act(bench: Bench) -> None:
        for number, q in enumerate("abb"):
            call = make(bench.session, q, f"agent.py:{number} run")
            bench.engine.deliver(Arrival("outcome", call, value=number))

    source, session = replaying(record(act))
    for number in (1, 2):
        call = make(session, "b", f"agent.py:{number} run")
        source.want(call)
        arrival = source.poll(None)
        assert arrival is not None
        assert arrival.tree == number
        session.engine.deliver(arrival)
    with pytest.raises(Diverged):
        source.finished("completed", None)
    assert source.finding is not None
    assert (source.finding.cls, source.finding.reason) == ("missing", "skipped")
    assert source.finding.message.startswith('find("a") was made here when recorded; now it is not.')
    source, session = replaying(record(act))
    source.want(make(session, "b", "agent.py:9 run"))  # another place: it may be a call that was changed
    assert source.poll(None) is not None
    with pytest.raises(Diverged):
        source.finished("completed", None)
    assert source.finding is not None
    assert source.finding.reason == "request"
