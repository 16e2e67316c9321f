"""Host functions, async and sync: the same names, the same parameters, the same records."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, cast

import pytest

import agentloom
from agentloom import agent, sync
from agentloom.api import hosts, hosts_sync
from agentloom.errors import NoActiveRun
from agentloom.format.words import kind_of
from agentloom.store import MemoryStore
from tests.runtime.fakes import fails, recorded

CALLS: dict[str, tuple[Any, ...]] = {
    "model": ("m", "hi"), "http": ("GET", "http://127.0.0.1:9"), "now": (), "random": (), "uuid": (), "env": ("HOME",),
    "sleep": (0,), "step": (len, "x"), "retrieve": (list, ()), "note": ("n",), "flag": ("f",),
}  # fmt: skip


def test_both_have_the_same_names_and_parameters() -> None:
    # The async `retrying` has a home of its own, and so has what people are asked by.
    people = ["approve", "ask", "signal"]
    assert sorted([*hosts.__all__, "retrying"]) == hosts_sync.__all__
    assert sorted([*hosts_sync.__all__, *people]) == sync.__all__
    for name in [*CALLS, "retrying"]:
        here, there = inspect.signature(getattr(agentloom, name)), inspect.signature(getattr(sync, name))
        assert list(here.parameters) == list(there.parameters), name


@pytest.mark.parametrize("name", CALLS)
def test_outside_a_run_each_is_refused_by_name(name: str) -> None:
    with pytest.raises(NoActiveRun, match="was called outside a run"):
        getattr(sync, name)(*CALLS[name])


@agent
async def noting() -> None:
    await agentloom.note({"seen": [1, 2]})
    await agentloom.flag("odd")


@agent
def noting_sync() -> None:
    sync.note({"seen": [1, 2]})
    sync.flag("odd")


@pytest.mark.parametrize("which", [noting, noting_sync])
def test_notes_and_flags_are_entries(which: Any) -> None:
    trace = which.run(store=MemoryStore())
    marks = [
        (e["kind"], trace.journal.tree(e["val"]))
        for e in trace.journal.entries
        if e["kind"] in ("note", "flag")
    ]
    assert marks == [("note", {"seen": [1, 2]}), ("flag", "odd")]
    assert trace.replay().verdict == "identical"


@agent
async def side_by_side(fail: bool) -> list[Any]:
    async def branch(number: int) -> Any:
        try:
            await agentloom.sleep(0.001 * (3 - number))
            if fail and number == 2:
                raise ValueError(number)
            await agentloom.sleep(0.005)
        finally:
            await agentloom.note(f"end {number}")
        return number

    return await agentloom.parallel(*(branch(number) for number in range(3)))


def test_parallel_keeps_the_order_of_its_arguments() -> None:
    trace = side_by_side.run(False, store=MemoryStore())
    assert trace.output == [0, 1, 2]
    assert trace.calls[0].path.startswith("root/side_by_side/parallel[")
    assert trace.replay().verdict == "identical"


def test_the_first_error_cancels_the_others_and_waits_for_their_clean_up() -> None:
    store = MemoryStore()
    with pytest.raises(ValueError, match="2"):
        side_by_side.run(True, store=store)
    trace = agentloom.Trace.open("last", store)
    notes = [trace.journal.tree(e["val"]) for e in trace.journal.entries if e["kind"] == "note"]
    assert sorted(map(str, notes)) == ["end 0", "end 1", "end 2"]


@agent
def strands() -> list[Any]:
    return sync.parallel(lambda: sync.sleep(0), lambda: sync.now().year > 2000)


def test_parallel_in_a_sync_agent_takes_functions() -> None:
    trace = strands.run(store=MemoryStore())
    assert trace.output == [None, True]
    assert trace.replay().verdict == "identical"


@agent
async def clean_up_fails() -> list[Any]:
    async def slow() -> None:
        try:
            await agentloom.sleep(60)
        finally:
            raise KeyError("from the clean-up")

    async def fast() -> None:
        await agentloom.sleep(0)
        raise ValueError("the cause")

    return await agentloom.parallel(slow(), fast())


def test_an_error_of_the_clean_up_gives_way_to_its_cause() -> None:
    error, _ = fails(clean_up_fails)
    assert str(error) == "the cause"


@agent
async def side(*branches: Any) -> list[Any]:
    return await agentloom.parallel(agentloom.sleep(0), *branches)


@pytest.mark.parametrize("branch", [5, None, "agent"])
def test_a_branch_that_is_no_coroutine_is_refused_before_any_starts(branch: object) -> None:
    error, trace = fails(side, branch)
    assert f"argument 2 is {kind_of(branch)}" in str(error)
    assert trace.calls == []


def test_async_parallel_in_a_sync_agent_names_the_sync_one() -> None:
    @agent
    def wrong() -> Any:
        return asyncio.run(agentloom.parallel(agentloom.sleep(0)))

    error, _ = fails(wrong)
    assert "agentloom.sync.parallel" in str(error)


async def found_later(*args: object) -> list[dict[str, Any]]:
    return [{"id": 1}]


def test_sync_functions_refuse_coroutine_functions_and_async_ones_await_them() -> None:
    @agent
    def wrong(name: str) -> Any:
        return getattr(sync, name)(found_later)

    for name in ("step", "retrieve"):
        error, trace = fails(wrong, name)
        assert f"await agentloom.{name}(...)" in str(error)
        assert trace.calls == []

    @agent
    async def right() -> Any:
        return [await agentloom.step(found_later), await agentloom.retrieve(found_later)]

    assert recorded(right).output == [[{"id": 1}]] * 2


def test_arguments_are_captured_when_the_call_is_made_and_not_when_it_ends() -> None:
    @agent
    async def mutates() -> Any:
        items = [1]
        made: Any = agentloom.step(cast("Any", later), items)
        task = asyncio.ensure_future(made)
        await asyncio.sleep(0)
        items.append(2)
        return [await task, items]

    assert recorded(mutates).output == [[1], [1, 2]]


async def later(items: list[int]) -> list[int]:
    await asyncio.sleep(0)
    return items
