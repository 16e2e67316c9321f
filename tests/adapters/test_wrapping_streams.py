"""The async stream of a wrapped object does what its reader asks for, and no more; a replay gives the same items."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import pytest

import agentloom
from agentloom import Trace, replaying, tool, wrap
from agentloom.store import MemoryStore
from tests.api.recorded_programs import in_loop

DONE: list[int] = []


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@tool
async def pay(number: int) -> int:
    DONE.append(number)
    return number


class Shop:
    async def astream(self, *, endless: bool = False, beside: bool = False) -> AsyncIterator[int]:
        other = asyncio.create_task(pay(100)) if beside else None
        number = 0
        try:
            while endless or number < 4:
                yield number if endless else await pay(number)
                number += 1
                if beside:
                    await asyncio.sleep(0.001)
        finally:
            if other is not None:
                DONE.append(await other)


def last(store: MemoryStore) -> Trace:
    return Trace(store.read(store.resolve("last")))


Reader = Callable[[AsyncIterator[int]], Coroutine[Any, Any, list[int]]]


async def all_of(stream: AsyncIterator[int]) -> list[int]:
    return [number async for number in stream]


async def two(stream: AsyncIterator[int]) -> list[int]:
    async with aclosing(stream) as items:  # type: ignore[type-var]
        return [await anext(items), await anext(items)]


async def one_and_a_turn(stream: AsyncIterator[int]) -> list[int]:
    async with aclosing(stream) as items:  # type: ignore[type-var]
        first = await anext(items)
        for _ in range(50):
            await asyncio.sleep(0)
        return [first]


async def until_it_is_cancelled(stream: AsyncIterator[int]) -> list[int]:
    got: list[int] = []
    try:
        async with asyncio.timeout(0.3), aclosing(stream) as items:  # type: ignore[type-var]
            async for number in items:
                got.append(number)
                if number == 1:
                    await asyncio.Event().wait()
    except TimeoutError:
        got.append(-1)
    return got


READERS: list[Reader] = [all_of, two, one_and_a_turn, until_it_is_cancelled]


@pytest.mark.parametrize(
    "options", [{}, {"endless": True}, {"beside": True}], ids=["calls", "endless", "beside"]
)
@pytest.mark.parametrize("reader", READERS)
@in_loop
async def test_no_more_is_done_than_is_read(store: MemoryStore, reader: Reader, options: Any) -> None:
    if reader is all_of and "endless" in options:
        pytest.skip("has no end")
    DONE.clear()
    bare = await reader(Shop().astream(**options))
    done = sorted(DONE)
    made = wrap(Shop(), store=store)
    DONE.clear()
    assert await reader(made.astream(**options)) == bare
    assert sorted(DONE) == done
    trace = last(store)
    assert trace.status == ("completed" if reader is all_of else "cancelled")
    assert trace.verify().complete
    DONE.clear()
    with replaying(trace):
        assert await reader(made.astream(**options)) == bare
    assert [number for number in DONE if number != 100] == []


@in_loop
async def test_the_readers_turns_are_between_those_of_the_stream(store: MemoryStore) -> None:
    order: list[str] = []

    class Tells:
        async def astream(self) -> AsyncIterator[int]:
            for number in range(3):
                order.append(f"makes {number}")
                yield number

    async for number in wrap(Tells(), store=store).astream():
        order.append(f"reads {number}")
        await asyncio.sleep(0)
    assert order == ["makes 0", "reads 0", "makes 1", "reads 1", "makes 2", "reads 2"]


@in_loop
async def test_a_stream_with_a_call_for_each_item_takes_no_entry_more(store: MemoryStore) -> None:
    await all_of(wrap(Shop(), store=store).astream())
    kinds = [entry["kind"] for entry in last(store).journal.entries]
    assert [kind for kind in kinds if kind not in ("note", "tick")] == [
        "start",
        *["request", "outcome"] * 4,
        "end",
    ]


@in_loop
async def test_a_stream_that_is_read_in_a_run_keeps_step_there(store: MemoryStore) -> None:
    made = wrap(Shop(), store=store)

    @agentloom.agent
    async def outer() -> list[int]:
        return await two(made.astream())

    DONE.clear()
    trace = await outer.arun(store=MemoryStore())
    assert trace.output == [0, 1]
    assert DONE == [0, 1]
    assert trace.replay().verdict == "identical"
    assert not store.runs()


@in_loop
async def test_a_stream_that_fails_gives_its_error_after_its_items(store: MemoryStore) -> None:
    class Fails:
        async def astream(self) -> AsyncIterator[int]:
            yield await pay(1)
            raise KeyError("gone")

    stream = wrap(Fails(), store=store).astream()
    assert await anext(stream) == 1
    with pytest.raises(KeyError, match="gone"):
        await anext(stream)
    assert last(store).status == "failed"
