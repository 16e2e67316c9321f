"""Which functions are agents, steps, tools and prompts."""

from __future__ import annotations

import ast

import pytest

from agentloom.cli.checks.flow.names import Names
from agentloom.cli.checks.flow.roles import executors_of, recorded_of, steps_of, tools_of
from tests.cli.checks.flow.agents import findings


@pytest.mark.parametrize(
    "text",
    [
        "client.create(tools=[look])",
        "TOOLS = {'look': look}",
        "AVAILABLE_TOOLS = [look]",
        "SCHEMA = [{'type': 'function', 'function': {'name': 'look', 'parameters': {}}}]",
        "FunctionTool(look)",
        "StructuredTool.from_function(func=look)",
    ],
)
def test_functions_that_are_offered_as_tools(text: str) -> None:
    tree = ast.parse(text)
    assert "look" in set(tools_of(tree, Names(tree)))


def test_steps_and_recorded_functions() -> None:
    tree = ast.parse(
        "from agentloom import Workflow, agent, record\ng = Workflow()\ng.step('a', fn=f, when=w)\nagent(h)\n"
        "record(main('x'))\ndef block():\n    with record('b'): pass\n"
    )
    names = Names(tree)
    assert set(steps_of(tree, names)) == {"f", "w", "h"}
    assert recorded_of(tree, names) == ({"main", "block"}, False)
    level = ast.parse("from agentloom import record\nwith record('b'): pass")
    assert recorded_of(level, Names(level)) == (set(), True)


def test_classes_that_tools_are_made_of() -> None:
    assert set(executors_of(ast.parse("s = Shell()\nShellTool(executor=s)\nPatchTool(Editor())"))) == {
        "Shell",
        "Editor",
    }


@pytest.mark.parametrize(
    "decorator", ["tool", "function_tool", "agent.tool_plain", "mcp.tool()", "agent.tool(retries=2)"]
)
def test_decorators_of_frameworks(decorator: str) -> None:
    text = f"@{decorator}\ndef save(x):\n    open(x, 'w')\n\nprint(save)\n"
    assert [one.check for one in findings(text) if one.check != "address"] == []
