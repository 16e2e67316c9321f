"""What the code around a run sees of a replay: the trace, cancellations from outside, errors, another input."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom import DivergenceError, Trace, record, replaying, tool, trace_of, wrap
from agentloom.errors import TargetError
from agentloom.replay import stock
from agentloom.replay.replayer import replay
from agentloom.runtime.boundary import open_async
from agentloom.runtime.calls import CallSpec
from agentloom.store import MemoryStore
from tests.api import recorded_programs as programs
from tests.api.recorded_programs import in_loop, look


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def last(store: MemoryStore) -> Trace:
    return Trace(store.read(store.resolve("last")))


@tool(effect="read")
def double(number: int) -> int:
    return number * 2


# -- the trace ---------------------------------------------------------------------------------------------------------


@in_loop
async def test_the_trace_of_a_replay_is_the_one_that_was_replayed(store: MemoryStore) -> None:
    first = record(programs.research(2), store=store)
    await first
    with replaying(first.trace):
        again = record(programs.research(2))
        with pytest.raises(TargetError, match="has not ended"):
            _ = again.trace
        assert [again.recorded] == [False]
        await again
    assert again.recorded
    assert again.run_id == again.trace.run_id == first.run_id
    assert again.trace.replay().verdict == "identical"
    with record("block", store=store) as block:
        double(1)
    with replaying(block.trace), record("block") as again_block:
        with pytest.raises(TargetError, match="has not ended"):
            _ = again_block.trace
        double(1)
    assert again_block.trace.run_id == block.run_id
    with replaying(block.trace), suppress(DivergenceError), record("block") as other:
        double(2)
    assert other.trace.run_id == block.run_id
    assert len(store.runs()) == 2


# -- cancelled from outside --------------------------------------------------------------------------------------------


async def slow() -> int:
    await agentloom.sleep(30)
    return 1


async def waits() -> int:
    await asyncio.sleep(30)
    return 1


async def cleans_up() -> int:
    try:
        await agentloom.sleep(30)
    finally:
        await look(3)
    return 1


async def takes_it() -> str:
    try:
        await agentloom.sleep(30)
    except asyncio.CancelledError:
        return f"took it {await look(2)}"
    return "no"


class Bot:
    name = "bot"

    async def run(self) -> int:
        return await slow()

    async def astream(self) -> AsyncIterator[int]:
        for number in range(1000):
            yield await look(number)


@agentloom.agent
async def slow_agent() -> int:
    return await slow()


async def by_wait_for(store: Any, work: Any) -> Any:
    return await asyncio.wait_for(record(work(), store=store), 0.05)


async def by_timeout(store: Any, work: Any) -> Any:
    async with asyncio.timeout(0.05):
        return await record(work(), store=store)


async def by_race(store: Any, work: Any) -> Any:
    lost = asyncio.ensure_future(record(work(), store=store))
    won = asyncio.ensure_future(asyncio.sleep(0.02, "won"))
    done, _ = await asyncio.wait([lost, won], return_when=asyncio.FIRST_COMPLETED)
    assert done == {won}
    lost.cancel()
    return [won.result(), repr(await asyncio.gather(lost, return_exceptions=True))]


async def by_group(store: Any, work: Any) -> Any:
    async def fails() -> None:
        await asyncio.sleep(0.01)
        raise KeyError("gone")

    async with asyncio.TaskGroup() as group:
        group.create_task(record(work(), store=store))
        group.create_task(fails())


async def by_block(store: Any, work: Any) -> Any:
    async with asyncio.timeout(0.05), record("block", store=store):
        return await work()


async def in_block(store: Any, work: Any) -> Any:
    async with record("block", store=store) as run:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.05):
                await work()
        run.output = await look(1)
    return run.output


async def in_segment(store: Any, work: Any) -> Any:
    async with record("block", store=store) as run:
        with suppress(TimeoutError):
            run.output = await asyncio.wait_for(record(work()), 0.05)
        run.output = [run.output, await look(1)]
    return run.output


async def by_method(store: Any, work: Any) -> Any:
    return await asyncio.wait_for(wrap(Bot(), store=store).run(), 0.05)


async def by_agent(store: Any, work: Any) -> Any:
    return await asyncio.wait_for(slow_agent.arun(store=store), 0.05)


async def by_leaving(store: Any, work: Any) -> Any:
    found: list[int] = []
    async with aclosing(wrap(Bot(), store=store).astream()) as stream:  # type: ignore[type-var]
        async for item in stream:
            found.append(item)
            if len(found) == 3:
                return found
    return None


async def seen(work: Any) -> Any:
    """What came of it: the value, or the exception with all that it says."""
    try:
        return await work
    except BaseExceptionGroup as group:
        return [repr(error) for error in group.exceptions]
    except BaseException as error:  # noqa: BLE001 - which one is what is compared
        status = trace_of(error).status if isinstance(error, KeyError) else None
        return type(error), error.args, status


WORKS = [slow, waits, cleans_up, takes_it]
WAYS = [
    *((way, work) for way in (by_wait_for, by_timeout, by_race, by_group) for work in WORKS),
    *((way, work) for way in (by_block, in_block, in_segment) for work in WORKS),
    (by_method, slow), (by_agent, slow), (by_leaving, slow),
]  # fmt: skip


@pytest.mark.parametrize(("way", "work"), WAYS, ids=lambda one: one.__name__)
@in_loop
async def test_what_cancelled_the_run_does_so_again(way: Any, work: Any, store: MemoryStore) -> None:
    recorded = await seen(way(store, work))
    runs = len(store.runs())
    assert runs == 1
    for _ in range(2):
        with replaying(last(store)):
            assert await seen(way(store, work)) == recorded
    assert len(store.runs()) == runs


@in_loop
async def test_a_stream_that_was_cut_off_in_a_block_is_cut_off_again(store: MemoryStore) -> None:
    found: list[object] = []

    async def pieces(_: object) -> AsyncIterator[object]:
        yield "a"
        yield "b"
        await asyncio.sleep(30)

    async def read() -> None:
        async for piece in open_async(CallSpec("http", "x", {}, stream=True), pieces):
            found.append(piece)  # noqa: PERF401 - one after the other, as they come

    async def main() -> list[object]:
        found.clear()
        async with record("block", store=store):
            reading = asyncio.create_task(read())
            while len(found) < 2:  # noqa: ASYNC110 - what is polled for is the stream's own
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        return found.copy()

    assert await main() == ["a", "b"]
    with replaying(last(store)):
        assert await main() == ["a", "b"]


@in_loop
async def test_where_nothing_cancels_it_that_is_said(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stock, "MORE", 0.05)
    with pytest.raises(TimeoutError):
        await by_wait_for(store, slow)
    with replaying(last(store)):
        run = record(slow())
        with pytest.raises(DivergenceError, match="nothing has cancelled it here for"):
            await run
        with pytest.raises(DivergenceError, match="cancelled from outside after 0."):
            await record(slow())
    with pytest.raises(TimeoutError):
        await by_block(store, slow)
    with replaying(last(store)), pytest.raises(DivergenceError):
        async with record("block"):
            await slow()


@in_loop
async def test_a_run_that_cancels_itself_ends_at_once(store: MemoryStore) -> None:
    async def own() -> None:
        await look(1)
        raise asyncio.CancelledError("its own")

    with pytest.raises(asyncio.CancelledError, match="its own"):
        await record(own(), store=store)
    with replaying(last(store)), pytest.raises(asyncio.CancelledError, match="its own"):
        await record(own())


# -- another input -----------------------------------------------------------------------------------------------------


async def priced(order: int, *, note: str = "") -> int:
    return await look(order)


@agentloom.agent
async def pricing(order: int) -> int:
    return await look(order)


@agentloom.instrument
def sync_priced(order: int) -> int:
    return double(order)


def report_of(error: pytest.ExceptionInfo[DivergenceError]) -> dict[str, Any]:
    found: dict[str, Any] = error.value.report.to_json()
    return found


async def differing(way: str, order: int, store: Any) -> Any:
    if way == "coroutine":
        return await record(priced(order, note="x"), store=store)
    if way == "agent":
        return await pricing.arun(order, store=store)
    return sync_priced(order)


@pytest.mark.parametrize("way", ["coroutine", "agent", "function"])
@in_loop
async def test_another_input_is_said_first(
    way: str, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AGENTLOOM_STORE", str(tmp_path))
    await differing(way, 812, store)
    trace = Trace.open("last") if way == "function" else last(store)
    with replaying(trace), pytest.raises(DivergenceError) as raised:
        await differing(way, 813, store)
    said = report_of(raised)
    assert (said["class"], said["reason"]) == ("changed", "input")
    assert [(one["path"], one["recorded"], one["now"]) for one in said["differences"]["items"]] == [
        ("input.args[0]", 812, 813)
    ]
    lines = str(raised.value.report).splitlines()
    assert lines[0].startswith("DIVERGED  changed")
    assert lines[1].startswith("The input is not the recorded one")
    assert "not deterministic" not in str(raised.value.report)
    assert re.search(r"input.args\[0\] +812 -> 813", str(raised.value.report))
    with replaying(trace):
        await differing(way, 812, store)


@in_loop
async def test_an_input_that_makes_no_difference_is_noted(store: MemoryStore) -> None:
    await record(priced(1, note="a"), store=store)
    with replaying(last(store)):
        run = record(priced(1, note="b"))
        await run
    assert run.report is not None
    assert run.report.verdict == "identical"
    assert any("input.kwargs.note" in note and "no difference" in note for note in run.report.notes)


@in_loop
async def test_secrets_in_the_input_are_no_difference(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", uuid.uuid4().hex)
    await record(priced(1, note=f"key {os.environ['SERVICE_API_KEY']}"), store=store)
    assert os.environ["SERVICE_API_KEY"].encode() not in store.read(last(store).run_id)
    with replaying(last(store)):
        run = record(priced(1, note=f"key {os.environ['SERVICE_API_KEY']}"))
        await run
    assert run.report is not None
    assert run.report.notes == ()


TOKEN = uuid.uuid4().hex


def found_in(text: str) -> list[tuple[int, int, str]]:
    at = text.find(TOKEN)
    return [(at, at + len(TOKEN), "token")] if at >= 0 else []


@pytest.mark.parametrize("how", ["values", "find", "of the run"])
def test_nor_are_those_that_the_rules_of_an_agent_name(how: str, store: MemoryStore) -> None:
    named = {"values": [TOKEN]} if how != "find" else {"find": found_in}
    rules = agentloom.secrets(**named)

    @agentloom.agent(secrets=None if how == "of the run" else rules)
    def keeps(text: str) -> int:
        return double(len(text))

    more: Any = {"secrets": rules} if how == "of the run" else {}
    trace = keeps.run(f"key {TOKEN}", store=store, **more)
    assert TOKEN.encode() not in store.read(trace.run_id)
    with replaying(trace):
        again = keeps.run(f"key {TOKEN}", **more)
    assert again.run_id == trace.run_id
    given = {"args": [f"key {TOKEN}"], "kwargs": {}}
    with agentloom.use_secrets(rules):
        assert replay(trace.journal, keeps.function, given=given).notes == ()
    with replaying(trace), pytest.raises(DivergenceError) as raised:
        keeps.run(f"another key {TOKEN}", **more)
    assert TOKEN not in str(raised.value.report)
    assert TOKEN not in repr(report_of(raised))


@in_loop
async def test_another_secret_is_not_shown(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await record(priced(1, note="nothing"), store=store)
    other = uuid.uuid4().hex
    monkeypatch.setenv("SERVICE_API_KEY", other)
    with replaying(last(store)), pytest.raises(DivergenceError) as raised:
        await record(priced(2, note=f"key {other}"))
    assert other not in str(raised.value.report)
    assert other not in repr(report_of(raised))


@in_loop
async def test_what_is_not_in_the_trace_is_not_said_to_be_a_leak(store: MemoryStore) -> None:
    def block(order: int) -> None:
        with record("block", store=store):
            double(order)

    block(812)
    with replaying(last(store)), pytest.raises(DivergenceError) as raised:
        block(813)
    said = report_of(raised)
    assert (said["class"], said["reason"]) == ("changed", "request")
    assert "args.number" in str(raised.value.report)
    assert "not deterministic" not in str(raised.value.report)
    assert "what it was given is not in the trace" in str(raised.value.report)
