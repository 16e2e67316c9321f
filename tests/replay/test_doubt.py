"""Which calls in doubt are performed again, and which are asked about."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.errors import ValueRefused
from agentloom.replay.doubt import did_it_happen, fate_of
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.live_waits import Again
from agentloom.runtime.outside import Outside


def call(kind: str, name: str = "x", *, tree: Any = None, chunks: int = 0, **more: Any) -> Call:
    made = Call(CallSpec(kind, name, {}, **more), "root/a#1", "root/a", 1, "", "", tree or {}, {}, {})
    made.chunks = chunks
    return made


@pytest.mark.parametrize(
    ("made", "fate"),
    [
        (call("model"), "again"),
        (call("now"), "again"),
        (call("sleep"), "again"),
        (call("tool", effect="write"), "ask"),
        (call("tool", effect="write", idempotent=True), "again"),
        (call("tool", effect="read"), "again"),
        (call("tool", effect="pure"), "again"),
        (call("tool"), "ask"),
        (call("http", tree={"method": "get"}), "again"),
        (call("http", tree={"method": "POST"}), "ask"),
        (call("http", tree={"method": "DELETE"}), "ask"),
        (call("http"), "ask"),
        (call("memory", "get"), "again"),
        (call("memory", "put"), "ask"),
        (call("ask", outside=Outside("answer")), "wait"),
        (call("model", chunks=1), "broken"),
        (call("tool", effect="write", chunks=1), "broken"),
        (call("of a kind that is not known"), "ask"),
    ],
    ids=lambda value: value if isinstance(value, str) else f"{value.type} {value.spec.effect} {value.tree}",
)
def test_what_becomes_of_it(made: Call, fate: str) -> None:
    assert fate_of(made, retried=False) == fate


def test_what_somebody_wants_to_be_tried_again_is() -> None:
    assert fate_of(call("tool", effect="write"), retried=True) == "again"
    assert fate_of(call("ask", outside=Outside("answer")), retried=True) == "wait"


def test_the_question_holds_the_request() -> None:
    outside = did_it_happen(call("tool", "refund", tree={"args": {"order": 812}}))
    assert outside.kind == "answer"
    assert outside.facts["question"] == "Did this happen? tool refund was under way when the process died."
    assert outside.facts["request"] == {"args": {"order": 812}}
    assert outside.facts["in_doubt"] is True


def test_what_the_answer_makes_of_it() -> None:
    read = did_it_happen(call("tool")).read
    assert read is not None
    assert isinstance(read({"happened": False}), Again)
    assert read({"happened": True, "result": 7}) == 7
    assert read({"happened": True}) is None


@pytest.mark.parametrize("said", ["yes", None, {}, {"happened": "no"}, {"happened": 1}, True])
def test_another_answer_is_refused(said: object) -> None:
    read = did_it_happen(call("tool")).read
    assert read is not None
    with pytest.raises(ValueRefused, match="whether a call in doubt happened"):
        read(said)
