"""Agents: how a function is run under a session, and child agents."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from typing import Any

import pytest

import agentloom
from agentloom import agent, sync, tool
from agentloom.errors import NotSupported, StoreFailed, ValueRefused
from agentloom.runtime.agents import AgentFunction, execute_blocking
from tests.runtime.fakes import Bench, fails, kinds_of, recorded


def test_a_function_is_described() -> None:
    made = AgentFunction.of(test_a_function_is_described, "name")
    assert (made.name, made.qualname, made.is_async) == ("name", "test_a_function_is_described", False)
    assert made.file == __file__
    assert AgentFunction.of(functools.partial(len, "x")).file is None


def test_the_root_is_above_the_top_package(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agents_pkg" / "sub").mkdir(parents=True)
    for folder in (tmp_path / "agents_pkg", tmp_path / "agents_pkg" / "sub"):
        (folder / "__init__.py").touch()
    (tmp_path / "agents_pkg" / "sub" / "mod.py").write_text("def run(): ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("agents_pkg", "agents_pkg.sub", "agents_pkg.sub.mod"):  # of an earlier run in this process
        monkeypatch.delitem(sys.modules, name, raising=False)
    import importlib

    module = importlib.import_module("agents_pkg.sub.mod")
    assert AgentFunction.of(module.run).root == str(tmp_path)


# -- how an agent ends


@pytest.mark.parametrize(
    ("error", "status"),
    [(ValueError, "failed"), (SystemExit, "failed"), (KeyboardInterrupt, "cancelled")],
)
def test_what_an_agent_raises_is_how_its_run_ends(error: type[BaseException], status: str) -> None:
    @agent
    def raises() -> None:
        raise error("x")

    caught, trace = fails(raises)
    assert (type(caught), trace.status, kinds_of(trace)) == (error, status, ["start", "end"])


def test_an_output_that_cannot_be_kept_is_a_failure_said_in_the_trace() -> None:
    @agent
    def returns() -> object:
        return {"db": object()}

    error, trace = fails(returns)
    assert isinstance(error, ValueRefused)
    assert trace.status == "failed"
    assert isinstance(trace.error, ValueRefused)


def test_the_verdict_goes_before_whatever_the_agent_returned_or_raised() -> None:
    for ending in ("return", "raise"):
        bench = Bench(fail_at=1)

        def careless(ending: str = ending) -> str:
            with contextlib.suppress(BaseException):
                sync.now()
            if ending == "raise":
                raise KeyError("something else")
            return "fine"

        with pytest.raises(StoreFailed):
            execute_blocking(bench.session, AgentFunction.of(careless), (), {})
        assert bench.kinds == ["start"]


def test_the_output_is_decoded_from_what_was_written() -> None:
    value = {"a": [1]}
    bench = Bench()
    output = execute_blocking(bench.session, AgentFunction.of(lambda: value), (), {})
    assert output == value
    assert output is not value


# -- child agents


@tool(effect="read")
def find(number: int) -> int:
    return number


@agent
def child(number: int) -> list[int]:
    if number < 0:
        raise ValueError(number)
    return [find(number)]


@agent
async def achild(number: int) -> list[int]:
    await agentloom.sleep(0)
    return child(number)


def test_a_sync_child_in_an_async_agent_and_an_async_child_below_it() -> None:
    @agent
    async def parent() -> Any:
        return child(1), await achild(2)

    trace = recorded(parent)
    assert trace.output == ([1], [2])
    assert [(call.kind, call.id) for call in trace.calls] == [
        ("agent", "root/parent#1"),
        ("tool", "root/parent/child[0]#1"),
        ("agent", "root/parent#2"),
        ("sleep", "root/parent/achild[0]#1"),
        ("agent", "root/parent/achild[0]#2"),
        ("tool", "root/parent/achild[0]/child[0]#1"),
    ]
    parents = [entry.get("parent") for entry in trace.journal.entries if entry["kind"] == "request"]
    assert parents == [
        None,
        "root/parent#1",
        None,
        "root/parent#2",
        "root/parent#2",
        "root/parent/achild[0]#2",
    ]


def test_an_async_child_in_a_sync_agent_says_what_to_do() -> None:
    @agent
    def parent() -> Any:
        return achild(1)

    error, trace = fails(parent)
    assert isinstance(error, NotSupported)
    assert "achild is an async agent" in str(error)
    assert trace.calls == []


def test_a_child_that_is_made_in_one_task_and_awaited_in_another_belongs_to_the_other() -> None:
    @agent
    async def parent() -> Any:
        made = achild(1)
        return await asyncio.create_task(made)

    assert recorded(parent).calls[0].id == "root/parent/task[0]#1"


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt])
def test_however_a_child_ends_its_call_has_an_outcome(error: type[BaseException]) -> None:
    @agent
    def kid() -> None:
        raise error("x")

    @agent
    async def akid() -> None:
        raise error("x")

    @agent
    async def parent() -> list[str]:
        seen: list[str] = []
        for made in (kid, akid):
            try:
                result: Any = made()
                await result
            except BaseException as caught:  # noqa: BLE001 - every kind
                seen.append(type(caught).__name__)
        return seen

    trace = recorded(parent)
    assert trace.output == [error.__name__] * 2
    assert [call.status for call in trace.calls] == ["error", "error"]


def test_a_childs_result_that_cannot_be_kept_is_its_error() -> None:
    @agent
    def kid() -> object:
        return object()

    @agent
    def parent() -> str:
        try:
            kid()
        except ValueRefused:
            return "refused"
        return "?"

    trace = recorded(parent)
    assert (trace.output, trace.calls[0].status) == ("refused", "error")


def test_a_cancelled_child_is_a_cancelled_call() -> None:
    @agent
    async def slow() -> None:
        await agentloom.sleep(60)

    @agent
    async def parent() -> str:
        try:
            await asyncio.wait_for(slow(), 0.002)
        except TimeoutError:
            return "timeout"
        return "?"

    trace = recorded(parent)
    assert trace.output == "timeout"
    assert [(call.kind, call.status) for call in trace.calls] == [
        ("agent", "cancelled"),
        ("sleep", "cancelled"),
    ]


def test_a_childs_result_is_no_alias_of_its_own_object() -> None:
    kept: list[int] = []

    @agent
    def kid() -> list[int]:
        return kept

    @agent
    def parent() -> list[int]:
        kid().append(1)
        return list(kept)

    assert recorded(parent).output == []
