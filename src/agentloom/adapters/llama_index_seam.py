"""LlamaIndex: function tools become ``tool`` calls, retrievers ``retrieve`` calls with ids and scores, and each step of
a workflow a segment of the paths of its calls.

The seam of a tool is its function: what LlamaIndex makes of the result runs again on replay. A tool that gets the
workflow's context is part of the workflow (it hands over, waits for events, keeps state there): unless the user of the
run says otherwise its code is the agent's own.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_classes import PLAIN, held_function, wrap_overrides
from agentloom.adapters.framework_scopes import within
from agentloom.adapters.framework_tools import Tool, call_tool, call_tool_async, declare_once
from agentloom.adapters.framework_values import held_by
from agentloom.adapters.releases import function_of, needed
from agentloom.errors import NotSupported
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.passed import passes
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current
from agentloom.runtime.tool_use import AGENT, declared_effect

__all__ = ["install_retrievers", "install_runtime", "install_steps", "install_tools"]

_POSITIONAL = "arguments"
"""Arguments that came without a name."""


def install_tools(module: ModuleType) -> None:
    """Patch ``llama_index.core.tools.function_tool``. Idempotent. Raises ``NotSupported`` for a release that is built
    in another way."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "FunctionTool", "acall")
    tool: Any = cast(Any, module).FunctionTool
    if not isinstance(getattr(tool, "fn", None), property):
        raise NotSupported(
            "this release of llama-index-core has no FunctionTool.fn: its tools are not recorded",
            hint="install a release of llama-index-core that agentloom's tests name",
        )
    tool._fn = held_function("_fn", _blocking)
    tool._async_fn = held_function("_async_fn", _awaited)
    tool.__agentloom_tools__ = True
    cast(Any, module).__agentloom__ = True


