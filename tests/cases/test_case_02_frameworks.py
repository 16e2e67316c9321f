"""Case 2 through LangChain and pydantic-ai: ids that they mint afresh in every process are no miss in a new one."""

from __future__ import annotations

import json

import pytest

from agentloom.testing import Says, Seen, Wants
from tests.cases.conftest import Scenario

LANGCHAIN = """
import uuid
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

@tool
def lookup(order: int) -> str:
    "Look an order up."
    return f"order {order}"

def made():
    return {"name": "lookup", "args": {"order": 812}, "id": f"call_{uuid.uuid4().hex}"}
calls = [made(), made()]
history = [HumanMessage("where is it?"), AIMessage("", tool_calls=calls)]
history += [ToolMessage(f"found {n}", tool_call_id=one["id"]) for n, one in enumerate(calls)]
model = ChatOpenAI(model="gpt-4o").bind_tools([lookup])
print(model.invoke(history).content)
"""

PYDANTIC_AI = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.openai import OpenAIChatModel

calls = [ToolCallPart("lookup", {"order": 812}), ToolCallPart("lookup", {"order": 813})]
history = [
    ModelRequest(parts=[UserPromptPart("where is it?")]),
    ModelResponse(parts=calls),
    ModelRequest(parts=[ToolReturnPart("lookup", f"found {n}", one.tool_call_id) for n, one in enumerate(calls)]),
]
agent = Agent(OpenAIChatModel("gpt-4o"))

@agent.tool_plain
def lookup(order: int) -> str:
    return f"order {order}"

print(agent.run_sync("and now?", message_history=history).output)
"""

PROGRAMS = pytest.mark.parametrize("program", [LANGCHAIN, PYDANTIC_AI], ids=["langchain", "pydantic-ai"])


def _script(seen: Seen) -> Says:
    """The calls of the history are the framework's; one more is the model's, with an id of its own."""
    called = sum(len(message.get("tool_calls") or ()) for message in seen.body["messages"])
    results = sum(message["role"] == "tool" for message in seen.body["messages"])
    assert called == results >= 2
    if results == 2 and "now" in str(seen.body["messages"][-1]["content"]):
        return Says(tools=[Wants("lookup", {"order": 814})])
    return Says("It is on its way.")


@PROGRAMS
def test_fresh_ids_of_a_framework_are_no_miss(scenario: Scenario, program: str) -> None:
    """Without a guard the ids are really others: noted, and paired with their results as before."""
    scenario.record(program, _script, options=("--guard", "off"))
    data = json.loads(scenario.identical("--json", PYTHONHASHSEED="5").out)
    assert data["verdict"] == "identical except noted"
    items = [item for noted in data["noted"] for item in noted["differences"]["items"]]
    assert items
    assert all(item["path"].endswith("id") for item in items)
    assert any("tool_call_id" in item["path"] for item in items)


@PROGRAMS
def test_under_the_guard_they_come_again(scenario: Scenario, program: str) -> None:
    scenario.record(program, _script)
    assert json.loads(scenario.identical("--json", PYTHONHASHSEED="5").out)["verdict"] == "identical"


@pytest.mark.parametrize(
    ("program", "where"),
    [(LANGCHAIN, "tool_call_id"), (PYDANTIC_AI, "content")],
    ids=["langchain", "pydantic-ai"],
)
def test_paired_with_another_result_they_are_a_change(scenario: Scenario, program: str, where: str) -> None:
    """pydantic-ai puts results in the order of the calls: there another result is another content."""
    scenario.record(program, _script, options=("--guard", "off"))
    scenario.edit(("in enumerate(calls)]", "in enumerate(calls[::-1])]"))
    _, data = scenario.diverged()
    assert data["class"] == "changed"
    paths = [item["path"] for item in data["differences"]["items"]]
    assert paths == [f"messages[2].{where}", f"messages[3].{where}"]
