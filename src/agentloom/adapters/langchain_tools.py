"""LangChain's tools become ``tool`` calls: what ``BaseTool.invoke`` and ``ainvoke`` run, whoever asks for it (a
``ToolNode``, an agent, the program itself).

The seam is a tool's own ``_run`` and ``_arun``. Validation, callbacks, error handlers and the making of messages stay
LangChain's and run again on replay. What LangChain injects (state, store, runtime, configuration, callbacks) is handed
to the tool as it is, and is no part of the record.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_classes import wrap_overrides
from agentloom.adapters.framework_tools import Tool, call_tool, call_tool_async, declare_once
from agentloom.adapters.langgraph_interrupts import ToolInterrupts
from agentloom.adapters.langgraph_values import declare_messages, pack, unpack
from agentloom.adapters.releases import needed
from agentloom.runtime.scope import current
from agentloom.runtime.tool_use import AGENT, ToolEffect, declared_effect

__all__ = ["install"]

_STRUCTURE = ("langchain_core.tools.convert", "langchain_core.tools.retriever")
"""Modules whose tools only ask a runnable or a retriever of LangChain: what these ask is recorded, below the tool's
name."""


def install(module: ModuleType) -> None:
    """Patch ``langchain_core.tools.base``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way."""
    if getattr(module, "__agentloom__", False):
        return
    for name in ("_run", "_arun", "_filter_injected_args"):
        needed(module, "BaseTool", name)
    base: Any = cast(Any, module).BaseTool
    base.__agentloom_tools__ = True
    from langchain_core import messages

    declare_messages(messages)
    wrap_overrides(base, {"_run": _blocking, "_arun": _awaited})
    cast(Any, module).__agentloom__ = True


def _blocking(method: Any) -> Any:
    @functools.wraps(method)
    def _run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return method(self, *args, **kwargs)
        asked, perform = _asked(self, method, args, kwargs)
        return call_tool(asked, perform)

    return _run


def _awaited(method: Any) -> Any:
    @functools.wraps(method)
    async def _arun(self: Any, *args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return await method(self, *args, **kwargs)
        asked, perform = _asked(self, method, args, kwargs)
        return await call_tool_async(asked, perform)

    return _arun


_POSITIONAL = "tool_input"
"""The argument that holds what a tool of one plain text gets."""


def _asked(tool: Any, method: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tool, Any]:
    """The call, without what LangChain injects, and what runs it with the arguments that are recorded."""
    shown = cast("dict[str, Any]", tool._filter_injected_args(kwargs))
    config = _config_parameter(method)
    given = {name: value for name, value in shown.items() if name != config}
    injected = {name: value for name, value in kwargs.items() if name not in given}
    if args:
        given = {_POSITIONAL: list(args), **given}
    functions = [one for name in ("func", "coroutine") if callable(one := getattr(tool, name, None))]
    for function in functions or [method]:
        declare_once(function)
    effect = _said(tool, functions)

    def perform(values: Mapping[str, Any]) -> Any:
        more = dict(values)
        return method(tool, *more.pop(_POSITIONAL, ()), **injected, **more)

    also = ToolInterrupts.here()
    return Tool("langchain", tool.name, given, effect, also=also, pack=pack, unpack=unpack), perform


def _said(tool: Any, functions: list[Any]) -> ToolEffect | None:
    said = declared_effect(tool.metadata, tool.name)
    if said is None and any(getattr(one, "__module__", None) in _STRUCTURE for one in functions):
        return AGENT
    return said


@functools.lru_cache(maxsize=1000)
def _config_parameter(method: Any) -> str | None:
    from langchain_core.runnables import RunnableConfig

    for name, annotation in getattr(method, "__annotations__", {}).items():
        if annotation is RunnableConfig or (
            isinstance(annotation, str) and annotation.rpartition(".")[2] == "RunnableConfig"
        ):
            return str(name)
    return None
