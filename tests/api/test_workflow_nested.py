"""Workflows called as child runs, and how deep child runs may lie in one another."""

from __future__ import annotations

from typing import Any

import pytest

import agentloom
from agentloom import Trace, Workflow
from agentloom.errors import NoActiveRun, NotSupported, WorkflowError
from agentloom.runtime.agents import CHILD_RUNS
from agentloom.store import MemoryStore

inner = Workflow("inner").step("shout", fn=lambda state: state.input.upper())


def nested(levels: int, **words: Any) -> Workflow:
    """A workflow with ``levels`` workflows inside one another."""
    graph = Workflow("w0").step("leaf", fn=lambda state: state.input)
    for level in range(levels):
        graph = Workflow(f"w{level + 1}").step("below", workflow=graph, **words)
    return graph


def verified(levels: int) -> Workflow:
    """The same of verify steps, each of which is two child runs."""
    graph = Workflow("w0").step("leaf", fn=lambda state: 1)
    for level in range(levels):
        graph = Workflow(f"w{level + 1}").verify("below", inputs=[], workflow=graph)
    return graph


# -- called as an agent is -----------------------------------------------------------------------------------------


@agentloom.agent
async def caller(text: str) -> list[str]:
    """Calls a workflow twice, once beside itself."""
    first = await inner(text)
    return [first, *await agentloom.parallel(inner("b"), inner("c"))]


def test_a_workflow_called_in_a_run_is_a_child_run() -> None:
    trace = caller.run("a", store=MemoryStore())
    assert trace.output == ["A", "B", "C"]
    assert [(call.kind, call.name) for call in trace.calls] == [("agent", "inner")] * 3
    assert trace.replay().verdict == "identical"


def test_it_is_the_same_as_its_agent_called() -> None:
    @agentloom.agent(name="caller")
    async def by_agent(text: str) -> object:
        return await inner.agent()(text)

    @agentloom.agent(name="caller")
    async def by_call(text: str) -> object:
        return await inner(text)

    trace = by_agent.run("a", store=MemoryStore())
    assert trace.replay(agent=by_call).verdict == "identical"


def test_outside_a_run_and_in_a_sync_agent_it_says_what_to_do() -> None:
    with pytest.raises(NoActiveRun, match=r"workflow 'inner' was called outside a run\n.*\.run\(input\)"):
        _ = inner("a")

    @agentloom.agent
    def sync_caller() -> object:
        return inner("a")

    with pytest.raises(NotSupported, match="inner is an async agent"):
        sync_caller.run(store=MemoryStore())


def test_the_hint_of_arun_inside_a_run_can_be_followed() -> None:
    @agentloom.agent
    async def wrong() -> object:
        return (await inner.arun("a")).output

    with pytest.raises(NotSupported, match=r"call inner\(\.\.\.\) there"):
        wrong.run(store=MemoryStore())


def test_a_workflow_is_no_function_agent_or_decorated_step() -> None:
    with pytest.raises(WorkflowError, match="step 'a': fn= takes a function") as caught:
        Workflow().step("a", fn=inner)
    assert "workflow= takes a Workflow" in str(caught.value)
    with pytest.raises(WorkflowError, match="step 'a': agent= takes an agent"):
        Workflow().step("a", agent=inner)
    with pytest.raises(WorkflowError, match="given the workflow 'inner' alone"):
        Workflow().step(inner)


# -- how deep ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [{}, {"timeout": 60.0}, {"each": lambda state: ["x"]}])
def test_the_deepest_that_is_promised_runs_and_replays(words: dict[str, Any]) -> None:
    trace = nested(CHILD_RUNS, **words).run("in", store=MemoryStore())
    assert trace.status == "completed"
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize("levels", [CHILD_RUNS + 1, 700])
@pytest.mark.parametrize("built", [False, True])
def test_a_graph_that_is_too_deep_says_so_when_built(levels: int, built: bool) -> None:
    graph = nested(levels)
    if built:  # all but one was built before, and is not looked at again
        graph = Workflow("top").step("below", workflow=nested(CHILD_RUNS).build())
    with pytest.raises(WorkflowError, match=f"{CHILD_RUNS + 1} deep") as caught:
        graph.build()
    assert caught.value.fields["depth"] == CHILD_RUNS + 1
    assert caught.value.fields["step"] == "below"


def test_one_that_runs_itself_is_still_told_as_that() -> None:
    graph = Workflow("round")
    graph.step("again", workflow=graph)
    with pytest.raises(WorkflowError, match="inside itself"):
        graph.build()


def test_verify_steps_count_as_the_two_child_runs_that_they_are() -> None:
    assert verified(CHILD_RUNS // 2).run(1, store=MemoryStore()).status == "completed"
    with pytest.raises(NotSupported, match=f"{CHILD_RUNS + 1} child runs deep") as caught:
        verified(CHILD_RUNS // 2 + 1).run(1, store=MemoryStore())
    assert caught.value.fields["depth"] == CHILD_RUNS + 1


@agentloom.agent
def falling(depth: int) -> object:
    """Calls itself without end."""
    return falling(depth + 1)


@agentloom.agent
async def falling_async(depth: int) -> object:
    """As ``falling``."""
    return await falling_async(depth + 1)


@agentloom.agent
async def through(depth: int) -> object:
    """Calls itself by way of a workflow, which no check of a graph can see."""
    return await Workflow("w").step("again", fn=lambda state: through(depth + 1))(depth)


@pytest.mark.parametrize("agent", [falling, falling_async, through])
def test_an_agent_without_end_ends_at_the_bound_and_replays(agent: agentloom.Agent[..., Any]) -> None:
    store = MemoryStore()
    with pytest.raises(NotSupported, match=f"{CHILD_RUNS + 1} child runs deep"):
        agent.run(0, store=store)
    trace = Trace.open("last", store)
    assert trace.status == "failed"
    assert len(trace.calls) == CHILD_RUNS
    assert trace.replay(agent=agent).verdict == "identical"
