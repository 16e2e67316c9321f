"""Recording: what a run starts with, and a store that fails at every point of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import agentloom
from agentloom import Agent, Trace, agent, sync, tool
from agentloom.errors import LeaseHeld, StoreFailed, ValueRefused
from agentloom.format.journal import check
from agentloom.runtime.boundary import open_async, open_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.store import MemoryStore, open_store
from tests.runtime.fakes import FailingStore

EFFECTS: list[str] = []


@agent
def simple(given: list[int]) -> list[int]:
    given.append(9)
    return given


def test_the_start_entry_says_what_the_run_was() -> None:
    trace = simple.run([1], store=MemoryStore(), seed=7, tags={"ticket": "T1"}, conversation="c-1")
    start: dict[str, Any] = dict(trace.journal.entries[0])
    assert re.fullmatch(r"[0-9a-hjkmnp-tv-z]{26}", start["run"])
    assert (start["format"], start["version"], start["digest"], start["keys"]) == ("loom", "1.0", "sha256", 1)
    assert (start["agent"], start["seed"], start["epoch"]) == ("simple", 7, 1)
    assert start["entry"].endswith("test_recorder:simple")
    assert start["clock"]["resolution"] >= 1
    assert trace.journal.tree(start["tags"]) == {"ticket": "T1"}
    assert trace.journal.tree(start["conversation"]) == "c-1"
    assert trace.journal.tree(start["policy"])["on_store_failure"] == "closed"  # type: ignore[index,call-overload]


def test_without_labels_there_are_none() -> None:
    start = simple.run([], store=MemoryStore()).journal.entries[0]
    assert not {"tags", "conversation"} & set(start)


def test_every_run_has_an_id_and_keys_of_its_own() -> None:
    one, two = (simple.run([1], store=MemoryStore()) for _ in range(2))
    assert one.run_id != two.run_id
    assert one.journal.nonce != two.journal.nonce
    assert one.run_id[:8] <= two.run_id[:8]  # ids sort by time


def test_the_input_is_given_as_it_was_written() -> None:
    mine = [1]
    trace = simple.run(mine, store=MemoryStore())
    assert mine == [1]
    assert trace.input == {"args": [[1]], "kwargs": {}}
    assert trace.output == [1, 9]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"seed": 2**64}, "seed"), ({"seed": "7"}, "seed"), ({"seed": 1.5}, "seed"), ({"seed": True}, "seed"),
        ({"tags": {"n": 5}}, "tags.n"), ({"conversation": 5}, "conversation"),
    ],
)  # fmt: skip
def test_what_a_run_cannot_carry_is_refused_before_there_is_a_run(given: dict[str, Any], path: str) -> None:
    store = MemoryStore()
    with pytest.raises(ValueRefused) as caught:
        simple.run([1], store=store, **given)
    assert caught.value.path == path
    assert store.runs() == []


def test_an_input_that_cannot_be_kept_is_refused_before_there_is_a_run() -> None:
    store = MemoryStore()
    with pytest.raises(ValueRefused):
        simple.run([object()], store=store)
    assert store.runs() == []


def test_the_lease_is_given_up_however_the_run_ends(tmp_path: Any) -> None:
    @agent
    def ends(how: str) -> None:
        with pytest.raises(LeaseHeld):
            open_store(tmp_path).reopen(Trace.open("last", tmp_path).run_id)
        if how != "well":
            raise KeyError(how)

    for how in ("well", "badly"):
        try:
            ends.run(how, store=tmp_path)
        except KeyError:
            assert how == "badly"
        open_store(tmp_path).reopen(Trace.open("last", tmp_path).run_id).close()


# -- fail closed, everywhere


@tool
def effect(name: str) -> str:
    EFFECTS.append(name)
    if name == "trouble":
        raise ValueError(name)
    return name


@tool
async def aeffect(name: str) -> str:
    EFFECTS.append(name)
    await asyncio.sleep(0)
    return name


def chunks(_: Call) -> Iterator[object]:
    EFFECTS.append("stream")
    yield from range(3)


async def achunks(_: Call) -> AsyncIterator[object]:
    EFFECTS.append("stream")
    for number in range(3):
        yield number


@agent
def kid() -> str:
    return effect("kid")


def careless(work: Callable[[], object]) -> None:
    try:
        work()
    except Exception:  # noqa: BLE001 - what careless agents do
        EFFECTS.append("caught")


@agent
def everything_sync() -> str:
    careless(lambda: effect("one"))
    careless(lambda: effect("trouble"))
    careless(kid)
    careless(lambda: sync.note("n"))
    careless(lambda: list(open_inline(CallSpec("model", "s", {}, stream=True), chunks)))
    stream = open_inline(CallSpec("model", "s", {}, stream=True), chunks)
    careless(lambda: next(stream))
    careless(stream.close)
    careless(lambda: sync.parallel(lambda: effect("left"), lambda: effect("right")))
    careless(lambda: effect("last"))
    return "fine"


@agent
async def everything_async() -> str:
    async def one(work: Any) -> None:
        try:
            await work
        except Exception:  # noqa: BLE001 - what careless agents do
            EFFECTS.append("caught")

    async def reads(count: int) -> None:
        async with open_async(CallSpec("model", "s", {}, stream=True), achunks) as stream:
            for _ in range(count):
                await anext(stream)

    await asyncio.gather(one(aeffect("a")), one(aeffect("b")), one(reads(2)))
    await one(asyncio.wait_for(agentloom.sleep(60), 0.001))
    await one(agentloom.parallel(aeffect("c"), aeffect("d")))
    await one(reads(9))
    asyncio.ensure_future(one(agentloom.sleep(60)))  # noqa: RUF006 - left over, to be cleaned up
    await one(agentloom.note("n"))
    await one(aeffect("last"))
    return "fine"


@pytest.mark.parametrize("which", [everything_sync, everything_async], ids=["sync", "async"])
def test_a_store_that_fails_at_any_append_stops_the_run_there(which: Agent[..., Any]) -> None:
    for fail_at in range(1, 100):
        EFFECTS.clear()
        store = FailingStore(fail_at)
        try:
            trace = which.run(store=store)
        except StoreFailed:
            if fail_at == 1:
                continue  # not even a start
            run = store.resolve("last")
            data = store.read(run)
            assert check(data).consistent
            trace = Trace(data)
            assert trace.status == "unfinished"
            performed = [name for name in EFFECTS if name != "caught"]
            made = [call for call in trace.calls if call.kind in ("tool", "model")]
            assert len(performed) <= len(made), f"an effect without its request, at append {fail_at}"
            store.reopen(run).close()  # the lease was given up
        else:
            assert trace.output == "fine"
            assert trace.replay(agent=which).verdict == "identical"
            break
    else:
        pytest.fail("it never got through")
    assert fail_at > 20
