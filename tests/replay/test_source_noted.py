"""Requests that are the recorded ones but for what is only noted: fields, ids that are stamped afresh, the effect."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentloom.replay.fields import Comparison, Difference, compare
from agentloom.replay.recording import Recording
from agentloom.replay.report import Noted
from agentloom.replay.source import ReplaySource
from agentloom.replay.summaries import ref_now
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.changes import Change
from agentloom.runtime.session import Session
from tests.replay.benches import record, replaying

MODEL = "agentloom.model/1"


def asked(
    session: Session, request: Any, effect: Any = "read", change: Change | None = None, name: str = "fake"
) -> Call:
    spec = CallSpec("model", name, {"model": "fake", **request}, MODEL, effect, change=change)
    return session.engine.begin(spec, session.root)


def recorded(then: Any, change: Change | None = None) -> Recording:
    return record(lambda bench: asked(bench.session, then, change=change))


def _noted(then: Any, now: Any, effect: Any = "read", change: Change | None = None) -> ReplaySource:
    """What a replay notes of a model call whose request was ``then`` when recorded. It matches."""
    source, session = replaying(recorded(then, change))
    call = asked(session, now, effect, change)
    assert source.position == 1
    if source.noted:
        one = source.recording.calls[0]
        assert source.noted[0].call == ref_now(call, one, one.index)
    return source


def test_a_noted_field_that_differs_is_noted() -> None:
    ann: Any = {"user": "ann"}
    bob: Any = {"user": "bob"}
    source = _noted(ann, bob)
    assert [one.comparison for one in source.noted] == [compare(ann, bob)]
    assert (source.counts.exact, source.counts.noted, source.remarks) == (0, 1, {})
    nothing: Any = {}
    for then, now in ((ann, nothing), (nothing, ann)):
        (one,) = _noted(then, now).noted
        assert one.comparison == compare(then, now)
    for same in (ann, nothing):
        source = _noted(same, same)
        assert (source.noted, source.counts.exact) == ([], 1)


@pytest.mark.parametrize("noted", [False, True])
def test_another_effect_is_noted_and_remarked_on(noted: bool) -> None:
    now: Any = {"user": "bob"} if noted else {"user": "ann"}
    source = _noted({"user": "ann"}, now, "write")
    effect = Difference("effect", "changed", "read", "write")
    fields = compare({"user": "ann"}, now) if noted else Comparison((), 0)
    (one,) = source.noted
    assert isinstance(one, Noted)
    assert one.comparison == replace(fields, items=(*fields.items, effect), total=fields.total + 1)
    assert one.comparison.total == (2 if noted else 1)
    words = (
        "model fake was recorded with effect read and is declared write now:"
        " a replay runs no tool, but what runs live goes by what is declared"
    )
    assert source.remarks == {words: None}


def test_another_effect_of_a_call_without_noted_fields() -> None:
    source = _noted({}, {}, "write")
    (one,) = source.noted
    assert one.comparison == Comparison((Difference("effect", "changed", "read", "write"),), 1)
    assert next(iter(source.remarks)).startswith(
        "model fake was recorded with effect read and is declared write"
    )


# -- changed profiles -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (Change((("temperature", "noted"),)), "temperature"),
        (Change(strict=True), "color"),
        (Change((("messages[].id", "noted"), ("temperature", "noted"))), "temperature"),
    ],
    ids=["a field", "an allow-list", "a part of a field"],
)
def test_what_a_changed_profile_only_notes_is_noted(change: Change, field: str) -> None:
    one: Any = {"messages": [{"id": 1, "role": "user"}], field: 0}
    two: Any = {"messages": [{"id": 1, "role": "user"}], field: 1}
    for then, now in (
        (one, two),
        (two, one),
        (one, {"messages": one["messages"]}),
        ({"messages": []}, {"messages": [], field: 1}),
    ):
        source = _noted(then, now, change=change)
        assert [item.path for item in source.noted[0].comparison.items] == [field]
        assert source.noted[0].comparison.total == 1
    empty: Any = {"messages": []}
    for same in (one, empty):
        assert not _noted(same, same, change=change).noted


def test_a_part_of_a_field_that_is_only_noted_is_noted() -> None:
    change = Change((("messages[].id", "noted"),))
    one: Any = {"messages": [{"id": 1, "role": "user"}], "temperature": 0}
    two: Any = {"messages": [{"id": 2, "role": "user"}], "temperature": 0}
    (noted,) = _noted(one, two, change=change).noted
    assert noted.comparison == compare({"model": "fake", **one}, {"model": "fake", **two})


# -- ids that a framework stamps afresh -----------------------------------------------------------------------------


def _with_ids(*ids: str, text: str = "x", user: str = "ann") -> Any:
    calls = [{"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}} for one in ids]
    said = [{"role": "tool", "tool_call_id": one, "content": "ok"} for one in ids]
    return {
        "messages": [
            {"role": "user", "content": text},
            {"role": "assistant", "content": None, "tool_calls": calls},
            *said,
        ],
        "user": user,
    }


A, B, C, D = (f"call_{letter * 12}" for letter in "abcd")


def test_other_ids_of_the_same_calls_are_noted() -> None:
    then, now = _with_ids(A, B), _with_ids(C, D)
    (noted,) = _noted(then, now).noted
    assert noted.comparison == compare({"model": "fake", **then}, {"model": "fake", **now})
    assert noted.comparison.total == 4
    both = _with_ids(C, D, user="bob")
    (noted,) = _noted(then, both).noted
    assert noted.comparison == compare({"model": "fake", **then}, {"model": "fake", **both})


@pytest.mark.parametrize(
    ("now", "name"),
    [(_with_ids(C, C), "fake"), (_with_ids(C, D, text="y"), "fake"), (_with_ids(C, D), "other")],
    ids=["one for two", "another text", "another model"],
)
def test_ids_that_do_not_pair_are_another_request(now: Any, name: str) -> None:
    source, session = replaying(recorded(_with_ids(A, B)))
    asked(session, now, name=name)
    assert (source.position, source.noted) == (0, [])


def test_a_tool_has_no_ids_that_are_stamped_afresh() -> None:
    def tool(session: Session, request: Any) -> None:
        session.engine.begin(CallSpec("tool", "look", request, "tool/1", "read"), session.root)

    source, session = replaying(record(lambda bench: tool(bench.session, _with_ids(A))))
    tool(session, _with_ids(B))
    assert source.position == 0
