"""Caches that hold results of host calls are named; others are not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from agentloom.runtime.caches import warm_caches

SOURCE = """
import functools
from agentloom import tool, sync
@tool(effect="read")
def look(n): return n
direct = functools.lru_cache(look)
@functools.cache
def around(n): return look(n)
@functools.cache
def host(n): return sync.now() if n > 5 else n
@functools.cache
def pure(n): return n
again = direct
"""


@pytest.fixture
def module() -> Iterator[ModuleType]:
    made = ModuleType("cached_module")
    sys.modules["cached_module"] = made
    exec(compile(SOURCE, "folder/cached_module.py", "exec"), made.__dict__)
    yield made
    del sys.modules["cached_module"]


def test_only_warm_caches_of_host_calls_are_named(module: ModuleType) -> None:
    assert warm_caches(["cached_module"]) == []
    for name in ("direct", "around", "pure"):
        getattr(module, name)(1)
    module.around(2)
    first, second = warm_caches(["cached_module", "not_loaded"])
    assert first.startswith(
        "around (cached_module.py:7) has a cache that holds 2 results from before this run"
    )
    assert second.startswith("look (cached_module.py:4) has a cache that holds 1 result ")
    module.direct.cache_clear()
    module.around.cache_clear()
    assert warm_caches(["cached_module"]) == []


def test_a_host_function_of_a_module_counts(module: ModuleType) -> None:
    module.host(1)
    (told,) = warm_caches(["cached_module"])
    assert told.startswith("host (cached_module.py:9) has a cache that holds 1 result ")
