"""Workflows: steps in order, prompts by a stated rule, deterministic steps that really run on replay."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

import agentloom
from agentloom import State, Trace, Workflow, set_backend
from agentloom.errors import ValueRefused, WorkflowError
from agentloom.store import MemoryStore


class Echo:
    """Answers with the model's name and the last message."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.asked.append(dict(request))
        return {"content": f"{request['model']} says {len(request['messages'])}", "tool_calls": None}

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError


@pytest.fixture
def backend() -> Iterator[Echo]:
    mine = Echo()
    before = set_backend(mine)
    yield mine
    set_backend(before)


def test_a_model_step_sends_the_input_and_then_the_results_before(backend: Echo) -> None:
    graph = Workflow()
    graph.step("classify", model="a", temperature=0).step("route", fn=lambda state: ["x", 1])
    trace = graph.step("respond", model="b", system="Be kind.").run("hello", seed=42, store=MemoryStore())
    first, second = backend.asked
    assert first == {"model": "a", "messages": [{"role": "user", "content": "hello"}], "temperature": 0}
    assert second["messages"] == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": 'hello\nclassify: a says 1\nroute: ["x", 1]'},
    ]
    assert trace.output == "b says 2"


@pytest.mark.parametrize(
    ("prompt", "content"),
    [
        ("About {input}: {first}", "About hello: a says 1"),
        (lambda state: f"{state.first}!", "a says 1!"),
        (lambda state: [{"role": "user", "content": state["input"]}], "hello"),
    ],
)
def test_prompts_are_texts_or_functions(backend: Echo, prompt: Any, content: str) -> None:
    graph = Workflow().step("first", model="a").step("second", model="b", prompt=prompt)
    graph.run("hello", store=MemoryStore())
    assert backend.asked[1]["messages"][-1]["content"] == content


def test_a_deterministic_step_runs_on_replay_and_says_what_it_read(backend: Echo) -> None:
    ran: list[str] = []

    def route(state: State) -> str:
        ran.append(state["first"])
        return "human" if "says" in state.first else "bot"

    trace = Workflow().step("first", model="a").step("route", fn=route).run("hi", store=MemoryStore())
    assert trace.replay().verdict == "identical"
    assert len(ran) == 2
    entry = next(entry for entry in trace.journal.entries if entry["kind"] == "state")
    assert (entry["name"], entry["reads"]) == ("route", ["first"])


def test_a_changed_result_of_a_deterministic_step_diverges(backend: Echo) -> None:
    answers = iter(["human", "bot"])
    graph = Workflow().step("first", model="a").step("route", fn=lambda state: next(answers))
    report = graph.run("hi", store=MemoryStore()).replay(check=False)
    assert report.verdict == "diverged"
    assert "route" in str(report)


def test_the_state_is_read_only_by_copy() -> None:
    state = State({"a": [1]}, {"one": 1})
    state["input"]["a"].append(2)
    assert state["input"] == {"a": [1]}
    assert (state.one, list(state), len(state), state.reads) == (1, ["input", "one"], 2, ("input", "one"))
    with pytest.raises(AttributeError, match="it has input, one"):
        _ = state.two


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("x", {}, "it has nothing to run"),
        ("x", {"model": "a", "fn": len}, "exactly one of model=, fn=, tool=, agent=, workflow="),
        ("input", {"model": "a"}, "the name is taken"),
        ("first", {"model": "a"}, "the name is taken"),
        ("two words", {"model": "a"}, "'two_words'"),
        ("items", {"model": "a"}, "state.items would not be its result"),
        ("_x", {"model": "a"}, "would not be its result"),
        ("x", {"fn": len, "prompt": ""}, "prompt belong to a model step"),
        ("x", {"fn": len, "system": ""}, "system belong to a model step"),
        ("x", {"model": "a", "messages": [{}]}, "messages= is not for steps"),
        ("x", {"model": "a", "prompt": "{second}"}, "has {second}; before it there are input, first"),
        ("x", {"model": "a", "prompt": "{}"}, "has {}; before it"),
        ("x", {"model": "a", "prompt": "{input[0]}"}, "before it there are input, first"),
        ("x", {"model": "a", "prompt": '{"json": 1}'}, "before it there are input, first"),
        ("x", {"model": "a", "prompt": "{input"}, "is no template"),
        ("x", {"fn": len, "temperature": 0}, "temperature belong to a model step"),
        ("x", {"fn": lambda: None}, "takes one argument"),
    ],
)
def test_what_cannot_be_built_names_the_step(name: str, given: dict[str, Any], message: str) -> None:
    graph = Workflow().step("first", model="a")
    with pytest.raises(WorkflowError, match=re.escape(message)) as caught:
        graph.step(name, **given).build()
    assert repr(name) in caught.value.message


