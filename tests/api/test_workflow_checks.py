"""What is checked when a workflow is built: every fault names its step, all are said at once."""

from __future__ import annotations

import re
from typing import Any

import pytest

import agentloom
from agentloom import State, Workflow
from agentloom.errors import WorkflowError
from agentloom.store import MemoryStore


def nothing(state: State) -> None:
    """A step."""


@agentloom.tool(effect="read")
def lookup(order: int, currency: str = "EUR") -> str:
    """A tool."""
    return f"{order} {currency}"


@agentloom.tool(effect="read")
def anything(**fields: Any) -> str:
    """A tool that takes what it is given."""
    return str(fields)


@agentloom.tool(effect="read")
def positional(order: int, /) -> str:
    """A tool that takes no names."""
    return str(order)


@agentloom.agent
async def helper(question: str) -> str:
    """An agent."""
    return question


def three() -> Workflow:
    return Workflow("three").step("a", fn=nothing).step("b", fn=nothing).step("c", fn=nothing)


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        (
            "x",
            {"fn": nothing, "after": "bb"},
            "after= names 'bb', which is no step\n  next: did you mean 'b'?",
        ),
        ("x", {"fn": nothing, "after": "zzz"}, "which is no step\n  next: the steps are a, b, c, x"),
        ("x", {"fn": nothing, "after": "x"}, "it waits for itself: x -> x"),
        ("x", {"fn": nothing, "loop": {"zzz": 1}}, "loop= names 'zzz', which is no step"),
        (
            "x",
            {"fn": nothing, "after": "a", "loop": {"b": 1}},
            "loop= goes back to 'b', which is not before it",
        ),
        ("x", {"fn": nothing, "inputs": ["zzz"]}, "inputs= names 'zzz'; before it there are input, a, b, c"),
        (
            "x",
            {"fn": nothing, "after": "a", "inputs": ["b"]},
            "inputs= names 'b'; before it there are input, a",
        ),
        ("x", {"fn": nothing, "each": "zzz"}, "each= names 'zzz'; before it there are input, a, b, c"),
        ("x", {"model": "m", "prompt": "{zzz}"}, "its prompt has {zzz}; before it there are input, a, b, c"),
        (
            "x",
            {"model": "m", "prompt": "{b}", "after": "a"},
            "name 'b' in after= of 'x', or of a step before it",
        ),
        ("x", {"model": "m", "prompt": "{item}"}, "its prompt has {item}"),
        (
            "x",
            {"model": "m", "prompt": "{a} {b}", "inputs": ["a"]},
            "{b}, which is not among its inputs=; they are a",
        ),
        ("x", {"tool": lookup}, "its tool needs 'order'; before it there are input, a, b, c"),
        ("x", {"tool": lookup, "args": {}}, "its tool needs 'order'; args= gives nothing"),
        (
            "x",
            {"tool": lookup, "args": {"order": 1, "z": 2}},
            "args= gives 'z', which its tool does not take",
        ),
        ("x", {"tool": lookup, "args": {"order": "{zzz}"}}, "args['order'] has {zzz}; before it there are"),
        ("x", {"tool": positional}, "parameter 'order' of its tool cannot be given by name"),
        ("x", {"agent": helper}, "its agent needs 'question'; before it there are input, a, b, c"),
        ("item", {"fn": nothing, "each": "a"}, "the name is taken by the items of 'item'"),
    ],
)
def test_what_is_wrong_with_the_graph_names_the_step(name: str, given: dict[str, Any], message: str) -> None:
    graph = three().step(name, **given)
    with pytest.raises(WorkflowError) as caught:
        graph.build()
    assert message in str(caught.value)
    assert f"step {name!r}" in caught.value.message
    assert caught.value.fields["step"] == name


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fn": 1}, "fn= takes a function of the state, not an int"),
        ({"tool": nothing}, "tool= takes a tool, not a function"),
        ({"agent": nothing}, "agent= takes an agent, not a function"),
        ({"workflow": nothing}, "workflow= takes a Workflow, not a function"),
        ({"fn": nothing, "tool": lookup}, "give exactly one of model=, fn=, tool=, agent=, workflow="),
        ({"model": "m", "promt": "x"}, "promt= is no word of a step\n  next: did you mean prompt=?"),
        ({"fn": nothing, "aftr": "a"}, "did you mean after=?"),
        ({"model": 5}, "model= takes the name of a model, or several"),
        ({"model": []}, "model= takes the name of a model, or several"),
        ({"model": "m", "prompt": "x", "template": "y"}, "give prompt= or template=, not both"),
        ({"tool": lookup, "temperature": 1}, "temperature belong to a model step"),
        ({"fn": nothing, "prompt": "x"}, "prompt belong to a model step"),
        ({"fn": nothing, "args": {}}, "args= is for tools, agents and workflows"),
        ({"fn": nothing, "repair": 2}, "repair= is for a model step with output="),
        ({"fn": nothing, "when": True}, "when= takes a function of the state, not a bool"),
        ({"fn": nothing, "when": lambda: True}, "when= takes one argument, the state"),
        ({"fn": nothing, "each": lambda state, more: [more]}, "each= takes one argument, the state"),
        ({"fn": nothing, "each": "a", "limit": 0}, "limit=0: at least one item is worked on at a time"),
        ({"model": "m", "loop": {"a": 1}}, "only a step with fn= can go back"),
        ({"fn": nothing, "each": "a", "loop": {"a": 1}}, "cannot choose; loop= is for a step after it"),
        ({"fn": nothing, "loop": {"a": 0}}, "loop={'a': 0}: a bound is a number from 1"),
        ({"fn": nothing, "timeout": 1}, "timeout=1: a synchronous fn cannot be stopped while it runs"),
        ({"tool": lookup, "args": {"order": 1}, "timeout": 1}, "a synchronous tool cannot be stopped"),
        ({"tool": lookup, "args": {"order": "{"}}, "args['order'] is no template"),
        ({"fn": nothing, "retry": "often"}, "retry= takes a Retry or a number of attempts, not str"),
    ],
)
def test_what_is_wrong_with_a_step_alone_is_said_at_once(given: dict[str, Any], message: str) -> None:
    graph = three()
    with pytest.raises(WorkflowError) as caught:
        graph.step("x", **given)
    assert message in str(caught.value)
    assert "step 'x'" in caught.value.message
    assert graph.build() is graph  # nothing of it was added


