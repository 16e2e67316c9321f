"""Streams whose host work gives all in one piece: they end with it, as a call that is no stream does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from agentloom import agent, record
from agentloom.runtime.boundary import open_async, open_inline
from agentloom.runtime.calls import Call, CallSpec, Whole
from agentloom.store import MemoryStore

VALUE = {"a": [1, 2], "b": None}
closed: list[str] = []


async def at_once(_: Call) -> AsyncIterator[object]:
    try:
        yield Whole(VALUE)
        closed.append("to its end")
    finally:
        closed.append("closed")


async def waits(_: Call) -> AsyncIterator[object]:
    await asyncio.sleep(0)
    yield Whole(VALUE)
    await asyncio.sleep(0)


async def after_a_chunk(_: Call) -> AsyncIterator[object]:
    yield "chunk"
    yield Whole(VALUE)


async def breaks(_: Call) -> AsyncIterator[object]:
    yield Whole(VALUE)
    raise OSError("cut")


async def empty(_: Call) -> AsyncIterator[object]:
    for never in list[object]():
        yield never


def reader(work: Callable[[Call], AsyncIterator[object]]) -> Callable[[], Any]:
    async def reads() -> Any:
        stream = open_async(CallSpec("http", "GET http://x/", {"n": 1}, stream=True), work)
        try:
            chunks = [chunk async for chunk in stream]
        except OSError as error:
            return str(error)
        value: Any = stream.value
        if isinstance(value, dict):
            value["mine"] = True  # a fresh copy: changing it changes nothing of the trace
        await stream.aclose()
        return [chunks, value]

    return reads


FULL: list[Any] = [[], {**VALUE, "mine": True}]


CASES: list[tuple[Any, Any, list[str]]] = [
    (at_once, FULL, ["request", "outcome"]),
    (waits, FULL, ["request", "outcome"]),
    (after_a_chunk, [["chunk"], FULL[1]], ["request", "chunks", "outcome"]),
    (breaks, "cut", ["request", "outcome"]),
    (empty, [[], None], ["request", "outcome"]),
]


@pytest.mark.parametrize(("work", "output", "kinds"), CASES)
@pytest.mark.parametrize("stock", [False, True])
def test_it_ends_with_its_value(work: Any, output: Any, kinds: list[str], stock: bool) -> None:
    closed.clear()
    store = MemoryStore()

    async def block() -> Any:
        with record("block", store=store) as run:
            found = await reader(work)()
        assert run.trace is not None
        return found, run.trace

    if stock:
        found, trace = asyncio.run(block())
        assert found == output
    else:
        trace = agent(reader(work)).run(store=store)
        assert trace.output == output
        assert trace.replay(check=False).verdict == "identical"
    assert [entry["kind"] for entry in trace.journal.entries if "call" in entry] == kinds
    assert closed == (["to its end", "closed"] if work is at_once else [])
    if output == FULL:
        assert trace.calls[0].result == VALUE


def blocking(_: Call) -> Iterator[object]:
    try:
        yield Whole(VALUE)
        closed.append("to its end")
    finally:
        closed.append("closed")


def blocking_breaks(_: Call) -> Iterator[object]:
    yield Whole(VALUE)
    raise OSError("cut")


def blocking_reader(work: Callable[[Call], Iterator[object]]) -> Callable[[], Any]:
    def reads() -> Any:
        stream = open_inline(CallSpec("http", "GET http://x/", {"n": 1}, stream=True), work)
        try:
            chunks = list(stream)
        except OSError as error:
            return str(error)
        value: Any = stream.value
        value["mine"] = True
        stream.close()
        return [chunks, value]

    return reads


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize(("work", "output"), [(blocking, FULL), (blocking_breaks, "cut")])
def test_a_stream_whose_reader_blocks_ends_with_its_value(work: Any, output: Any, stock: bool) -> None:
    closed.clear()
    store = MemoryStore()
    if stock:
        with record("block", store=store) as run:
            assert blocking_reader(work)() == output
        trace = run.trace
        assert trace is not None
    else:
        trace = agent(blocking_reader(work)).run(store=store)
        assert trace.output == output
        assert trace.replay(check=False).verdict == "identical"
    assert [entry["kind"] for entry in trace.journal.entries if "call" in entry] == ["request", "outcome"]
    assert closed == (["to its end", "closed"] if work is blocking else [])


def test_code_that_is_left_alone_gets_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTLOOM", "off")
    closed.clear()

    async def block() -> Any:
        with record("block", store=MemoryStore()):
            return await reader(at_once)()

    assert asyncio.run(block()) == FULL
    with record("block", store=MemoryStore()):
        assert blocking_reader(blocking)() == FULL
    assert closed == ["to its end", "closed"] * 2
