"""Another input: what the finding says, and where nothing can be said of it."""

from __future__ import annotations

from agentloom.replay.fields import compare
from agentloom.replay.given import by_input, input_notes
from agentloom.replay.report import CallRef, Finding


def test_the_difference_of_the_input_takes_the_place_of_what_came_of_it() -> None:
    differs = compare({"args": [1]}, {"args": [2]}, root="input")
    call = CallRef("root/a#3", "tool", "look", 3, "agent.py:7 main")
    finding = Finding("leak", call, "x", compare(1, 2), reason="request", sequences=(("a",), ("b",)), last=9)
    found = by_input(finding, differs)
    assert (found.cls, found.reason, found.comparison, found.sequences, found.last) == (
        "changed", "input", differs, None, None
    )  # fmt: skip
    assert found.message == (
        "The input is not the recorded one; the first call that differs is 3 tool look at agent.py:7."
    )
    assert by_input(Finding("output", None, ""), differs).message == "The input is not the recorded one."
    made_now = CallRef("root/a#3", "tool", "look")
    assert by_input(Finding("extra", made_now, ""), differs).message.endswith("differs is tool look.")


def test_a_difference_that_changes_nothing_is_a_note() -> None:
    assert list(input_notes(None)) == []
    (note,) = input_notes(compare({"a": 1, "b": 2}, {"a": 3}, root="input"))
    assert note == "the input differs: input.a 1 -> 3 and 1 more; it makes no difference to this run"
    (note,) = input_notes(compare({}, {"b": "x"}, root="input"))
    assert 'input.b (absent) -> "x"' in note
    (note,) = input_notes(compare({"b": "x"}, {}, root="input"))
    assert 'input.b "x" -> (absent)' in note
