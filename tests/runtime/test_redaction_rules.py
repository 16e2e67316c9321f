"""What users declare secret: for a block, an agent, a workflow, a run; and names that are refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentloom import Workflow, agent, secrets, tool, use_secrets
from agentloom.errors import ValueRefused
from agentloom.format.placeholders import START
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_rules import NO_RULES, in_effect, joined
from agentloom.store import MemoryStore

ORDER = f"ORD-{82374290}"
LATER = f"ORD-{82374291}"
RULES = secrets(patterns={"order": r"ORD-[0-9]{8}"})


@tool
def use(value: Any) -> Any:
    return value


@agent(secrets=RULES)
def careful(order: str) -> Any:
    return use({"order": order})


@agent
def careless(order: str) -> Any:
    return use({"order": order})


@agent
def calls_a_careful_one(order: str) -> Any:
    return [use({"number": order[4:]}), careful(order), use(LATER)]


def test_rules_of_an_agent() -> None:
    trace = careful.run(ORDER, store=MemoryStore())
    assert ORDER.encode() not in trace._data
    assert trace.output["order"].startswith(START)
    assert trace.replay().verdict == "identical"
    assert ORDER.encode() in careless.run(ORDER, store=MemoryStore())._data


def test_rules_of_one_run() -> None:
    trace = careless.run(ORDER, store=MemoryStore(), secrets=RULES)
    assert ORDER.encode() not in trace._data
    assert trace.replay().verdict == "identical"
    trace = asyncio.run(_arun())
    assert ORDER.encode() not in trace._data


async def _arun() -> Any:
    return await careless.arun(ORDER, store=MemoryStore(), secrets=RULES)


def test_rules_of_a_child_hold_from_its_call_on() -> None:
    trace = calls_a_careful_one.run(ORDER, store=MemoryStore())
    assert LATER.encode() not in trace._data
    assert trace._data.count(ORDER.encode()) == 1  # the input of the run, before the child was called
    assert trace.replay().verdict == "identical"


def test_rules_of_a_workflow_and_of_its_run() -> None:
    graph = Workflow("orders", secrets=RULES)
    graph.step("take", fn=lambda state: use({"order": state.input}))
    trace = graph.run(ORDER, store=MemoryStore())
    assert ORDER.encode() not in trace._data
    assert trace.replay().verdict == "identical"
    plain = Workflow("orders")
    plain.step("take", fn=lambda state: use({"order": state.input}))
    assert ORDER.encode() not in plain.run(ORDER, store=MemoryStore(), secrets=RULES)._data


def test_functions_and_values_of_an_agent_hold_on_replay() -> None:
    """They are not in the trace: the agent's own code has them."""
    found: list[str] = []

    def numbers(text: str) -> list[tuple[int, int, str]]:
        found.append(text)
        at = text.find("ORD-")
        return [] if at < 0 or len(text) < at + 12 else [(at, at + 12, "order")]

    @agent(secrets=secrets(find=numbers, values=["inner-77-value"]))
    def made(prefix: str) -> Any:
        return use(f"{prefix}82374290 and inner-77-value")

    trace = made.run("ORD-", store=MemoryStore())
    assert ORDER.encode() not in trace._data
    found.clear()
    assert trace.replay().verdict == "identical"
    assert found


def test_rules_are_joined_with_those_of_the_block() -> None:
    with use_secrets(secrets(paths=["ssn"])):
        both = in_effect(RULES, secrets(paths=["card.number", "people[]"]))
    assert both.fields == (("ssn",), ("card", "number"), ("people", "[]"))
    assert both.field_names == (b"number", b"people", b"ssn")
    assert both.patterns == RULES.patterns
    assert joined(NO_RULES, RULES).patterns == RULES.patterns


def test_fields_in_every_form() -> None:
    redactor = Redactor(secrets(paths=["ssn", "people[]", "card.number"]))
    for tree in (
        {"ssn": "078-05"},
        {"$map": [["ssn", "078-05"], [1, 2]]},
        {"people": ["078-05", "078-05"]},
        {"arguments": '{"ssn": "078-05", "x": [1]}'},
        {"arguments": '{"a": {"card": {"number": "078-05"}}}'},
        [{"number": "078-05", "card": {"number": "078-05"}}],
    ):  # fmt: skip
        written = str(redactor.tree(tree))  # type: ignore[arg-type]
        assert redactor.suspects(str(tree).replace("'", '"').encode()), tree
        assert "078-05" not in written or written.count("078-05") == 1 == written.count(
            "'number': '078-05'"
        ), tree
    assert redactor.tree({"arguments": '{"number": "078-05"}'}) == {"arguments": '{"number": "078-05"}'}


def test_what_is_no_rule_is_refused() -> None:
    given: Any = ["ssn"]
    calls: list[Any] = [
        lambda: agent(secrets=given)(lambda: None),
        lambda: Workflow(secrets=given),
        lambda: careless.run("x", secrets=given),
    ]
    for call in calls:
        with pytest.raises(ValueRefused, match="rules are what secrets"):
            call()


@pytest.mark.parametrize("span", [(3, 2), (-1, 2), (0, 99), (2, 2)])
def test_a_span_that_is_none_is_told(span: tuple[int, int]) -> None:
    redactor = Redactor(secrets(find=lambda text: [span]))
    with pytest.raises(ValueRefused, match="a function gave the span"):
        redactor.tree("short")


def test_a_name_that_holds_a_secret_is_refused() -> None:
    name = f"agent-sk-proj-{'a1B2' * 8}"

    @agent(name=name)
    def named() -> None:
        pass

    @agent
    def calls() -> None:
        named()

    store = MemoryStore()
    with pytest.raises(ValueRefused, match="names stand in the trace as they are"):
        named.run(store=store)
    with pytest.raises(ValueRefused, match="names stand in the trace as they are"):
        calls.run(store=store)