def _blocking(tool: Any, plain: Any) -> Any:
    @functools.wraps(plain)
    def called(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return plain(*args, **kwargs)
        asked, perform = _asked(tool, plain, args, kwargs)
        return call_tool(asked, perform)

    setattr(called, PLAIN, plain)
    return called


def _awaited(tool: Any, plain: Any) -> Any:
    @functools.wraps(plain)
    async def called(*args: Any, **kwargs: Any) -> Any:
        if current() is None:
            return await plain(*args, **kwargs)
        asked, perform = _asked(tool, plain, args, kwargs)
        return await call_tool_async(asked, perform)

    setattr(called, PLAIN, plain)
    return called


def _asked(tool: Any, plain: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Tool, Any]:
    """The call, and what runs it with the arguments that are recorded."""
    # Annotations that are texts are not seen by LlamaIndex: what is given tells, too.
    injected = {name: value for name, value in kwargs.items() if _is_context(value)}
    given: dict[str, Any] = {name: value for name, value in kwargs.items() if name not in injected}
    if args:
        given = {_POSITIONAL: list(args), **given}
    name = tool.metadata.get_name()
    said = declared_effect(getattr(tool, "partial_metadata", None), name)
    if said is None and (injected or getattr(tool, "requires_context", False)):
        said = AGENT
    declare_once(getattr(tool, "real_fn", None))

    def perform(values: Mapping[str, Any]) -> Any:
        more = dict(values)
        return plain(*more.pop(_POSITIONAL, ()), **injected, **more)

    return Tool("llama-index", name, given, said), perform


def _is_context(value: object) -> bool:
    kind = type(value)
    return kind.__name__ == "Context" and kind.__module__.partition(".")[0] in ("workflows", "llama_index")


# -- retrievers ------------------------------------------------------------------------------------------------------


def install_retrievers(module: ModuleType) -> None:
    """Patch ``llama_index.core.base.base_retriever``. Idempotent. Raises ``NotSupported`` for a release that is built
    in another way."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "BaseRetriever", "_retrieve")
    needed(module, "BaseRetriever", "_aretrieve")
    schema = sys.modules.get("llama_index.core.schema")
    for name in ("NodeWithScore", "TextNode", "ImageNode", "IndexNode", "Node", "Document", "ImageDocument"):
        cls = getattr(schema, name, None)
        if isinstance(cls, type):
            TYPES.declare(cls)
    base: Any = cast(Any, module).BaseRetriever
    wrap_overrides(base, {"_retrieve": _blocking_search, "_aretrieve": _awaited_search})
    cast(Any, module).__agentloom__ = True


def _blocking_search(method: Any) -> Any:
    @functools.wraps(method)
    def _retrieve(self: Any, query_bundle: Any, *args: Any, **kwargs: Any) -> Any:
        search = method.__get__(self, type(self))
        if current() is None:
            passes(f"retriever {type(self).__name__} (llama-index)")
            return search(query_bundle, *args, **kwargs)
        if _asks_others(self):
            with within(type(self).__name__):
                return search(query_bundle, *args, **kwargs)
        return call_inline(_spec(self, query_bundle), lambda _: list(search(query_bundle, *args, **kwargs)))

    return _retrieve


def _awaited_search(method: Any) -> Any:
    @functools.wraps(method)
    async def _aretrieve(self: Any, query_bundle: Any, *args: Any, **kwargs: Any) -> Any:
        search = method.__get__(self, type(self))
        if current() is None:
            passes(f"retriever {type(self).__name__} (llama-index)")
            return await search(query_bundle, *args, **kwargs)
        if _asks_others(self):
            with within(type(self).__name__):
                return await search(query_bundle, *args, **kwargs)

        async def perform(_: object) -> Any:
            return list(await search(query_bundle, *args, **kwargs))

        return await call_async(_spec(self, query_bundle), perform)

    return _aretrieve


def _spec(retriever: Any, bundle: Any) -> CallSpec:
    request: dict[str, Any] = {"query": bundle.query_str}
    if getattr(bundle, "custom_embedding_strs", None):
        request["embedded"] = list(bundle.custom_embedding_strs)
    most = getattr(retriever, "similarity_top_k", None)
    if isinstance(most, int):
        request["top_k"] = most
    return CallSpec("retrieve", type(retriever).__name__, request, effect="read")


def _asks_others(retriever: Any) -> bool:
    """Whether it is made of other retrievers, query engines or models."""
    kinds: list[Any] = [type(one) for one in held_by(retriever)]
    return any(callable(getattr(kind, name, None)) for kind in kinds for name in ("retrieve", "achat"))


# -- steps -----------------------------------------------------------------------------------------------------------


def install_steps(module: ModuleType) -> None:
    """Patch ``workflows.runtime.types.step_function``. Idempotent. Raises ``NotSupported`` for a release that is built
    in another way."""
    if getattr(module, "__agentloom__", False):
        return
    make = function_of(module, "as_step_worker_function", "calls are recorded without the names of steps")

    @functools.wraps(make)
    def as_step_worker_function(func: Any, *args: Any, **kwargs: Any) -> Any:
        worker = make(func, *args, **kwargs)
        if not inspect.iscoroutinefunction(worker):
            return worker

        @functools.wraps(worker)
        async def run(*given: Any, **named: Any) -> Any:
            with within(getattr(func, "__name__", "step")):
                return await worker(*given, **named)

        return run

    cast(Any, module).as_step_worker_function = as_step_worker_function
    cast(Any, module).__agentloom__ = True


def install_runtime(module: ModuleType) -> None:
    """Patch ``workflows.plugins.basic``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way.

    Workflows draw the ids of their runs, so a replay in the same process begins a workflow under an id that was there
    before. The runtime refuses that for as long as the collector has not come by what is left of the ended one.
    """
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "BasicRuntime", "run_workflow")
    runtime = cast(Any, module).BasicRuntime
    original = runtime.run_workflow

    @functools.wraps(original)
    def run_workflow(self: Any, run_id: str, *args: Any, **kwargs: Any) -> Any:
        if current() is not None:
            ended = getattr(self._queues.get(run_id), "complete", None)
            if ended is not None and ended.done():
                self._queues.pop(run_id, None)
        return original(self, run_id, *args, **kwargs)

    runtime.run_workflow = run_workflow
    cast(Any, module).__agentloom__ = True