def test_a_workflow_without_steps_does_not_run() -> None:
    with pytest.raises(WorkflowError, match="no steps"):
        Workflow("empty").run("hi", store=MemoryStore())


async def _run(graph: Workflow) -> str:
    return str((await graph.arun("hi", store=MemoryStore())).output)


def test_it_runs_inside_a_running_loop(backend: Echo) -> None:
    import asyncio

    assert asyncio.run(_run(Workflow().step("first", model="a"))) == "a says 1"


def test_templates_may_hold_braces_and_results_are_not_templates(backend: Echo) -> None:
    graph = (
        Workflow().step("one", fn=lambda state: "{input}").step("two", model="a", prompt='{{"x": "{one}"}}')
    )
    graph.run("hello", store=MemoryStore())
    assert backend.asked[0]["messages"][0]["content"] == '{"x": "{input}"}'


def test_a_system_text_goes_before_messages_of_a_function_too(backend: Echo) -> None:
    messages = [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]
    Workflow().step("one", model="a", system="s", prompt=lambda state: messages).run("x", store=MemoryStore())
    assert backend.asked[0]["messages"] == [{"role": "system", "content": "s"}, *messages]


def boom(state: State) -> None:
    raise ZeroDivisionError("boom")


async def late_boom(state: State) -> None:
    raise ZeroDivisionError("boom")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"fn": boom}, ZeroDivisionError),
        ({"fn": late_boom}, ZeroDivisionError),
        ({"fn": lambda state: state["nothing"]}, KeyError),
        ({"fn": lambda state: object()}, ValueRefused),
        ({"model": "a", "prompt": lambda state: None}, WorkflowError),
        ({"model": "a", "prompt": lambda state: ["text"]}, WorkflowError),
        ({"model": "a", "prompt": boom}, ZeroDivisionError),
        ({"model": "a"}, WorkflowError),  # the set of the step before has no text
    ],
)
def test_an_error_in_a_step_names_it_and_replays(
    backend: Echo, given: dict[str, Any], error: type[Exception]
) -> None:
    graph = Workflow("triage").step("first", fn=lambda state: {1, 2}).step("bad", **given)
    store = MemoryStore()
    with pytest.raises(error) as caught:
        graph.run("hi", store=store)
    assert "in step 'bad' of workflow 'triage'" in caught.value.__notes__
    trace = Trace.open("last", store)
    assert trace.status == "failed"
    assert trace.replay(agent=graph).verdict == "identical"


def test_an_async_function_may_make_host_calls_and_they_lie_below_its_step(backend: Echo) -> None:
    async def looks(state: State) -> float:
        return await agentloom.random()

    trace = Workflow("w").step("draw", fn=looks).run("x", seed=1, store=MemoryStore())
    assert trace.calls[0].path.startswith("root/w/draw[0]/")
    assert trace.replay().verdict == "identical"


def test_the_seed_is_the_runs_and_goes_to_no_provider(backend: Echo) -> None:
    graph = Workflow().step("a", model="m").step("b", model="m", seed=5)
    assert graph.run("x", seed=42, store=MemoryStore()).journal.entries[0]["seed"] == 42
    assert [asked.get("seed") for asked in backend.asked] == [None, 5]


def test_reads_are_those_of_the_step_alone_in_their_order(backend: Echo) -> None:
    graph = (
        Workflow()
        .step("a", fn=lambda state: [state.input])
        .step("b", fn=lambda state: [state.a, state.input])
    )
    trace = graph.step("c", fn=lambda state: 1).run("x", store=MemoryStore())
    reads = [entry["reads"] for entry in trace.journal.entries if entry["kind"] == "state"]
    assert reads == [["input"], ["a", "input"], []]
    assert trace.output == 1


def test_a_step_cannot_change_what_another_one_sees(backend: Echo) -> None:
    def changes(state: State) -> int:
        state.first.append(9)
        state["input"]["x"] = 9
        return 0

    graph = Workflow().step("first", fn=lambda state: [1]).step("second", fn=changes)
    trace = graph.step("third", fn=lambda state: [state.first, state.input]).run(
        {"x": 1}, store=MemoryStore()
    )
    assert trace.output == [[1], {"x": 1}]
