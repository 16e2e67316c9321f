"""What a run asks, read from its trace."""

from __future__ import annotations

import random
from typing import Any

from agentloom.format.blobs import BlobWriter
from agentloom.format.journal import Journal, JournalWriter
from agentloom.format.values import Tree
from agentloom.runtime.asks import ERASED, OpenAsk, asked_by, asks_of, open_asks, with_mail
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.outside import Outside
from agentloom.store import Mail
from agentloom.testing.store_contract import Sample


class Made:
    """A trace with questions, entry by entry."""

    def __init__(self) -> None:
        sample = Sample(7, agent="desk")
        self.run, self.data = sample.run, sample.start()
        self.blobs = BlobWriter.resume(Journal.parse(self.data), random.Random(3).randbytes)
        self.journal = JournalWriter.resume(Journal.parse(self.data))
        self.at = 1_000

    def entry(self, kind: str, **fields: Any) -> int:
        seq = self.journal.seq + 1
        for name in ("val", "who", "default", "req", "err"):
            if name in fields:
                fields[name] = self.blobs.put(fields[name])
        pending = self.blobs.take()
        self.journal.skip(len(pending))
        self.at += 1
        self.data += pending + self.journal.entry(kind, fields, at=self.at)
        return seq

    def ask(
        self, number: int, facts: dict[str, Tree], kind: str = "ask", ask: str | None = None, **more: Any
    ) -> int:
        call = f"root/desk#{number}"
        first = self.entry(
            "request", call=call, type=kind, name=kind, key="0" * 32, profile="plain/1", req={"n": number},
            src="desk.py:3 desk",
        )  # fmt: skip
        self.entry("suspend", ask=ask or str(number), call=call, val=facts, **more)
        return first

    def outcome(self, number: int, value: Tree = "x", status: str = "ok") -> int:
        name = "err" if status == "error" else "val"
        return self.entry("outcome", call=f"root/desk#{number}", vt=number, status=status, **{name: value})

    def parsed(self) -> Journal:
        return Journal.parse(self.data)


def test_a_question_is_read_with_all_its_facts() -> None:
    made = Made()
    approval: dict[str, Tree] = {
        "tool": "refund",
        "args": {"order": 812},
        "schema": {"order": {"type": "int"}},
    }
    facts: dict[str, Tree] = {
        "question": "Refund?", "choices": ["yes", "no"], "schema": {"type": "string"}, "evidence": [1, {"$tuple": [2]}],
        "approver": ["ann", "finance"], "approval": approval, "expires": 99, "more": "ignored",
    }  # fmt: skip
    made.ask(1, facts, deadline=77, default="no")
    (ask,) = open_asks(made.parsed())
    assert ask == OpenAsk(
        "1", made.run, "desk", "answer", question="Refund?", choices=("yes", "no"), schema={"type": "string"},
        evidence=[1, (2,)], approver=("ann", "finance"), due=77, has_default=True, default="no", asked_at=1002,
        call="root/desk#1", src="desk.py:3 desk", approval=approval, expires=99,
    )  # fmt: skip
    assert (ask.number, ask.path, str(ask)) == (1, "root/desk", "1: Refund?")
    assert not ask.is_due(76)
    assert ask.is_due(77)
    assert ask.facts()["question"] == "Refund?"
    assert "name" not in ask.facts()


def test_kinds_of_waits() -> None:
    made = Made()
    made.ask(1, {"name": "paid"}, "signal")
    made.ask(2, {"seconds": 90}, "sleep", deadline=5)
    made.ask(
        3, {"question": "Did this happen?", "in_doubt": True, "kind": "tool", "request": {"a": 1}}, "tool"
    )
    signal, pause, doubt = open_asks(made.parsed())
    assert (signal.kind, signal.name, str(signal)) == ("signal", "paid", "1: signal paid")
    assert (pause.kind, pause.due, str(pause)) == ("time", 5, "2: a time")
    assert (doubt.kind, doubt.in_doubt, doubt.request) == ("answer", True, {"a": 1})


def test_what_became_of_the_others() -> None:
    made = Made()
    for number in (1, 2, 3, 4, 5):
        due: dict[str, Any] = {"deadline": 50} if number == 2 else {}
        made.ask(number, {"question": f"{number}?"}, **due)
    made.entry("answer", ask="1", val="yes", who={"name": "ann", "at": 17, "via": "cli"})
    made.outcome(1)
    made.outcome(2, {"$error": {"type": "x:Y", "args": [], "attrs": {}, "message": ""}}, "error")
    made.entry("outcome", call="root/desk#3", vt=3, status="cancelled")
    made.entry("answer", ask="4", val="yes", who="bob")
    made.entry("signal", name="paid", val=1, mail="m1")
    made.outcome(4)
    asked = asks_of(made.parsed())
    assert [ask.ask for ask in asked.open] == ["5"]
    assert asked.closed["1"] == ("answered", "ann", 17)
    assert asked.closed["2"] == ("expired", None, 50)
    assert asked.closed["3"][0] == "gone"
    assert asked.closed["4"][:2] == ("answered", "bob")
    assert asked.taken == {"m1"}


