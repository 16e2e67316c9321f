"""Which earlier outcome holds a value: the latest one, of the calls that matched, within bounds."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agentloom.errors import PayloadMissing
from agentloom.format.placeholders import placeholder
from agentloom.replay import search
from agentloom.replay.fields import Difference, compare
from agentloom.replay.search import earlier_holder, holds_placeholder


class Told:
    """A source whose recording holds these outcomes, one call each; None: not answered; an error: erased."""

    def __init__(self, *outcomes: Any, position: int | None = None) -> None:
        self.recording = self
        self.outcomes = outcomes
        self.steps = [
            step
            for number, outcome in enumerate(outcomes)
            for call in [SimpleNamespace(index=number + 1, type="tool", name=f"t{number + 1}", value=outcome)]
            for step in (
                SimpleNamespace(kind="request", call=call),
                SimpleNamespace(kind="outcome", call=call),
            )
        ]
        self.steps.insert(0, SimpleNamespace(kind="outcome", call=None))
        self.position = len(self.steps) if position is None else position
        self.read: list[int] = []

    def outcome(self, call: Any) -> Any:
        self.read.append(call.index)
        if isinstance(call.value, PayloadMissing):
            raise call.value
        return call.value


def holder(told: Any, *items: Difference) -> str | None:
    return earlier_holder(told, items)


def asked(now: Any, then: Any = "") -> Difference:
    return compare({"p": then}, {"p": now}).items[0]


def test_the_latest_matched_outcome_that_holds_the_value_is_named() -> None:
    told = Told({"a": "needle"}, "a needle too", "hay")
    assert holder(told, asked("needle")) == "2 (tool t2)"
    assert told.read == [3, 2]
    assert holder(Told("needle", "needle", position=3), asked("needle")) == "1 (tool t1)"
    assert holder(Told("needle", position=2), asked("needle")) is None
    assert holder(Told("hay"), asked("needle")) is None
    assert holder(Told("xeedle", "needlx"), asked("needle")) is None
    assert holder(Told(), asked("needle")) is None


def test_an_outcome_that_never_came_or_was_erased_is_passed_over() -> None:
    assert holder(Told("needle", None, PayloadMissing("erased")), asked("needle")) == "1 (tool t1)"


def test_values_are_looked_for_as_they_are_written() -> None:
    assert holder(Told({"a": 'said "yes"\n'}), asked('said "yes"\n')) == "1 (tool t1)"
    assert holder(Told({"a": "x"}), asked('"a"')) is None
    assert holder(Told("größe"), asked("größe")) == "1 (tool t1)"


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (asked("four"), True),
        (asked("abc"), False),
        (Difference("p", "removed", recorded="four", now="four"), False),
        (Difference("p", "added", now="four"), True),
        (Difference("p", "added", now={"$datetime": "four"}), True),
        (Difference("p", "added", now={"a": "four", "b": 1}), False),
        (Difference("p", "added", now={"a": 1}), False),
        (Difference("p", "added", now=["four"]), False),
        (Difference("p", "added", now=4444), False),
        (Difference("p", "added", now=None), False),
    ],
)
def test_what_is_looked_for_in_a_difference(item: Difference, found: bool) -> None:
    told = Told("four and 4444 and abc")
    assert holder(told, item) == ("1 (tool t1)" if found else None)
    assert bool(told.read) is found


def test_the_first_value_that_is_long_enough_is_looked_for() -> None:
    assert holder(Told("second", "first"), asked("abc"), asked("first"), asked("second")) == "2 (tool t2)"


def test_of_a_long_text_the_part_that_changed_is_looked_for() -> None:
    common = "some words that are the same as they were before. " * 5
    changed = asked(f"{common}the needle {common}", f"{common}nothing {common}")
    assert len(changed.hunks) == 1
    assert holder(Told("the needle"), changed) == "1 (tool t1)"
    short = asked("x" * 150 + " needle", "x" * 150 + " other")
    assert short.hunks
    assert holder(Told("needle"), short) is None
    assert holder(Told("x" * 150 + " needle"), short) == "1 (tool t1)"
    exactly = asked("x" * 193 + " needle", "x" * 193 + " other")
    assert holder(Told("needle"), exactly) is None
    assert holder(Told("needle"), asked("x" * 194 + " needle", "x" * 194 + " other")) == "1 (tool t1)"
    whole = Difference("p", "added", now="y" * 300)
    assert holder(Told("y" * 300), whole) == "1 (tool t1)"


def test_how_many_outcomes_are_looked_at_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_CALLS", 3)
    told = Told("needle", None, "a", "b", "c")
    assert holder(told, asked("needle")) is None
    assert told.read == [5, 4, 3]
    assert holder(Told("hay", "needle", "b", "c"), asked("needle")) == "2 (tool t2)"
    assert search._BYTES == 4_000_000


def test_how_much_text_is_looked_at_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "_BYTES", 10)
    assert holder(Told("needle", "12345678"), asked("needle")) == "1 (tool t1)"
    assert holder(Told("needle", "123", "123"), asked("needle")) == "1 (tool t1)"
    told = Told("needle", "12345", "1234")
    assert holder(told, asked("needle")) is None
    assert told.read == [3, 2]


@pytest.mark.parametrize("tree", [True, 1.5, [], {"a": ["__redacted_1"]}, "__redacted_x__", "__redacted___"])
def test_what_holds_no_placeholder(tree: Any) -> None:
    assert holds_placeholder(tree) is False


def test_a_placeholder_may_stand_anywhere_in_a_text_or_be_a_name() -> None:
    assert holds_placeholder(f"a {placeholder(12)} b")
    assert holds_placeholder({placeholder(1): 1})