def test_parameters_of_models_are_no_misspelt_words() -> None:
    three().step("x", model="m", tools=[], top_p=1, n=2, stop="x", seed=1, user="u", max_tokens=3).build()


def test_all_faults_are_said_at_once() -> None:
    graph = (
        three().step("x", fn=nothing, after="zzz").step("y", model="m", prompt="{q}").step("z", tool=lookup)
    )
    with pytest.raises(WorkflowError) as caught:
        graph.build()
    assert "workflow 'three' cannot be built: 3 faults" in caught.value.message
    assert caught.value.fields["steps"] == ["x", "y", "z"]
    for build in (graph.agent, graph.draw, lambda: graph.run("in", store=MemoryStore())):
        with pytest.raises(WorkflowError, match="3 faults"):
            build()


def test_a_cycle_is_one_fault_and_what_waits_for_it_is_never_reached() -> None:
    graph = Workflow().step("a", fn=nothing, after="c").step("b", fn=nothing, after="a").step("c", fn=nothing)
    graph.step("d", model="m", prompt="{zzz}", after="c").step("free", fn=nothing, after=())
    with pytest.raises(WorkflowError) as caught:
        graph.build()
    assert "step 'a': it waits for itself: a -> b -> c -> a" in caught.value.message
    assert "step 'd': it is never reached" in caught.value.message
    assert "loop=" in caught.value.message
    assert caught.value.fields["steps"] == ["a", "d"]


def test_a_prompt_cannot_name_what_the_first_visit_does_not_have() -> None:
    graph = Workflow().step("draft", model="m", prompt="{input} {review}")
    graph.step("review", fn=nothing, loop={"draft": 2})
    with pytest.raises(
        WorkflowError, match=re.escape("{review}, which has no result on the first visit of the loop")
    ):
        graph.build()


def test_what_is_wrong_with_a_sub_workflow_names_both_steps() -> None:
    inner = Workflow("inner").step("one", fn=nothing, after="zzz")
    with pytest.raises(
        WorkflowError, match="step 'outer': its workflow 'inner': step 'one': after= names 'zzz'"
    ):
        Workflow().step("outer", workflow=inner).build()


def test_a_workflow_does_not_run_inside_itself() -> None:
    graph, inner = Workflow("outer"), Workflow("inner")
    inner.step("again", workflow=graph)
    graph.step("first", workflow=inner)
    with pytest.raises(WorkflowError, match="it runs workflow 'outer' inside itself"):
        graph.build()


def test_a_decorator_that_decorates_nothing_is_a_fault() -> None:
    graph = three()
    graph.step("x", after="a")
    with pytest.raises(WorkflowError, match="step 'x': it has nothing to run"):
        graph.build()
    with pytest.raises(WorkflowError, match="step 'y': it has nothing to run"):
        graph.step("y").run("in")  # type: ignore[attr-defined]


def test_decorators_take_the_name_of_the_function_or_another_one() -> None:
    graph = Workflow()

    @graph.step
    def first(state: State) -> int:
        return 1

    @graph.step("other", after="first")
    def second(state: State) -> int:
        return int(state.first) + 1

    assert (first(State(1, {})), second(State(1, {"first": 4}))) == (1, 5)
    assert graph.run("in", store=MemoryStore()).output == 2


def test_a_step_added_after_a_run_is_checked_too() -> None:
    graph = three()
    graph.run("in", store=MemoryStore())
    with pytest.raises(WorkflowError, match="after= names 'zzz'"):
        graph.step("x", fn=nothing, after="zzz").run("in", store=MemoryStore())


def test_a_tool_that_takes_anything_is_given_what_args_says() -> None:
    graph = three().step("x", tool=anything, args={"one": "{input}", "two": [1], "text": "<{input}>"})
    assert graph.run(7, store=MemoryStore()).output == "{'one': 7, 'two': [1], 'text': '<7>'}"