def test_a_message_that_came_in_time_is_an_answer() -> None:
    made = Made()
    made.ask(1, {"name": "paid"}, "signal", deadline=50)
    made.ask(2, {"name": "paid"}, "signal", deadline=60)
    made.entry("signal", name="paid", val=1, mail="m1", who={"name": "ann", "at": 17, "via": "cli"})
    made.outcome(1)
    made.outcome(2)
    assert asks_of(made.parsed()).closed == {"1": ("answered", "ann", 17), "2": ("expired", None, 60)}


def test_a_message_before_whose_outcome_the_process_died_is_not_taken() -> None:
    """Whoever resumes the run takes it again: were it taken, nobody would know that the run can go on."""
    made = Made()
    made.ask(1, {"name": "paid"}, "signal")
    made.entry("signal", name="paid", val=1, mail="m1", who={"at": 17, "via": "cli"})
    asked = asks_of(made.parsed())
    assert asked.taken == set()
    letter = Mail("signal", "m1", name="paid", value=1, at=17, via="cli")
    assert [ask.ready(0) for ask in with_mail(asked, [letter])] == [True]
    seq = made.journal.seq
    made.entry("retract", **{"from": seq})
    made.entry("resume", epoch=2)
    assert [ask.ready(0) for ask in with_mail(asks_of(made.parsed()), [letter])] == [True]
    made.entry("signal", name="paid", val=1, mail="m1", who={"at": 17, "via": "cli"})
    made.outcome(1)
    assert asks_of(made.parsed()).taken == {"m1"}


def test_an_ended_run_asks_nothing() -> None:
    made = Made()
    made.ask(1, {"question": "?"})
    made.entry("end", status="cancelled")
    asked = asks_of(made.parsed())
    assert asked.open == []
    assert asked.ended == "cancelled"
    assert asked.closed["1"][0] == "gone"


def test_what_was_retracted_does_not_count() -> None:
    made = Made()
    made.ask(1, {"question": "first?"})
    made.entry("signal", name="paid", val=1, mail="kept")
    first = made.ask(2, {"question": "second?"})
    made.entry("answer", ask="2", val="yes")
    made.outcome(2)
    made.entry("signal", name="paid", val=1, mail="void")
    made.entry("end", status="failed")
    made.entry("retract", **{"from": first})
    made.entry("resume", epoch=2)
    made.ask(2, {"question": "again?"}, ask="2.2")
    asked = asks_of(made.parsed())
    assert [(ask.ask, ask.question, ask.number) for ask in asked.open] == [
        ("1", "first?", 1),
        ("2.2", "again?", 2),
    ]
    assert asked.closed == {"2": ("retracted", None, asked.closed["2"][2])}
    assert asked.taken == {"kept"}
    assert asked.ended is None


def test_an_erased_question_is_told_as_such() -> None:
    made = Made()
    made.ask(1, {"question": "What is your name?"})
    kept = [line for line in made.data.splitlines(keepends=True) if b"What is your name" not in line]
    (ask,) = open_asks(Journal.parse(b"".join(kept), strict=False))
    assert (ask.question, ask.erased) == (ERASED, True)


def test_mail_goes_to_the_questions_that_it_answers() -> None:
    made = Made()
    made.ask(1, {"question": "?"})
    made.ask(2, {"name": "paid"}, "signal")
    made.ask(3, {"name": "paid"}, "signal")
    made.ask(4, {"name": "paid"}, "signal")
    made.ask(5, {"name": "paid"}, "signal")
    made.entry("signal", name="paid", val=1, mail="a")
    made.outcome(5)
    mail = [
        Mail("signal", "a", "paid", 1), Mail("signal", "b", "other", 2), Mail("signal", "c", "paid", 3),
        Mail("answer", "1", value="yes"), Mail("signal", "d", "paid", 4), Mail("cancel", "cancel"),
    ]  # fmt: skip
    found = with_mail(asks_of(made.parsed()), mail)
    assert [None if ask.answered is None else ask.answered.key for ask in found] == ["1", "c", "d", None]
    assert found[0].ready(0)
    assert not found[3].ready(0)
    assert found[0].facts()["answered"] == {"value": "yes", "who": None, "at": 0, "via": ""}


def test_a_call_that_is_being_made_is_a_question_too() -> None:
    outside = Outside(
        "answer", facts={"question": "Sure?", "choices": ["y"], "default": "y"}, due=9, default=lambda: 1
    )
    spec = CallSpec("ask", "ask", {}, outside=outside)
    call = Call(spec, "root/desk#2", "root/desk", 3, "desk.py:1 desk", "", {}, {}, {})
    ask = asked_by(call, run="r", agent="desk", asked_at=4)
    assert (ask.ask, ask.question, ask.choices, ask.due, ask.default, ask.asked_at) == (
        "3",
        "Sure?",
        ("y",),
        9,
        "y",
        4,
    )
    call.ask = "3.2"
    assert asked_by(call, run="r", agent="desk").ask == "3.2"
