"""Which functions are agents, steps, tools and prompts: by their decorators and by the calls that take them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

from agentloom.cli.checks.flow.names import Names, last, written

__all__ = [
    "MODEL_PACKAGES",
    "FunctionNode",
    "executors_of",
    "guard_of",
    "is_agent",
    "is_prompt",
    "is_tool",
    "is_tool_class",
    "recorded_of",
    "steps_of",
    "tools_of",
]

_TOOL = re.compile(
    r"(function_|async_|structured_|mcp_|local_)?tool(_plain|_call|_function)?|activity|kernel_function"
)
_TOOL_CLASS = re.compile(r"(Base|Structured|Function)?Tool")
_TOOL_MAKERS = frozenset(
    ["FunctionTool", "StructuredTool", "Tool", "tool", "function_tool", "from_function", "from_defaults"]
)
_TOOL_LISTS = frozenset(["tools", "functions", "tool", "available_tools"])
_HOST = re.compile(r"agentloom(\.sync)?\.(tool|step|retrieve)")
_PROMPT = frozenset(["system_prompt", "instructions", "prompt", "dynamic_instructions", "dynamic_prompt"])
_STEP_WORDS = frozenset(["fn", "when", "each", "args"])
MODEL_PACKAGES = frozenset(
    """agentloom openai anthropic agents pydantic_ai langchain langchain_core langchain_openai langchain_anthropic
    langchain_community langgraph llama_index smolagents crewai autogen autogen_agentchat google_adk google litellm
    any_llm mistralai groq cohere together ollama haystack dspy semantic_kernel strands mcp fastmcp boto3 transformers
    huggingface_hub instructor magentic marvin agno phi camel deepagents""".split()
)
"""Packages that ask models: a file of a folder that imports none of them is no agent."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def _decorators(node: FunctionNode, names: Names) -> Iterator[str]:
    for one in node.decorator_list:
        yield names.full(one.func if isinstance(one, ast.Call) else one)


def is_agent(node: FunctionNode, names: Names) -> bool:
    """Whether the function is an agent of agentloom, or a step that a workflow's decorator makes."""
    return any(
        name == "agentloom.agent" or last(name) in ("step", "verify") for name in _decorators(node, names)
    ) and any(name.startswith("agentloom") for _, name in names)


def guard_of(node: FunctionNode, names: Names) -> str | None:
    """The guard that ``@agent(guard=...)`` names; None where it says nothing."""
    for one in node.decorator_list:
        if isinstance(one, ast.Call) and names.full(one.func) == "agentloom.agent":
            for keyword in one.keywords:
                if keyword.arg == "guard" and isinstance(keyword.value, ast.Constant):
                    return str(keyword.value.value)
    return None


def is_tool(node: FunctionNode, names: Names) -> bool:
    """Whether a decorator makes the function a tool, of agentloom or of a framework."""
    return any(_TOOL.fullmatch(last(name)) for name in _decorators(node, names))


def is_tool_class(node: ast.ClassDef) -> bool:
    """Whether the class is one of tools: its methods are host work."""
    return any(_TOOL_CLASS.fullmatch(written(base)) for base in node.bases)


def is_prompt(node: FunctionNode) -> bool:
    """Whether a framework asks the function for a prompt: what it returns goes to a model."""
    return any(
        written(one.func if isinstance(one, ast.Call) else one) in _PROMPT for one in node.decorator_list
    )


def steps_of(tree: ast.Module, names: Names) -> Iterator[str]:
    """Names of functions that are given to ``step`` and ``verify`` of a workflow, or to ``agent(...)``."""
    if not any(name.startswith("agentloom") for _, name in names):
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("step", "verify"):
            yield from (written(key.value) for key in node.keywords if key.arg in _STEP_WORDS)
        elif names.full(node.func) == "agentloom.agent" and node.args:
            yield written(node.args[0])


def recorded_of(tree: ast.Module, names: Names) -> tuple[set[str], bool]:
    """Names of functions that ``record(f(...))`` makes runs of, or that hold a block ``with record(...)``; and whether
    the module's level holds such a block."""
    found: set[str] = set()
    level = False
    if "agentloom.record" not in {full for _, full in names}:
        return found, level
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and names.full(node.func) == "agentloom.record" and node.args:
            what = node.args[0]
            if isinstance(what, ast.Call):
                found.add(written(what.func))
        if isinstance(node, FunctionNode) and any(map(_names_record(names), ast.walk(node))):
            found.add(node.name)
    for one in tree.body:
        inside = () if isinstance(one, FunctionNode | ast.ClassDef) else ast.walk(one)
        level = level or any(map(_names_record(names), inside))
    return found, level


def _names_record(names: Names) -> Callable[[ast.AST], bool]:
    """A test for ``with record(...)``."""

    def test(node: ast.AST) -> bool:
        if not isinstance(node, ast.With | ast.AsyncWith):
            return False
        calls = (item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call))
        return any(names.full(call.func) == "agentloom.record" for call in calls)

    return test


def tools_of(tree: ast.Module, names: Names) -> Iterator[str]:
    """Names of functions that are offered as tools: in a list of tools, by a maker of tools, or by a schema's name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _of_call(node, names)
        elif isinstance(node, ast.Assign) and any(_is_list(target) for target in node.targets):
            yield from _members(node.value)
        elif isinstance(node, ast.Dict):
            yield from _of_schema(node)


def _is_list(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id.lower().rpartition("_")[2] in _TOOL_LISTS


def _of_call(node: ast.Call, names: Names) -> Iterator[str]:
    for keyword in node.keywords:
        if keyword.arg in _TOOL_LISTS:
            yield from _members(keyword.value)
    full = names.full(node.func)
    if _HOST.fullmatch(full) or last(full) in _TOOL_MAKERS:
        given = [
            *node.args[:1],
            *(key.value for key in node.keywords if key.arg in ("func", "fn", "function")),
        ]
        yield from (one.id for one in given if isinstance(one, ast.Name))


def _members(node: ast.expr) -> Iterator[str]:
    values: list[ast.expr] = []
    if isinstance(node, ast.List | ast.Tuple):
        values = node.elts
    elif isinstance(node, ast.Dict):
        values = node.values
    elif isinstance(node, ast.Name):
        values = [node]
    yield from (one.id for one in values if isinstance(one, ast.Name))


def _of_schema(node: ast.Dict) -> Iterator[str]:
    """``{"name": "lookup", "parameters": ...}``: a function of that name is found by the run."""
    keys = {
        key.value: value
        for key, value in zip(node.keys, node.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    name = keys.get("name")
    schema = keys.keys() & {"parameters", "input_schema", "description", "strict"}
    if schema and isinstance(name, ast.Constant) and isinstance(name.value, str):
        yield name.value


def executors_of(tree: ast.Module) -> Iterator[str]:
    """Classes whose instances a tool is made of: ``ShellTool(executor=Shell())``."""
    made = {
        target.id: written(node.value.func)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and written(node.func).endswith("Tool"):
            for value in (*node.args, *(keyword.value for keyword in node.keywords)):
                if isinstance(value, ast.Call):
                    yield written(value.func)
                elif isinstance(value, ast.Name) and value.id in made:
                    yield made[value.id]
