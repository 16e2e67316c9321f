"""OpenAI's Agents SDK: function tools become ``tool`` calls, and each turn of an agent a segment of the paths of its
calls, hand-offs included.

The seam is a tool's own function where the SDK made it (below its error handler), else ``on_invoke_tool``. An agent
that is a tool is structure: what it asks is recorded. Tools of MCP servers have a seam of their own.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_classes import PLAIN, held_function
from agentloom.adapters.framework_scopes import within
from agentloom.adapters.framework_sync import awaited_in_sync, ordered_run
from agentloom.adapters.framework_tools import Tool, call_tool_async, declare_once
from agentloom.adapters.framework_values import declare_named
from agentloom.adapters.openai_agents_memory import with_session
from agentloom.adapters.releases import function_of, needed
from agentloom.runtime.scope import current
from agentloom.runtime.tool_use import AGENT, declared_effect

__all__ = ["install_runs", "install_tools"]

_INVOKER = "_FailureHandlingFunctionToolInvoker"


def install_tools(module: ModuleType) -> None:
    """Patch ``agents.tool``. Idempotent. Raises ``NotSupported`` for a release that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    tools = cast(Any, module)
    needed(module, "FunctionTool", "__post_init__")
    needed(module, _INVOKER, "__call__")
    invoker = getattr(tools, _INVOKER)
    declare_named(tools, ("ToolOutputText", "ToolOutputImage", "ToolOutputFileContent"))
    invoker._invoke_tool_impl = held_function(
        "_invoke_tool_impl", lambda made, plain: _recorded(made, made._function_tool, plain)
    )
    tools.FunctionTool.on_invoke_tool = held_function(
        "on_invoke_tool",
        lambda tool, plain: plain if isinstance(plain, invoker) else _recorded(tool, tool, plain),
    )
    tools.FunctionTool.__agentloom_tools__ = True
    tools.__agentloom__ = True


def _recorded(holder: Any, tool: Any, plain: Any) -> Any:
    """``plain`` as a host call; the same object each time, for the SDK compares it."""
    kept = holder.__dict__.get("_agentloom_recorded")
    if kept is not None and getattr(kept, PLAIN) is plain and kept.__agentloom_tool__ is tool:
        return kept

    @functools.wraps(plain)
    async def invoke(ctx: Any, arguments: str) -> Any:
        if current() is None or tool is None or getattr(tool, "_mcp_tool_binding", None) is not None:
            return await plain(ctx, arguments)

        async def perform(given: Mapping[str, Any]) -> Any:
            same = given == args
            return await plain(ctx, arguments if same else json.dumps(dict(given)))

        args = _parsed(arguments)
        declare_once(_function(plain))
        effect = (
            AGENT
            if getattr(tool, "_is_agent_tool", False)
            else declared_effect(getattr(tool, "metadata", None), tool.name)
        )
        shared = {"context": getattr(ctx, "context", None)}
        return await call_tool_async(Tool("openai-agents", tool.name, args, effect, shared=shared), perform)

    setattr(invoke, PLAIN, plain)
    cast(Any, invoke).__agentloom_tool__ = tool
    holder.__dict__["_agentloom_recorded"] = invoke
    return invoke


def _function(plain: Any) -> Any:
    """The user's function below an invoker of the SDK's."""
    below: dict[str, Any] = getattr(plain, "__dict__", {})
    for value in below.values():
        if callable(value) and getattr(value, "__module__", "").partition(".")[0] != "agents":
            return value
    return plain


def _parsed(arguments: str) -> dict[str, Any]:
    """The arguments that the model gave; text that is no JSON object is kept as it is."""
    try:
        value: Any = json.loads(arguments) if arguments else {}
    except ValueError:
        return {"arguments": arguments}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"arguments": value}


_LOOP = "agents.run_internal.run_loop"
_TURNS = ("run_single_turn", "run_single_turn_streamed")


def install_runs(module: ModuleType) -> None:
    """Patch ``agents.run``, and what it took from the SDK's modules. Idempotent. Raises ``NotSupported`` for a release
    that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    home = sys.modules.get(_LOOP) or ModuleType(_LOOP)  # a release without it has none of its functions
    for name in _TURNS:
        turn = function_of(home, name, "calls are recorded without the names of agents")
        made = _turn(turn)
        for other in list(sys.modules.values()):
            if getattr(other, "__name__", "").partition(".")[0] == "agents" and vars(other).get(name) is turn:
                setattr(other, name, made)
    needed(module, "AgentRunner", "run_sync")
    runner: Any = cast(Any, module).AgentRunner
    needed(module, "AgentRunner", "run_streamed")
    runner.run, runner.run_sync = ordered_run(with_session(runner.run)), awaited_in_sync(runner.run_sync)
    runner.run_streamed = with_session(runner.run_streamed)
    cast(Any, module).__agentloom__ = True


def _turn(turn: Any) -> Any:
    @functools.wraps(turn)
    async def run(*args: Any, **kwargs: Any) -> Any:
        bindings = kwargs.get("bindings", args[1] if len(args) > 1 else None)
        name = getattr(getattr(bindings, "public_agent", None), "name", None) or "agent"
        with within(name):
            return await turn(*args, **kwargs)

    return run
