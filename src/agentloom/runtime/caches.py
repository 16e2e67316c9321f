"""Caches of a process that keep host calls out of a run: ``functools.lru_cache`` around a tool, filled before the run.

What such a cache answers makes no call, so it is not in the trace, and another process cannot replay it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any, cast

__all__ = ["warm_caches"]

_CACHE = type(functools.lru_cache(lambda: None))


def warm_caches(modules: Iterable[str]) -> list[str]:
    """One sentence for each cache in the loaded modules of these names that holds results of host calls already."""
    return sorted(_sentences(modules))


def _sentences(modules: Iterable[str]) -> Iterator[str]:
    seen: set[int] = set()
    for module in modules:
        for value in list(vars(sys.modules[module]).values()) if module in sys.modules else ():
            if type(value) is not _CACHE or id(value) in seen:
                continue
            seen.add(id(value))
            kept = cast(Any, value).cache_info().currsize
            function = cast(Any, value).__wrapped__
            if kept and _calls_the_host(function):
                results = "1 result" if kept == 1 else f"{kept:,} results"
                name = function.__qualname__
                yield (
                    f"{name} ({_place(function)}) has a cache that holds {results} from before this run: calls that it"
                    f" answers are not in the trace. Call {name}.cache_clear() first"
                )


def _calls_the_host(function: Callable[..., object]) -> bool:
    """Whether it is a tool, or names one, an agent or a host function."""
    if _is_boundary(function):
        return True
    plain = cast(Any, function)
    if not isinstance(plain, FunctionType):
        return False
    names = (plain.__globals__.get(name) for name in plain.__code__.co_names)
    return any(value is not None and _is_boundary(value) for value in names)


def _is_boundary(value: object) -> bool:
    if getattr(value, "__agentloom_tool__", None) is not None:
        return True
    if isinstance(value, ModuleType):
        return value.__name__ in ("agentloom", "agentloom.sync")
    module = getattr(value if isinstance(value, FunctionType) else type(value), "__module__", "") or ""
    return module.startswith("agentloom.api.")


def _place(function: Any) -> str:
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_firstlineno}"
