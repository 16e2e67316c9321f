"""Calls one after the other in another order: one finding, and what was found first where it is not only that."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.recording import Recording
from agentloom.replay.report import Finding
from agentloom.replay.shuffle import Shuffle, _one_by_one
from agentloom.runtime.calls import Arrival, Call
from tests.replay.benches import answered, find, record, replaying
from tests.runtime.fakes import Bench

SOURCE = """
from agentloom import agent, tool
@tool(effect="read")
def find(q): return "found " + q
@agent
def run():
    out = [find("first")]
    for q in ("a", "b", "c", "d"):
        out.append(find(q))
    return out
"""
NOW = '("a", "b", "c", "d")'


@pytest.mark.parametrize(
    ("now", "cls", "index", "last"),
    [
        ('("b", "a", "c", "d")', "reordered", 2, 3),
        ('("d", "c", "b", "a")', "reordered", 2, 5),
        ('("a", "d", "c", "b")', "reordered", 3, 5),
        ('("b", "a")', "reordered", 2, 3),
        ('("b", "c", "d")', "missing", 2, None),
        ('("c", "a", "d", "e")', "missing", 3, None),
        ('("c", "e", "a", "b", "d")', "missing", 2, None),
        ('("e", "a", "b", "c", "d")', "changed", 2, None),
        ('("b", "b", "c", "d")', "missing", 2, None),
    ],
)
def test_one_finding(program: Any, now: str, cls: str, index: int, last: int | None) -> None:
    trace = program.record(SOURCE)
    report = program.replay(trace, (NOW, now))
    assert report.finding.cls == cls
    assert report.finding.call.index == index
    assert report.finding.last == last
    assert report.counts.exact == index - 1 if cls != "missing" else report.counts.exact == 1


def test_calls_that_come_out_of_order_get_their_own_answers_meanwhile(program: Any) -> None:
    """What the agent does between is not the verdict, and no effect of it is either."""
    source = SOURCE.replace(
        "    return out", "    if out[1] == 'found d': open('never-written.txt', 'w')\n    return out"
    )
    trace = program.record(source)
    report = program.replay(trace, (NOW, '("d", "a", "b")'))
    assert report.finding.cls == "missing"
    assert report.finding.call.index == 4


# -- the shuffle itself -----------------------------------------------------------------------------------------------


def _four(bench: Bench) -> None:
    answered(bench, "a")
    answered(bench, "b")
    answered(bench, "c")
    answered(bench, "d")
    bench.begin(q="e")
    bench.begin(q="f")


def _calls(*qs: str) -> tuple[Recording, list[Call]]:
    """A recording of four answered calls and two at once; the calls ``qs`` as they are made now."""
    recording = record(_four)
    _, session = replaying(record(lambda bench: None))
    source = session.engine.source
    source.begin = lambda call: None  # type: ignore[method-assign]
    return recording, [find(session, q) for q in qs]


def _begun(*qs: str) -> tuple[Shuffle, list[Call]]:
    recording, calls = _calls(*qs)
    shuffle = Shuffle.begin(recording, 0, calls[0], quiescent=False)
    assert shuffle is not None
    return shuffle, calls


@pytest.mark.parametrize(
    ("q", "begins"), [("a", False), ("b", True), ("d", True), ("e", False), ("x", False)]
)
def test_it_begins_with_a_call_that_was_recorded_shortly_after(q: str, begins: bool) -> None:
    recording, [call] = _calls(q)
    assert (Shuffle.begin(recording, 0, call, quiescent=False) is not None) is begins
    assert Shuffle.begin(recording, 8, call, quiescent=False) is None


def test_what_was_found_first_is_judged_at_its_place_and_as_the_program_waits() -> None:
    recording, [last] = _calls("d")
    shuffle = Shuffle.begin(recording, 2, last, quiescent=False)
    assert shuffle is not None
    assert (shuffle.at, shuffle.first.message) == (2, _missing("b", 1, last))

    def twice(bench: Bench) -> None:
        for q in "abcb":
            answered(bench, q)

    _, [again] = _calls("b")
    words = {True: "The same request is made from another place in the run's structure.", False: ""}
    for quiescent, message in words.items():
        shuffle = Shuffle.begin(record(twice), 2, again, quiescent=quiescent)
        assert shuffle is not None
        assert (shuffle.first.cls, shuffle.first.reason, shuffle.first.message) == (
            "changed",
            "path",
            message,
        )


def test_each_recorded_call_answers_once_and_its_own_request() -> None:
    shuffle, calls = _begun("b", "a", "a", "x", "b", "c")
    taken = [shuffle.take(call) for call in calls]
    assert [None if one is None else one.id for one in taken] == [
        "root/probe#2",
        "root/probe#1",
        None,
        None,
        None,
        "root/probe#3",
    ]
    assert shuffle.made == [calls[0], calls[1], calls[5]]


def test_the_order_is_told_once_all_up_to_the_last_one_were_made() -> None:
    shuffle, calls = _begun("c", "a", "b", "d")
    found = []
    for call in calls[:3]:
        shuffle.take(call)
        found.append(shuffle.finding())
    assert found[:2] == [None, None]
    assert found[2] is not None
    assert (found[2].cls, found[2].reason, found[2].last) == ("reordered", "order", 3)
    assert found[2].call is not None
    assert (found[2].call.index, found[2].call.id) == (1, calls[0].id)
    assert found[2].sequences == (
        ('find("a")', 'find("b")', 'find("c")'),
        ('find("c")', 'find("a")', 'find("b")'),
    )


def test_what_was_found_first_stands_where_the_order_is_not_all() -> None:
    shuffle, calls = _begun("c", "a")
    first = shuffle.first
    assert (first.cls, first.message) == ("missing", _missing("a", 1, calls[0]))
    assert shuffle.given_up() == first
    for call in calls:
        shuffle.take(call)
    given_up = shuffle.given_up()
    assert given_up.message == _missing("b", 0, calls[0])
    assert given_up.call is not None
    assert given_up.call.id == "root/probe#2"
    wide, [last] = _begun("d")
    wide.take(last)
    assert wide.given_up().message == _missing("a", 2, last)


def _missing(q: str, more: int, now: Call) -> str:
    rest = (
        f" and {more} more recorded here are not made now."
        if more
        else " was made here when recorded; now it is not."
    )
    return f'find("{q}"){rest} Now: find("{now.tree["q"]}") at {now.src.split(" ")[0]}.'


def test_nothing_is_missing_where_no_call_was_left_out() -> None:
    shuffle, calls = _begun("b", "a")
    shuffle.first = Finding("missing", None, "first")
    for call in calls:
        shuffle.take(call)
    assert shuffle.given_up() is shuffle.first
    other, [call] = _begun("c")
    other.first = Finding("changed", None, "first")
    other.take(call)
    assert other.given_up() is other.first


def test_only_calls_that_were_answered_before_the_next_began_are_looked_at() -> None:
    recording = record(_four)
    assert [call.id[-1] for call in _one_by_one(recording, 0)] == ["1", "2", "3", "4"]
    assert [call.id[-1] for call in _one_by_one(recording, 4)] == ["3", "4"]
    assert _one_by_one(recording, 1) == []
    assert _one_by_one(recording, len(recording.steps)) == []

    def crossed(bench: Bench) -> None:
        one, other = bench.begin(q="a"), bench.begin(q="b")
        bench.engine.deliver(Arrival("outcome", other))
        bench.engine.deliver(Arrival("outcome", one))

    assert _one_by_one(record(crossed), 0) == []
    assert _one_by_one(record(crossed), 1) != []

    def overlapping(bench: Bench) -> None:
        one, other = bench.begin(q="a"), bench.begin(q="b")
        bench.engine.deliver(Arrival("outcome", one))
        bench.engine.deliver(Arrival("outcome", other))

    assert _one_by_one(record(overlapping), 1) == []

    def left(bench: Bench) -> None:
        bench.engine.end_by_agent(bench.begin(q="a"), "cancelled")
        answered(bench, "b")

    assert _one_by_one(record(left), 0) == []

    def ends_with_one(bench: Bench) -> None:
        answered(bench, "a")

    assert len(_one_by_one(record(ends_with_one), 0)) == 1


def test_sixty_four_calls_are_looked_at() -> None:
    def many(bench: Bench) -> None:
        for number in range(70):
            answered(bench, str(number))

    assert len(_one_by_one(record(many), 0)) == 64
