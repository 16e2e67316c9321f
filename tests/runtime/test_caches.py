"""Caches filled before a run that keep host calls out of it are named."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from agentloom import tool
from agentloom.runtime.caches import warm_caches


@tool(effect="read")
def find(number: int) -> int:
    return number


@functools.lru_cache
def through(number: int) -> int:
    return find(number)


around = functools.lru_cache(find)


@functools.lru_cache
def plain(number: int) -> int:
    return number + 1


@pytest.fixture(autouse=True)
def cold() -> Iterator[None]:
    """Cold before, and after: other tests record runs with this module loaded."""
    _clear()
    yield
    _clear()


def _clear() -> None:
    for cache in (through, around, plain):
        cache.cache_clear()


def test_a_cache_that_holds_results_of_host_calls_is_named_with_its_remedy() -> None:
    for number in range(2):
        through(number)
    around(1)
    plain(1)  # pure: its results are what they would be anywhere
    one, two = warm_caches([__name__])
    assert one.startswith("find (test_caches.py:")
    assert "holds 1 result from before" in one
    assert "holds 2 results" in two
    assert two.endswith("Call through.cache_clear() first")


def test_a_cold_cache_is_fine() -> None:
    assert warm_caches([__name__, "no.such.module"]) == []


def test_a_cache_that_two_modules_have_is_named_once(monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("caches_other")
    vars(other)["through"] = through
    monkeypatch.setitem(sys.modules, "caches_other", other)
    through(1)
    assert len(warm_caches([__name__, "caches_other"])) == 1
