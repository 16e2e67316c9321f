"""A pytest plugin for suites of other packages: every test function runs in a recorded run, or bare.

``-p agentloom_suite`` with this folder on the path. ``AGENTLOOM_SUITE_HOW`` is ``bare``, ``block`` (every test in
``with agentloom.record(name):``) or ``coroutine`` (async tests in ``await agentloom.record(test())`` on the
deterministic loop, sync ones in a block). A line of JSON for each test function goes to ``AGENTLOOM_SUITE_RESULTS``.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

HOW = os.environ.get("AGENTLOOM_SUITE_HOW", "bare")
RESULTS = os.environ["AGENTLOOM_SUITE_RESULTS"]

_found: dict[str, dict[str, Any]] = {}
_runs: dict[str, Any] = {}


def _trace(name: str, store: Any) -> None:
    """How many calls the run of a test holds."""
    from agentloom import Trace

    rows = store.runs()
    _runs[name] = {
        "runs": len(rows),
        "calls": sum(len(Trace(store.read(row.run)).calls) for row in rows),
    }


def recorded(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The test, in a recorded run of its own."""
    import agentloom
    from agentloom.store import MemoryStore

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        store = MemoryStore()
        try:
            with agentloom.record("test", store=store):
                return function(*args, **named)
        finally:
            _trace(name, store)

    @functools.wraps(function)
    async def awaited(*args: Any, **named: Any) -> Any:
        store = MemoryStore()
        try:
            if HOW == "coroutine":
                return await agentloom.record(function(*args, **named), name="test", store=store)
            with agentloom.record("test", store=store):
                return await function(*args, **named)
        finally:
            _trace(name, store)

    return awaited if inspect.iscoroutinefunction(function) else called


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every plain test function and method; those of `unittest` call themselves by name and are left alone."""
    for item in items if HOW != "bare" else ():
        if isinstance(item, pytest.Function) and type(item).__name__ != "TestCaseFunction":
            item.obj = recorded(item.obj, item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The worst of set-up, call and clean-up is the verdict."""
    one = _found.setdefault(report.nodeid, {"test": report.nodeid, "verdict": "", "why": ""})
    expected = hasattr(report, "wasxfail")
    if report.when == "call":
        one["verdict"] = f"x{report.outcome}" if expected else report.outcome
    elif report.failed:
        one["verdict"] = f"error in {report.when}"
    elif report.skipped:
        one["verdict"] = "xskipped" if expected else "skipped"
    if report.failed:
        one["why"] = str(report.longrepr)[-6000:]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be imported here is a row too."""
    if report.failed:
        _found[report.nodeid] = {
            "test": report.nodeid,
            "verdict": "not collected",
            "why": str(report.longrepr)[-6000:],
        }


def pytest_sessionfinish() -> None:
    """Writes the rows."""
    with open(RESULTS, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(one | _runs.get(name, {})) + "\n" for name, one in _found.items())
