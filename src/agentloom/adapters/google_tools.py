"""Functions that google-genai calls by itself (``tools=[function]``) become ``tool`` calls."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_tools import Tool, call_tool, call_tool_async, declare_once
from agentloom.adapters.releases import function_of
from agentloom.runtime.scope import current

__all__ = ["install"]

_BLOCKING = "invoke_function_from_dict_args"
_AWAITED = "invoke_function_from_dict_args_async"
_OTHERWISE = "functions that it calls itself are not recorded"


def install(module: ModuleType) -> None:
    """Patch ``google.genai._extra_utils``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way."""
    if getattr(module, "__agentloom__", False):
        return
    invoke = function_of(module, _BLOCKING, _OTHERWISE)
    invoke_async = function_of(module, _AWAITED, _OTHERWISE)

    @functools.wraps(invoke)
    def called(args: dict[str, Any], function_to_invoke: Any) -> Any:
        if current() is None:
            return invoke(args, function_to_invoke)

        def perform(given: Mapping[str, Any]) -> Any:
            return invoke(dict(given), function_to_invoke)

        return call_tool(_tool(function_to_invoke, args), perform)

    @functools.wraps(invoke_async)
    async def called_async(args: dict[str, Any], function_to_invoke: Any) -> Any:
        if current() is None:
            return await invoke_async(args, function_to_invoke)

        async def perform(given: Mapping[str, Any]) -> Any:
            return await invoke_async(dict(given), function_to_invoke)

        return await call_tool_async(_tool(function_to_invoke, args), perform)

    setattr(module, _BLOCKING, called)
    setattr(module, _AWAITED, called_async)
    cast(Any, module).__agentloom__ = True


def _tool(function: Any, args: Mapping[str, Any]) -> Tool:
    declare_once(function)
    return Tool("google-genai", getattr(function, "__name__", type(function).__name__), args)
