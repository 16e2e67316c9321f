"""``changed``: old runs go on as they began, new ones take the changed code."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

import agentloom.sync
from agentloom import Agent, DivergenceError, Suspended, agent, changed, record, resume, tool
from agentloom.errors import NoActiveRun, ValueRefused
from agentloom.runtime.boundary import call_async
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.outside import Outside
from agentloom.store import MemoryStore
from agentloom.store.mail import Mail

DONE: list[str] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    DONE.clear()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@tool
async def do(what: str) -> str:
    DONE.append(what)
    return what


async def asked() -> Any:
    outside = Outside("answer", facts={"question": "?"})
    return await call_async(CallSpec("ask", "ask", {}, outside=outside), lambda _: asyncio.sleep(0))


@agent(name="refund")
async def old() -> str:
    await do("a")
    await asked()
    await do("z")
    return "done"


@agent(name="refund")
async def guarded() -> str:
    if changed("b too"):
        await do("b")
    await do("a")
    await asked()
    if changed("b too"):
        await do("b again")
    await do("z")
    return "done"


@agent(name="refund")
async def careless() -> str:
    await do("b")
    await do("a")
    return "done"


def left(program: Agent[..., Any], store: MemoryStore) -> str:
    with pytest.raises(Suspended) as waits:
        program.run(store=store)
    return cast(str, waits.value.run)


def say_yes(store: MemoryStore, run: str, ask: str) -> None:
    store.post(run, Mail("answer", ask, value="yes", at=1, via="test"))


def test_a_run_from_before_the_change_goes_on_as_it_began(store: MemoryStore) -> None:
    run = left(old, store)
    say_yes(store, run, "2")
    with pytest.raises(DivergenceError):
        resume(run, careless, store=store)
    trace = resume(run, guarded, store=store)
    assert DONE == ["a", "z"]
    assert trace.replay(agent=guarded).verdict == "identical"
    assert trace.replay(agent=old).verdict == "identical"


def test_a_new_run_takes_the_changed_code(store: MemoryStore) -> None:
    run = left(guarded, store)
    say_yes(store, run, "4")
    trace = resume(run, guarded, store=store)
    assert DONE == ["b", "a", "b again", "z"]
    assert [call.kind for call in trace.calls].count("changed") == 1
    assert trace.replay(agent=guarded).verdict == "identical"


def test_a_change_behind_the_place_where_the_run_waits_holds(store: MemoryStore) -> None:
    run = left(old, store)
    say_yes(store, run, "2")

    @agent(name="refund")
    async def later() -> str:
        await do("a")
        await asked()
        if changed("at the end"):
            await do("y")
        await do("z")
        return "done"

    trace = resume(run, later, store=store)
    assert DONE == ["a", "y", "z"]
    assert trace.replay(agent=later).verdict == "identical"


def test_it_moves_no_other_call(store: MemoryStore) -> None:
    @agent
    async def plain() -> None:
        await do("a")

    @agent(name="plain")
    async def asks() -> None:
        changed("x")
        await do("a")

    before, after = plain.run(store=store), asks.run(store=store)
    assert before.calls[0].id == after.calls[1].id
    assert before.replay(agent=asks).verdict == "identical"


def test_in_sync_code_in_threads_and_in_blocks(store: MemoryStore) -> None:
    @agent
    def sync_agent() -> list[bool]:
        return [changed("x"), *agentloom.sync.parallel(lambda: changed("y"), lambda: changed("y"))]

    trace = sync_agent.run(store=store)
    assert trace.output == [True, True, True]
    assert len(trace.calls) == 2
    assert trace.replay(agent=sync_agent).verdict == "identical"
    with record("block", store=store) as run:
        assert changed("x")
    assert [call.name for call in run.trace.calls] == ["x"]


def test_outside_of_a_run_nothing_can_have_changed() -> None:
    with pytest.raises(NoActiveRun):
        changed("x")


@pytest.mark.parametrize("name", ["", None, 3])
def test_a_change_has_a_name(name: Any) -> None:
    with pytest.raises(ValueRefused, match="a change has a name"):
        changed(name)
