"""Tools, agents, workflows and lists as steps; steps that see only what they are given."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

import agentloom
from agentloom import State, Trace, Workflow, goto
from agentloom.api.retries import Retry
from agentloom.errors import WorkflowError
from agentloom.store import MemoryStore


@agentloom.tool(effect="read")
async def price(order: int, currency: str = "EUR") -> str:
    """A tool."""
    return f"{order} {currency}"


@agentloom.tool(effect="read")
def shout(text: str) -> str:
    """A sync tool."""
    return text.upper()


@agentloom.agent
async def helper(question: str, order: int = 0) -> str:
    """A child agent."""
    return f"{question} {await price(order)}"


def run(graph: Workflow, given: object = "in") -> Trace:
    trace = graph.run(given, store=MemoryStore())
    assert trace.replay().verdict == "identical"
    return trace


# -- tools and agents ----------------------------------------------------------------------------------------------


def test_a_tool_gets_its_parameters_by_name_from_the_state() -> None:
    graph = (
        Workflow("w").step("order", fn=lambda state: 812).step("currency", fn=lambda state: "USD", after=())
    )
    trace = run(graph.step("cost", tool=price, after=["order", "currency"]))
    assert trace.output == "812 USD"
    assert (trace.calls[0].kind, trace.calls[0].id) == ("tool", "root/w/cost[0]#1")


def test_a_parameter_with_a_default_need_not_be_a_field_or_have_run() -> None:
    assert run(Workflow().step("order", fn=lambda state: 1).step("cost", tool=price)).output == "1 EUR"
    graph = Workflow().step("order", fn=lambda state: 1)
    graph.step("currency", fn=lambda state: "USD", when=lambda state: False)
    assert run(graph.step("cost", tool=price)).output == "1 EUR"


@pytest.mark.parametrize(
    ("args", "output"),
    [
        ({"order": "{input}", "currency": "{input}!"}, "5 5!"),
        ({"order": 7}, "7 EUR"),
        (lambda state: {"order": state.input + 1}, "6 EUR"),
    ],
)
def test_arguments_are_a_mapping_or_a_function_of_the_state(args: Any, output: str) -> None:
    assert run(Workflow().step("cost", tool=price, args=args), 5).output == output


def test_arguments_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(WorkflowError, match="step 'cost': args= gives an int"):
        Workflow().step("cost", tool=price, args=lambda state: 1).run("in", store=MemoryStore())


def test_an_agent_is_a_child_run() -> None:
    trace = run(Workflow("w").step("ask", agent=helper, args={"question": "{input}?", "order": 3}))
    assert trace.output == "in? 3 EUR"
    assert [(call.kind, call.id) for call in trace.calls] == [
        ("agent", "root/w/ask[0]#1"),
        ("tool", "root/w/ask[0]/helper[0]#1"),
    ]


# -- workflows -----------------------------------------------------------------------------------------------------


def inner() -> Workflow:
    graph = Workflow("inner").step("one", fn=lambda state: [state.input])
    return graph.step("two", fn=lambda state: {"got": state.one})


def test_a_workflow_is_a_child_run_with_the_runs_input() -> None:
    trace = run(Workflow("outer").step("sub", workflow=inner()))
    assert trace.output == {"got": ["in"]}
    assert [entry["call"] for entry in trace.journal.entries if "call" in entry][:2] == [
        "root/outer/sub[0]#1",
        "root/outer/sub[0]/inner[0]/one[0]#1",
    ]


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"args": {"text": "<{first}>"}}, {"text": "<1>"}),
        ({"args": lambda state: state.first + 1}, 2),
        ({"inputs": ["first"]}, {"first": 1}),
    ],
)
def test_the_input_of_a_workflow(given: dict[str, Any], output: Any) -> None:
    graph = Workflow().step("first", fn=lambda state: 1).step("sub", workflow=inner(), **given)
    assert run(graph).output == {"got": [output]}


def test_an_error_in_a_sub_workflow_names_both_steps() -> None:
    broken = Workflow("inner").step("bad", fn=lambda state: 1 / 0)
    with pytest.raises(ZeroDivisionError) as caught:
        Workflow("outer").step("sub", workflow=broken).run("in", store=MemoryStore())
    assert caught.value.__notes__[:2] == [
        "in step 'bad' of workflow 'inner'",
        "in step 'sub' of workflow 'outer'",
    ]


# -- lists ---------------------------------------------------------------------------------------------------------


def test_a_step_runs_for_each_item_and_keeps_their_order() -> None:
    graph = Workflow("w").step("find", fn=lambda state: [5, 1, 3])

    async def waits(state: State) -> list[Any]:
        await asyncio.sleep(state["item"] / 1000)
        return [state.index, state.item, state.find[0]]

    trace = run(graph.step("each", fn=waits, each="find"))
    assert trace.output == [[0, 5, 5], [1, 1, 5], [2, 3, 5]]
    calls = [str(entry["call"]) for entry in trace.journal.entries if entry["kind"] == "state"]
    assert calls[1] == "root/w/each[0]#1"  # how many there are
    assert sorted(calls[2:]) == [f"root/w/each[0]/item[{number}]#1" for number in range(3)]


def test_at_most_so_many_items_are_worked_on_at_a_time() -> None:
    working = [0, 0]

    async def work(state: State) -> int:
        working[0] += 1
        working[1] = max(working)
        await asyncio.sleep(0.001)
        working[0] -= 1
        return int(state.item)

    trace = (
        Workflow().step("w", fn=work, each=lambda state: list(range(20)), limit=3).run(1, store=MemoryStore())
    )
    assert (trace.output, working) == (list(range(20)), [0, 3])


def test_items_of_tools_agents_and_workflows() -> None:
    graph = Workflow().step("find", fn=lambda state: (1, 2))
    graph.step("cost", tool=price, each="find", args={"order": "{item}"})
    graph.step(
        "ask", agent=helper, each="cost", args={"question": "{index}", "order": "{index}"}, after="cost"
    )
    graph.step("sub", workflow=inner(), each="cost", after="cost")
    graph.step("loud", tool=shout, each="cost", after="cost", args={"text": "{item}"})
    trace = run(
        graph.step("end", fn=lambda state: [state.ask, state.sub, state.loud], after=["ask", "sub", "loud"])
    )
    assert trace.output == [
        ["0 0 EUR", "1 1 EUR"],
        [{"got": ["1 EUR"]}, {"got": ["2 EUR"]}],
        ["1 EUR", "2 EUR"],
    ]


def test_no_items_give_an_empty_list() -> None:
    graph = Workflow().step("each", fn=lambda state: 1, each=lambda state: [])
    assert run(graph.step("end", fn=lambda state: state.each)).output == []


def test_another_number_of_items_on_replay_diverges_at_the_step() -> None:
    lengths = iter([[1, 2], [1]])
    graph = Workflow().step("each", fn=lambda state: 1, each=lambda state: next(lengths))
    report = graph.run("in", store=MemoryStore()).replay(check=False)
    assert report.verdict == "diverged"
    assert "each:each" in str(report)


@pytest.mark.parametrize(
    ("items", "kind"), [({1, 2}, "a set"), ({"a": 1}, "a dict"), ("text", "a str"), (None, "None")]
)
def test_what_has_no_order_is_no_list(items: Any, kind: str) -> None:
    graph = Workflow().step("w", fn=lambda state: 1, each=lambda state: items)
    with pytest.raises(WorkflowError, match=f"step 'w': each= gives {kind}, not a list"):
        graph.run("in", store=MemoryStore())


def test_the_first_item_that_fails_cancels_the_others() -> None:
    async def work(state: State) -> None:
        if state.item == 1:
            raise ZeroDivisionError
        await agentloom.sleep(3600)

    store = MemoryStore()
    graph = Workflow("w").step("each", fn=work, each=lambda state: [0, 1, 2])
    with pytest.raises(ZeroDivisionError) as caught:
        graph.run("in", store=store)
    assert caught.value.__notes__[:2] == ["for item 1 of step 'each'", "in step 'each' of workflow 'w'"]
    trace = Trace.open("last", store)
    assert trace.replay(agent=graph).verdict == "identical"


def test_an_item_cannot_choose() -> None:
    graph = (
        Workflow().step("a", fn=lambda state: goto("b"), each=lambda state: [1]).step("b", fn=lambda state: 1)
    )
    with pytest.raises(WorkflowError, match="it runs for each item of a list; let a step after it choose"):
        graph.run("in", store=MemoryStore())


# -- what a step may see -------------------------------------------------------------------------------------------


def test_inputs_restrict_what_a_step_sees() -> None:
    graph = Workflow().step("a", fn=lambda state: "a").step("b", fn=lambda state: "b")
    graph.step("c", fn=lambda state: [list(state), "a" in state, state.get("input")], inputs=["b"])
    assert run(graph).output == [["b"], False, None]
    graph.step("d", fn=lambda state: state["a"], inputs=["b"])
    with pytest.raises(
        KeyError, match=re.escape("'a' has no result here: it is not among the inputs= of step 'd'")
    ):
        graph.run("in", store=MemoryStore())


def reviewed(review: Any, **given: Any) -> Workflow:
    graph = Workflow("w").step("secret", fn=lambda state: "s").step("draft", fn=lambda state: "d")
    return graph.verify("review", inputs=["draft"], fn=review, **given)


def test_a_verify_step_is_a_child_run_that_is_given_its_inputs_alone() -> None:
    trace = run(reviewed(lambda state: [list(state), state.draft]))
    assert trace.output == [["draft"], "d"]
    call = trace.calls[0]
    assert (call.kind, call.name, call.id) == ("agent", "review", "root/w/review[0]#1")
    assert call.request == {"args": [], "kwargs": {"draft": "d"}}
    state = [entry for entry in trace.journal.entries if entry["kind"] == "state"][-1]
    assert (state["call"], state["reads"]) == ("root/w/review[0]/review[0]#1", ["draft"])


@pytest.mark.parametrize("field", ["input", "secret"])
def test_a_verify_step_that_reads_more_is_an_error_that_names_it(field: str) -> None:
    with pytest.raises(
        KeyError, match=f"'{field}' has no result here: it is not among the inputs= of step 'review'"
    ):
        reviewed(lambda state: state[field]).run("in", store=MemoryStore())


def test_a_verify_step_may_be_an_agent_or_a_workflow_and_may_go_through_a_list() -> None:
    graph = Workflow().step("question", fn=lambda state: "why")
    graph.verify("asked", inputs=["question"], agent=helper)
    graph.verify("sub", inputs=["question"], workflow=inner(), after="question")
    graph.verify("each", inputs=[], fn=list, each=lambda state: [state.question], after="question")
    trace = run(
        graph.step(
            "end", fn=lambda state: [state.asked, state.sub, state.each], after=["asked", "sub", "each"]
        )
    )
    assert trace.output == ["why 0 EUR", {"got": [{"question": "why"}]}, [["item", "index"]]]


def test_a_verify_step_cannot_choose() -> None:
    graph = reviewed(lambda state: goto("end")).step("end", fn=lambda state: 1)
    with pytest.raises(WorkflowError, match="let a step after it"):
        graph.run("in", store=MemoryStore())


def test_a_changed_input_of_a_verify_step_is_seen_at_its_call() -> None:
    drafts = iter(["d", "e"])
    graph = Workflow().step("draft", tool=shout, args=lambda state: {"text": "x"})
    graph.step("edit", fn=lambda state: next(drafts)).verify("review", inputs=["edit"], fn=lambda state: 1)
    report = graph.run("in", store=MemoryStore()).replay(check=False)
    assert report.verdict == "diverged"


def test_steps_may_be_tried_again_and_stopped() -> None:
    tries: list[int] = []

    async def flaky(state: State) -> str:
        tries.append(1)
        if len(tries) % 3:
            raise ConnectionError("no")
        return "ok"

    graph = Workflow().step("a", fn=flaky, retry=Retry(3, delay=0.001, on=ConnectionError))
    assert run(graph).output == "ok"

    async def hangs(state: State) -> None:
        await agentloom.sleep(3600)

    store = MemoryStore()
    slow = Workflow().step("a", fn=hangs, timeout=0.01)
    with pytest.raises(TimeoutError):
        slow.run("in", store=store)
    assert Trace.open("last", store).replay(agent=slow).verdict == "identical"
