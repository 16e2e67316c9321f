"""``input()`` inside a run is a question: recorded with its answer and served."""

from __future__ import annotations

import asyncio
import io
import sys
from typing import Any

import pytest

import agentloom
from agentloom.errors import NotSupported, Suspended
from tests.guard.agents import Program


class Terminal(io.StringIO):
    """Standard input with somebody at it."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("guard", ["strict", "virtual"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_an_answer_is_recorded_and_served(
    program: Program,
    guard: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_async: bool,
) -> None:
    agent = program.agent("return [input('Refund? '), input()]", guard, is_async=is_async)
    monkeypatch.setattr(sys, "stdin", Terminal("yes\nplease\n"))
    trace = program.record(agent)
    assert trace.output == ["yes", "please"]
    assert [(call.kind, call.name, call.request, call.result) for call in trace.calls] == [
        ("ask", "input", {"question": "Refund? "}, "yes"),
        ("ask", "input", {"question": ""}, "please"),
    ]
    assert capsys.readouterr().out == "Refund? "
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert program.replay(agent).verdict == "identical"
    assert capsys.readouterr().out == "Refund? "
    report = program.replay(program.agent("return [input('Refund it? '), input()]", guard, is_async=is_async))
    assert "question" in str(report)
    assert report.verdict == "diverged"


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_without_a_terminal_the_run_waits_for_who_answers_elsewhere(
    program: Program, monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("no one\n"))
    agent = program.agent("return [input('Refund? '), input('Sure? ')]", is_async=is_async)
    with pytest.raises(Suspended) as waits:
        program.record(agent)
    assert [(ask.ask, ask.question) for ask in waits.value.asks] == [("1", "Refund? ")]
    agentloom.answer(waits.value.run, "yes", store=program.store)
    with pytest.raises(Suspended) as again:
        agentloom.resume(waits.value.run, agent, store=program.store)
    agentloom.answer(waits.value.run, "very", store=program.store)
    # Somebody is at the terminal now, but the question was answered elsewhere before.
    monkeypatch.setattr(sys, "stdin", Terminal("no\n"))
    assert [ask.question for ask in again.value.asks] == ["Sure? "]
    trace = agentloom.resume(waits.value.run, agent, store=program.store)
    assert trace.output == ["yes", "very"]
    assert program.replay(agent).verdict == "identical"


def test_where_no_process_could_go_on_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("no one\n"))

    async def work() -> str:
        return input("Refund? ")  # noqa: ASYNC250 - that is what is asked about

    async def main() -> str:
        return await agentloom.record(work(), store=":memory:")

    with pytest.raises(
        NotSupported, match=r"input\('Refund\? '\) was called in a run, and there is no terminal"
    ):
        asyncio.run(main())


def test_the_end_of_input_is_recorded(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(""))
    agent = program.agent("try: return input('more? ')\nexcept EOFError: return 'none'")
    assert program.record(agent).output == "none"
    assert program.replay(agent).verdict == "identical"


def test_outside_a_run_input_is_pythons(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    program.record(program.agent("return act(1)"))
    monkeypatch.setattr(sys, "stdin", io.StringIO("a\nb\n"))
    assert input() == "a"
    assert sys.stdin.readline() == "b\n"


def test_a_tool_may_ask_by_itself(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    agent: Any = program.load(
        """
        @tool
        def person(question): return input(question) + sys.stdin.readline()
        @agent(guard="strict")
        def main(): return person("who? ")
        """
    )
    monkeypatch.setattr(sys, "stdin", io.StringIO("me\nand you\n"))
    trace = program.record(agent)
    assert trace.output == "meand you\n"
    assert [call.kind for call in trace.calls] == ["tool"]


@pytest.mark.parametrize(
    "read",
    [
        "sys.stdin.read(1)",
        "next(sys.stdin)",
        "list(sys.stdin)",
        "sys.stdin.readlines()",
        "sys.stdin.buffer.read()",
    ],
)
def test_standard_input_is_listed_by_a_virtual_guard(
    program: Program, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"one\ntwo\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    trace = program.record(program.agent(f"return str({read})", "virtual"))
    assert [entry["what"] for entry in trace.unrecorded] == ["reads standard input"]
    assert isinstance(sys.stdin, io.TextIOBase)
    assert not sys.stdin.isatty()
