"""``ask``, ``approve`` and ``signal`` in async and sync agents: what comes back, when, and what replays make of it."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import functools
import threading
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

import agentloom
from agentloom import Agent, Suspended, Trace, agent, answer, inbox, resume, send_signal, sync, tool
from agentloom.errors import (
    Expired,
    InvalidAnswer,
    MailTaken,
    NoActiveRun,
    NotSupported,
    StaleAnswer,
    ValueRefused,
)
from agentloom.store import Mail, MemoryStore
from agentloom.store.memory import MemoryStore as Store

DONE: list[object] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    DONE.clear()


@pytest.fixture
def store() -> Store:
    return MemoryStore()


def left(work: Callable[[], object]) -> Suspended:
    with pytest.raises(Suspended) as caught:
        work()
    return caught.value


def agents(of_async: Any, of_sync: Any) -> list[Any]:
    return [pytest.param(of_async, id="async"), pytest.param(of_sync, id="sync")]


class Refund(BaseModel):
    order: int
    amount: float = Field(gt=0, description="in dollars")


@agent
async def typed() -> list[Any]:
    return [
        await agentloom.ask("name?"),
        await agentloom.ask("how many?", schema=int),
        await agentloom.ask("share?", schema=float),
        await agentloom.ask("which?", choices=["a", 1, True, None]),
        await agentloom.ask("refund?", schema=Refund),
        await agentloom.ask("tags?", schema={"type": "array", "items": {"type": "string"}, "maxItems": 2}),
        await agentloom.ask("mood?", schema=Literal["good", "bad"]),
    ]


@agent
def typed_sync() -> list[Any]:
    return [
        sync.ask("name?"),
        sync.ask("how many?", schema=int),
        sync.ask("share?", schema=float),
        sync.ask("which?", choices=["a", 1, True, None]),
        sync.ask("refund?", schema=Refund),
        sync.ask("tags?", schema={"type": "array", "items": {"type": "string"}, "maxItems": 2}),
        sync.ask("mood?", schema=Literal["good", "bad"]),
    ]


@pytest.mark.parametrize("program", agents(typed, typed_sync))
def test_answers_come_back_as_what_was_asked_for(store: Store, program: Agent[..., Any]) -> None:
    waits = left(lambda: program.run(store=store))
    said: list[tuple[object, list[object]]] = [
        ("ann", []),
        (3, ["3", True, 3.5]),
        (1, ["x", None]),
        (True, [2, "true", [True]]),
        (
            {"order": 812, "amount": 40},
            [{"order": 812}, {"order": "x", "amount": 1}, {"order": 812, "amount": 0}],
        ),
        (["x", "y"], ["x", ["x", "y", "z"], [1]]),
        ("good", ["great"]),
    ]
    trace: Trace | None = None
    for right, wrong in said:
        for value in wrong:
            with pytest.raises(InvalidAnswer) as refused:
                answer(waits.run, value, store=store)
            assert refused.value.problems
        answer(waits.run, right, store=store)
        if right == "good":
            trace = resume(waits.run, program, store=store)
        else:
            left(lambda: resume(waits.run, program, store=store))
    assert trace is not None
    name, many, share, which, refund, tags, mood = trace.output
    assert (name, many, share, which, tags, mood) == ("ann", 3, 1.0, True, ["x", "y"], "good")
    assert type(share) is float
    assert refund == Refund(order=812, amount=40)
    assert trace.replay(agent=program).verdict == "identical"


def test_a_line_of_text_is_read_as_the_question_wants_it(store: Store) -> None:
    waits = left(lambda: typed.run(store=store))
    for text in ("  ann ", "3", "0.5", "TRUE", '{"order": 1, "amount": 2}', '["x"]'):
        answer(waits.run, text, from_text=True, store=store)
        left(lambda: resume("last", typed, store=store))
    answer(waits.run, "bad", from_text=True, store=store)
    assert resume(waits.run, typed, store=store).output == [
        "ann", 3, 0.5, True, Refund(order=1, amount=2), ["x"], "bad",
    ]  # fmt: skip


def test_numbers_that_are_none_and_numbers_that_are_exact(store: Store) -> None:
    @agent
    async def program() -> Any:
        return [await agentloom.ask("?", schema=float), await agentloom.ask("?", schema=Decimal)]

    waits = left(lambda: program.run(store=store))
    wrong: list[tuple[object, bool]] = [
        (float("nan"), False),
        (float("inf"), False),
        ("1e999", True),
        ("NaN", True),
    ]
    for value, from_text in wrong:
        with pytest.raises(InvalidAnswer):
            answer(waits.run, value, from_text=from_text, store=store)
    answer(waits.run, "1.50", from_text=True, store=store)
    left(lambda: resume("last", program, store=store))
    answer(waits.run, "1.50", from_text=True, store=store)
    number, exact = resume(waits.run, program, store=store).output
    assert (number, str(exact)) == (1.5, "1.50")


def test_a_model_can_be_answered_as_one(store: Store) -> None:
    @agent
    async def program() -> Any:
        return await agentloom.ask("refund?", schema=Refund)

    waits = left(lambda: program.run(store=store))
    answer(waits.run, Refund(order=1, amount=2), store=store)
    assert store.mail(waits.run)[0].value == {"order": 1, "amount": 2.0}
    assert resume(waits.run, program, store=store).output == Refund(order=1, amount=2)


@agent
async def dated(deadline: Any, **more: Any) -> Any:
    return await agentloom.ask("sure?", choices=["yes", "no"], deadline=deadline, **more)


@agent
def dated_sync(deadline: Any, **more: Any) -> Any:
    return sync.ask("sure?", choices=["yes", "no"], deadline=deadline, **more)


@pytest.mark.parametrize("program", agents(dated, dated_sync))
def test_a_deadline_with_a_default_and_without(store: Store, program: Agent[..., Any]) -> None:
    trace = program.run(0.01, default="no", store=store)
    assert trace.output == "no"
    assert trace.replay(agent=program).verdict == "identical"
    with pytest.raises(Expired, match="not answered in time"):
        program.run(dt.timedelta(milliseconds=10), store=store)
    assert Trace.open("last", store).replay(agent=program).verdict == "identical"
    for deadline in (3600, dt.timedelta(hours=1), dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)):
        waits = left(lambda: program.run(deadline, store=store))  # noqa: B023 - called at once
        assert waits.due == waits.asks[0].due
        asked = waits.asks[0].asked_at
        assert waits.due is not None
        assert abs(waits.due - asked - 3600 * 10**9) < 30 * 10**9


def test_questions_that_cannot_be_asked(store: Store) -> None:
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"question": " "}, ValueError),
        ({"choices": "yes"}, ValueError),
        ({"choices": []}, ValueError),
        ({"choices": ["a", "a"]}, ValueError),
        ({"choices": [{"a": 1}]}, ValueError),
        ({"choices": ["a"], "schema": int}, ValueError),
        ({"schema": {"type": "nothing"}}, ValueError),
        ({"schema": object()}, TypeError),
        ({"schema": {"$ref": "http://127.0.0.1:9/schema"}}, ValueError),
        ({"schema": {"type": "array", "items": {"$ref": "#/$defs/Missing"}, "minItems": 1}}, ValueError),
        ({"default": 1}, ValueError),
        ({"default": "c", "choices": ["a"], "deadline": 5}, ValueError),
        ({"deadline": -1}, ValueError),
        ({"deadline": True}, TypeError),
        ({"deadline": float("nan")}, ValueError),
        ({"deadline": dt.datetime(2030, 1, 1)}, ValueError),  # noqa: DTZ001 - without a zone, on purpose
        ({"approver": []}, ValueError),
        ({"approver": ""}, ValueError),
        ({"evidence": object()}, ValueRefused),
    ]

    @agent
    async def program() -> list[str]:
        found: list[str] = []
        for more, kind in wrong:
            try:
                await agentloom.ask(**{"question": "?", **more})
            except kind as error:
                found.append(type(error).__name__)
        return found

    assert len(program.run(store=store).output) == len(wrong)


@agent
async def listens() -> list[Any]:
    return [await agentloom.signal("paid"), await agentloom.signal("other"), await agentloom.signal("paid")]


@agent
def listens_sync() -> list[Any]:
    return [sync.signal("paid"), sync.signal("other"), sync.signal("paid")]


@pytest.mark.parametrize("program", agents(listens, listens_sync))
def test_messages_are_taken_once_oldest_first_whenever_they_came(
    store: Store, program: Agent[..., Any]
) -> None:
    waits = left(lambda: program.run(store=store))
    send_signal(waits.run, "paid", {"n": 1}, by="shop", store=store)
    send_signal(waits.run, "paid", {"n": 2}, store=store, key="order 812")
    with pytest.raises(MailTaken):
        send_signal(waits.run, "paid", {"n": 2}, store=store, key="order 812")
    assert [str(ask) for ask in left(lambda: resume(waits.run, program, store=store)).asks] == [
        "2: signal other"
    ]
    send_signal(waits.run, "other", store=store)
    trace = resume(waits.run, program, store=store)
    assert trace.output == [{"n": 1}, None, {"n": 2}]
    assert "order 812" not in str(trace.journal.entries)  # a key is somebody's text
    assert trace.verify().complete
    assert trace.replay(agent=program).verdict == "identical"
    with pytest.raises(StaleAnswer, match="has ended"):
        send_signal(waits.run, "paid", store=store)


def test_a_signal_with_a_deadline(store: Store) -> None:
    @agent
    async def program() -> Any:
        return await agentloom.signal("paid", deadline=0.01, default="nothing")

    assert program.run(store=store).output == "nothing"


@tool
async def refund(order: int, amount: float) -> str:
    DONE.append((order, amount))
    return "refunded"


@tool
def refund_sync(order: int, amount: float) -> str:
    DONE.append((order, amount))
    return "refunded"


@agent
async def pays(amount: float) -> str:
    grant = await agentloom.approve(refund, 812, amount=amount, approver="ann", evidence={"total": 40})
    return f"{await grant()} by {grant.by}" if grant else f"denied: {grant.reason}"


@agent
def pays_sync(amount: float) -> str:
    grant = sync.approve(refund_sync, 812, amount=amount, approver="ann", evidence={"total": 40})
    return f"{grant()} by {grant.by}" if grant else f"denied: {grant.reason}"


@pytest.mark.parametrize("program", agents(pays, pays_sync))
def test_an_approved_call_is_made(store: Store, program: Agent[..., Any]) -> None:
    waits = left(lambda: program.run(40.0, store=store))
    (ask,) = inbox(store)
    assert ask.approval is not None
    assert ask.approval["args"] == {"order": 812, "amount": 40.0}
    assert ask.evidence == {"total": 40}
    answer(waits.run, "yes", by="ann", store=store)
    assert inbox(store) == []
    assert [one.ask for one in inbox(store, answered=True)] == [ask.ask]
    trace = resume(waits.run, program, store=store)
    assert (trace.output, DONE) == ("refunded by ann", [(812, 40.0)])
    assert {"tool", "by", "at"} <= trace.notes[0]["approved"].keys()
    assert trace.replay(agent=program).verdict == "identical"
    assert DONE == [(812, 40.0)]


@pytest.mark.parametrize("program", agents(pays, pays_sync))
def test_a_denied_call_is_not_made(store: Store, program: Agent[..., Any]) -> None:
    waits = left(lambda: program.run(40.0, store=store))
    answer(waits.run, {"granted": False, "reason": "too much"}, by="ann", store=store)
    assert resume(waits.run, program, store=store).output == "denied: too much"
    assert DONE == []


def test_words_of_approve_that_are_the_tools_too(store: Store) -> None:
    @tool
    async def post(question: str, deadline: int = 3) -> str:
        return f"{question} {deadline}"

    @agent
    async def program() -> list[Any]:
        with pytest.raises(TypeError, match="functools.partial"):
            await agentloom.approve(post, question="really?")
        grant = await agentloom.approve(functools.partial(post, question="really?"), deadline=3600)
        return [grant.tool, await grant(post, "really?")]

    waits = left(lambda: program.run(store=store))
    answer(waits.run, True, store=store)
    assert resume(waits.run, program, store=store).output == ["post", "really? 3"]


def test_what_is_no_tool_cannot_be_approved(store: Store) -> None:
    @agent
    async def program() -> None:
        with pytest.raises(TypeError, match="@tool"):
            await agentloom.approve(print, "x")
        with pytest.raises(TypeError, match="missing"):
            await agentloom.approve(refund)

    assert program.run(store=store).status == "completed"


@pytest.mark.parametrize("kind", ["ask", "approve", "signal"])
def test_where_no_other_process_could_go_on_it_says_what_to_do(store: Store, kind: str) -> None:
    async def work() -> Any:
        if kind == "ask":
            return await agentloom.ask("?")
        return await (agentloom.signal("x") if kind == "signal" else agentloom.approve(refund, 1, 2.0))

    async def main() -> Any:
        return await agentloom.record(work(), store=store)

    with pytest.raises(NotSupported, match="@agent"):
        asyncio.run(main())
    with agentloom.record("block", store=store), pytest.raises(NotSupported, match="@agent"):
        sync.ask("?")


def test_outside_of_every_run_it_is_refused() -> None:
    with pytest.raises(NoActiveRun, match="ask"):
        asyncio.run(agentloom.ask("?"))
    with pytest.raises(NoActiveRun, match="signal"):
        sync.signal("x")


def test_in_the_body_of_a_tool_it_says_where_to_ask(store: Store) -> None:
    @tool
    async def charges() -> Any:
        return await agentloom.ask("sure?")

    @agent
    async def program() -> Any:
        return await charges()

    with pytest.raises(NotSupported, match="in the body of a tool"):
        program.run(store=store)


def test_where_nothing_is_recorded_nothing_can_be_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM", "off")

    async def main() -> Any:
        return await agentloom.record(agentloom.ask("?"))

    with pytest.raises(NotSupported, match="AGENTLOOM=off"):
        asyncio.run(main())


def test_a_long_argument_is_cut_in_the_question_alone(store: Store) -> None:
    @tool
    def post(text: str) -> None: ...

    @agent
    async def program() -> None:
        await agentloom.approve(post, "x" * 5000)

    (ask,) = left(lambda: program.run(store=store)).asks
    assert len(ask.question) < 300
    assert ask.approval["args"]["text"] == "x" * 5000


def test_an_answer_that_came_around_the_checks_is_an_error_of_the_call(store: Store) -> None:
    waits = left(lambda: dated.run(None, store=store))
    store.post(waits.run, Mail("answer", "1", value="perhaps"))
    with pytest.raises(ValueError, match="none of the choices"):
        resume(waits.run, dated, store=store)


def test_words_about_a_schema_are_no_part_of_the_request(store: Store) -> None:
    @dataclasses.dataclass
    class Old:
        """Words."""

        number: int

    @dataclasses.dataclass
    class New:
        """Others."""

        number: int

    def program(cls: type) -> Any:
        @agent(name="asks")
        async def asks() -> int:
            return int((await agentloom.ask("?", schema=cls)).number)

        return asks

    waits = left(lambda: program(Old).run(store=store))
    answer(waits.run, {"number": 3}, store=store)
    assert resume(waits.run, program(New), store=store).output == 3


def test_a_trace_can_be_answered_and_told(store: Store) -> None:
    @agent
    async def program() -> list[Any]:
        return [await agentloom.ask("?", choices=["a"]), await agentloom.signal("paid")]

    waits = left(lambda: program.run(store=store))
    trace = Trace.open(waits.run, store)
    assert [str(ask) for ask in trace.asks] == ["1: ?"]
    trace.answer("a", by="ann", store=store)
    trace.signal("paid", 3, by="bank", store=store)
    done = trace.resume(agent=program, store=store)
    assert (done.output, done.asks) == (["a", 3], [])


def test_who_is_at_the_terminal_answers_where_no_other_process_could_go_on(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = iter("three\n3\nmaybe\nYES\nwhat?\ny\n".splitlines()).__next__
    monkeypatch.setattr("agentloom.api.people_terminal.terminal_reader", lambda: read)

    async def work() -> list[Any]:
        many = await agentloom.ask("how many?", schema=int, evidence={"stock": 5})
        sure = await agentloom.ask("sure?", choices=["yes", "no"], approver="ann")
        grant = await agentloom.approve(refund, 812, 40.0)
        return [many, sure, await grant()]

    async def main() -> Any:
        return await agentloom.record(work(), store=store)

    assert asyncio.run(main()) == [3, "yes", "refunded"]
    said = capsys.readouterr().err
    shown = (
        "how many?",
        '"stock": 5',
        "it is not of type integer",
        "yes, no",
        "for ann",
        "none of the choices",
    )
    for words in (*shown, "yes or no?"):
        assert words in said


@pytest.mark.parametrize("program", agents(dated, dated_sync))
def test_a_process_that_waits_for_a_time_takes_an_answer_that_comes_meanwhile(
    store: Store, program: Agent[..., Any]
) -> None:
    def replies() -> None:
        while not (asks := inbox(store)):
            pass
        answer(asks[0].run, "yes", store=store)

    somebody = threading.Thread(target=replies)
    somebody.start()
    trace = program.run(50, default="no", store=store)  # less than a minute: it is waited for here
    somebody.join()
    assert trace.output == "yes"
    assert trace.replay(agent=program).verdict == "identical"
