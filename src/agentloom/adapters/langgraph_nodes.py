"""LangGraph's nodes become segments of the paths of calls: which node asked. Each turn of a node is ``NODE[i]``.

The seam is what runs one task of a graph, sync and async. Retries of a node are inside of it.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.framework_scopes import within
from agentloom.adapters.releases import function_of

__all__ = ["install"]


def install(module: ModuleType) -> None:
    """Patch ``langgraph.pregel._runner``. Idempotent. Raises ``NotSupported`` for a release that is built in another
    way."""
    if getattr(module, "__agentloom__", False):
        return
    runner = cast(Any, module)
    otherwise = "calls are recorded without the names of nodes"
    blocking = function_of(module, "run_with_retry", otherwise)
    awaited = function_of(module, "arun_with_retry", otherwise)

    @functools.wraps(blocking)
    def run_with_retry(task: Any, *args: Any, **kwargs: Any) -> Any:
        with within(task.name):
            return blocking(task, *args, **kwargs)

    @functools.wraps(awaited)
    async def arun_with_retry(task: Any, *args: Any, **kwargs: Any) -> Any:
        with within(task.name):
            return await awaited(task, *args, **kwargs)

    runner.run_with_retry, runner.arun_with_retry = run_with_retry, arun_with_retry
    runner.__agentloom__ = True
