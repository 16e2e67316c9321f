"""pydantic-ai: function tools become ``tool`` calls, and each run of an agent a segment of the paths of its calls.

The seams are ``FunctionToolset.call_tool``, below validation, retries, approval and capabilities, and ``Agent.iter``,
which every way to run an agent goes through. Tools of other toolsets (MCP servers) have seams of their own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from types import FrameType, ModuleType
from typing import Any, cast

from agentloom.adapters.framework_scopes import within
from agentloom.adapters.framework_sync import ordered
from agentloom.adapters.framework_tools import Tool, call_tool_async, declare_once
from agentloom.adapters.framework_values import declare_named
from agentloom.adapters.releases import function_of, needed
from agentloom.runtime.scope import current
from agentloom.runtime.tool_use import declared_effect

__all__ = ["install_agent", "install_tools", "install_utils"]

_VALUES = (
    "ToolReturn", "BinaryContent", "BinaryImage", "ImageUrl", "AudioUrl", "VideoUrl", "DocumentUrl",
)  # fmt: skip
"""The types of pydantic-ai that tools return and raise."""


def install_tools(module: ModuleType) -> None:
    """Patch ``pydantic_ai.toolsets.function``. Idempotent. Raises ``NotSupported`` for a release that is built in
    another way."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "FunctionToolset", "call_tool")
    toolset: Any = cast(Any, module).FunctionToolset
    original = toolset.call_tool
    from pydantic_ai import messages

    declare_named(messages, _VALUES)

    @functools.wraps(original)
    async def call_tool(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        async def perform(given: Mapping[str, Any]) -> Any:
            return await original(self, name, dict(given), ctx, tool)

        if current() is None:
            return await original(self, name, tool_args, ctx, tool)
        function = _function(self, tool)
        declare_once(function)
        said = declared_effect(getattr(tool.tool_def, "metadata", None), name)
        return await call_tool_async(
            Tool("pydantic-ai", name, tool_args, said, shared={"deps": ctx.deps}), perform
        )

    toolset.call_tool = call_tool
    cast(Any, module).__agentloom__ = True


def _function(toolset: Any, tool: Any) -> Any:
    """The function of a tool: what it returns is declared by its annotations."""
    own = toolset.tools.get(getattr(tool, "original_name", None) or tool.tool_def.name)
    return None if own is None else own.function


def install_agent(module: ModuleType) -> None:
    """Patch ``pydantic_ai.agent``. Idempotent. Raises ``NotSupported`` for a release that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "Agent", "iter")
    needed(module, "Agent", "_infer_name")
    agent: Any = cast(Any, module).Agent
    original = agent.iter

    @functools.wraps(original)
    def iter(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A001 - the method's name
        frame = inspect.currentframe()
        if kwargs.get("infer_name", True) and self.name is None and not _of_itself(frame):
            self._infer_name(frame)  # by the variable that holds it in the code that called
        return _named(original, self, args, kwargs | {"infer_name": False})

    agent.iter = iter
    cast(Any, module).__agentloom__ = True


def _of_itself(frame: FrameType | None) -> bool:
    """Whether the package itself calls what runs in ``frame``."""
    caller = None if frame is None else frame.f_back
    return caller is not None and str(caller.f_globals.get("__name__", "")).startswith("pydantic_ai.")


def install_utils(module: ModuleType) -> None:
    """Patch ``pydantic_ai._utils``: how ``run_sync`` awaits. Idempotent. Raises ``NotSupported`` for a release that is
    built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    run = function_of(module, "run_until_complete", "parallel tools of run_sync have no recorded order")

    @functools.wraps(run)
    def run_until_complete(coro: Any) -> Any:
        return run(ordered(coro))

    cast(Any, module).run_until_complete = run_until_complete
    cast(Any, module).__agentloom__ = True


@asynccontextmanager
async def _named(
    original: Any, agent: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> AsyncGenerator[Any]:
    with within(agent.name or "agent"):
        async with original(agent, *args, **kwargs) as run:
            yield run
