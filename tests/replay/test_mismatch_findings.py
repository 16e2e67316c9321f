"""What is found of calls that do not fit, as a whole: the judge is asked with calls that were made on a replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agentloom.replay.cause import parse_src
from agentloom.replay.fields import Comparison, Difference, compare
from agentloom.replay.mismatch import Judge, _number_word, _ordinal, _unpaired, request_differences
from agentloom.replay.recording import Recording
from agentloom.replay.report import Finding
from agentloom.replay.summaries import recorded_ref, ref_now, request_words
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.session import Session
from tests.replay.benches import record, replaying
from tests.runtime.fakes import Bench

MODEL = "agentloom.model/1"


def spec(what: str, src: str = "agent.py:1 run") -> CallSpec:
    """``a``: the tool find with q = a; ``look a``: another tool; ``model a``: a model."""
    name, _, q = what.rpartition(" ")
    if name == "model":
        return CallSpec("model", "fake", {"model": "fake", "messages": q}, MODEL, src=src)
    return CallSpec("tool", name or "find", {"q": q}, effect="read", src=src)


def made(session: Session, *whats: str, src: str = "agent.py:1 run") -> list[Call]:
    return [session.engine.begin(spec(what, src), session.root) for what in whats]


def asked(*whats: str, before: Sequence[str] = ()) -> Recording:
    """A recording of calls that were answered one after the other, and then of some that were made at once."""

    def act(bench: Bench) -> None:
        for what in before:
            (call,) = made(bench.session, what)
            bench.engine.deliver(Arrival("outcome", call))
        made(bench.session, *whats)

    return record(act)


def judged(recording: Recording, calls: Sequence[Call], *, at: int = 0, quiescent: bool = True) -> Finding:
    return Judge(recording, at, calls, quiescent).finding()


def now(recording: Recording, *whats: str, src: str = "agent.py:1 run") -> list[Call]:
    """The calls of a replay that makes these."""
    return made(replaying(recording)[1], *whats, src=src)


def words(what: str) -> str:
    one = spec(what)
    return request_words(one.type, one.name, dict(one.request))  # type: ignore[arg-type]


# -- in a window ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("whats", "calls", "odd", "partner"),
    [
        (("a", "b", "c"), ("x", "b", "c"), 0, 0),
        (("a", "b", "c"), ("c", "x"), 1, 1),
        (("a", "b", "c"), ("b", "c", "x"), 2, 0),
        (("a", "b", "c"), ("a", "b", "x"), 2, 2),
        (("a", "look b"), ("look x", "a"), 0, 1),
        (("a", "look b", "look c"), ("look x",), 0, 1),
        (("a", "b", "look c"), ("look x", "a", "b"), 0, 2),
    ],
    ids=str,
)
def test_a_call_of_a_window_is_compared_with_its_partner(
    whats: tuple[str, ...], calls: tuple[str, ...], odd: int, partner: int
) -> None:
    """The one of the same path, else of the same name, else the first, of those that nobody made."""
    recording = asked(*whats)
    found = now(recording, *calls)
    recorded = recording.calls[partner]
    ref = ref_now(found[odd], recorded, recorded.index)
    differences = request_differences(recording, recorded, found[odd])
    assert judged(recording, found) == Finding("changed", ref, "", differences, reason="request")


def test_a_call_that_is_one_more_in_a_window() -> None:
    recording = asked("a", "b", before=["x"])
    (_, *found) = now(recording, "x", "b", "a", "x")
    message = 'find("x") is exhausted: recorded once, asked a second time at call 4. Recorded at this place: find("a").'
    assert judged(recording, found, at=2) == Finding(
        "extra", ref_now(found[2], None, 4), message, reason="exhausted"
    )


def test_a_call_that_was_made_before_in_the_place_of_another() -> None:
    recording = asked("a", "b", before=["x"])
    (_, *found) = now(recording, "x", "x", "b")
    finding = judged(recording, found, at=2)
    assert (finding.cls, finding.reason) == ("extra", "exhausted")


def test_a_call_that_is_recorded_elsewhere() -> None:
    recording = asked(before=["look a", "b", "b"])
    (call,) = now(recording, "b", src="agent.py:9 run")
    message = 'find("b") is made here; it is recorded twice, not here. Recorded at this place: look("a").'
    expected = Finding("extra", ref_now(call, None, 1), message, reason="unrecorded")
    assert judged(recording, [call], quiescent=False) == expected


def test_a_model_call_that_was_not_recorded() -> None:
    recording = asked("a")
    (call,) = now(recording, "model x")
    message = f'{words("model x")} is not in the recording. Recorded at this place: find("a").'
    expected = Finding("extra", ref_now(call, None, 1), message, reason="unrecorded")
    assert judged(recording, [call], quiescent=False) == expected


def test_calls_that_are_left_out_and_what_is_made_in_their_place() -> None:
    recording = asked("a", "b", "model c")
    (call,) = now(recording, "model c")
    ref = replace(recorded_ref(recording, recording.calls[0]), src=None)
    message = f'find("a") and 1 more recorded here are not made now. Now: {words("model c")} at {parse_src(call.src)}.'
    assert judged(recording, [call], quiescent=False) == Finding("missing", ref, message, reason="skipped")


def test_what_the_agent_ended_itself_is_no_call_of_the_window() -> None:
    def act(bench: Bench) -> None:
        (call,) = made(bench.session, "a")
        bench.engine.end_by_agent(call, "cancelled")
        made(bench.session, "b")

    recording = record(act)
    finding = judged(recording, now(recording, "b"), quiescent=False)
    assert finding.message.startswith('find("a") was made here when recorded; now it is not.')


def test_a_call_is_looked_for_among_the_next_64() -> None:
    recording = asked(before=[str(number) for number in range(70)])
    (found,) = now(recording, "64")
    assert judged(recording, [found], quiescent=False).message.startswith('find("0") and 63 more recorded')
    (beyond,) = now(recording, "66")
    assert judged(recording, [beyond], quiescent=False).cls == "changed"


# -- another order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quiescent", [False, True])
@pytest.mark.parametrize(
    ("calls", "last", "count"),
    [
        (("b", "a", "model c"), 1, "two"),
        (("a", "model c", "b"), 2, "three"),
        (("model c", "b", "a"), 2, "three"),
        (("b", "a"), 1, "two"),
    ],
)
def test_calls_in_another_order(calls: tuple[str, ...], last: int, count: str, quiescent: bool) -> None:
    whats = ("a", "b", "model c")[: len(calls)]
    recording = asked(*whats)
    found = now(recording, *calls)
    first = recording.calls[0]
    message = f"The same {count} calls were started in another order; no value differs."
    shown = tuple(tuple(words(what) for what in order[: last + 1]) for order in (whats, calls))
    ref = ref_now(found[0], first, 1)
    expected = Finding("reordered", ref, message, None, 1 + last, (shown[0], shown[1]), reason="order")
    assert judged(recording, found, quiescent=quiescent) == expected


@pytest.mark.parametrize("moved", [0, 1])
def test_the_same_calls_from_another_place_of_the_structure(moved: int) -> None:
    recording = asked("a", "b")
    calls = now(recording, "a", "b")
    recorded = recording.calls[moved]
    calls[moved].id = "root/elsewhere#1"
    path = Difference("path", "changed", recorded.id, "root/elsewhere#1")
    message = "The same request is made from another place in the run's structure."
    ref = ref_now(calls[moved], recorded, recorded.index)
    expected = Finding("changed", ref, message, Comparison((path,), 1), reason="path")
    assert judged(recording, calls) == expected


# -- requests -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({}, []),
        ({"type": "http"}, [("kind", "tool", "http")]),
        ({"name": "look"}, [("name", "find", "look")]),
        ({"profile": "tool/1"}, [("profile", "plain/1", "tool/1")]),
        ({"type": "model", "name": "m"}, [("kind", "tool", "model")]),  # its name is its field model
        ({"type": "http", "name": "look"}, [("kind", "tool", "http"), ("name", "find", "look")]),
    ],
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_differs_between_two_requests(
    change: dict[str, Any], facts: list[tuple[str, str, str]], elsewhere: bool
) -> None:
    recording = asked("a")
    _, session = replaying(recording)
    recorded = recording.calls[0]
    call = session.engine.begin(replace(spec("b"), **change), session.root)
    if elsewhere:
        call.id = "root/elsewhere#1"
        facts = [*facts, ("path", recorded.id, call.id)]
    fields = compare({"q": "a"}, {"q": "b"})
    more = [Difference(name, "changed", was, has) for name, was, has in facts]
    expected = replace(fields, items=(*fields.items, *more), total=1 + len(more))
    assert request_differences(recording, recorded, call) == expected


def test_without_the_nonce_the_order_of_fields_does_not_count() -> None:
    def act(bench: Bench) -> None:
        bench.begin(a=1, b=2)

    recording = record(act)
    del recording.journal._blobs[str(recording.journal.entries[0]["nonce"])]
    source, session = replaying(Recording.from_journal(recording.journal))
    session.engine.begin(CallSpec("tool", "find", {"b": 2, "a": 1}, effect="read"), session.root)
    assert source.position == 1


# -- words ----------------------------------------------------------------------------------------------------------


def test_numbers_in_words() -> None:
    said = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "10", "11"]
    assert [_number_word(number) for number in range(12)] == said
    assert _number_word(1234) == "1,234"
    ordinals = {2: "second", 5: "fifth", 6: "6th", 10: "10th", 11: "11th", 12: "12th", 13: "13th", 19: "19th",
                20: "20th", 21: "21st", 22: "22nd", 23: "23rd", 24: "24th", 101: "101st", 111: "111th",
                1022: "1,022nd"}  # fmt: skip
    assert {number: _ordinal(number) for number in ordinals} == ordinals


@pytest.mark.parametrize(
    ("these", "those", "left"),
    [
        ("aab", "a", [1, 2]),
        ("aaa", "aa", [2]),
        ("abc", "cba", []),
        ("aba", "aab", []),
        ("ab", "", [0, 1]),
        ("", "ab", []),
        ("aaab", "aaa", [3]),
    ],
)
def test_each_partner_is_used_once(these: str, those: str, left: list[int]) -> None:
    assert _unpaired(list(these), list(those)) == left
