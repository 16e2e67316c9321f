"""``wrap``: run methods become runs; the rest of an object is what it was."""

from __future__ import annotations

import asyncio
import copy
import inspect
import operator
import pickle
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

import agentloom
from agentloom import DivergenceError, Trace, replaying, tool, trace_of, wrap
from agentloom.errors import NotSupported
from agentloom.store import MemoryStore
from tests.api.recorded_programs import in_loop, look


@tool
def act(number: int) -> int:
    return number + 1


class Bot:
    """Answers."""

    name = "bot"

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self.closed = 0

    def __repr__(self) -> str:
        return f"Bot({self.start})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bot) and other.start == self.start

    def __hash__(self) -> int:
        return hash(self.start)

    def __len__(self) -> int:
        return 3

    def __or__(self, other: Any) -> Any:
        return (self.start, other.start)

    def __call__(self, number: int) -> int:
        return number

    async def run(self, number: int, *, twice: bool = False) -> int:
        """Runs."""
        found = sum(await asyncio.gather(look(number), look(self.start)))
        return await look(found) if twice else found

    def run_sync(self, number: int) -> int:
        raise AssertionError("it is the async one that is run")

    def invoke(self, number: int) -> int:
        return asyncio.run(self.run(act(number)))

    async def astream(self, count: int) -> AsyncIterator[int]:
        try:
            for number in range(count):
                yield await look(number)
        finally:
            self.closed += 1

    def stream(self, count: int) -> Iterator[int]:
        for number in range(count):
            yield act(number)

    @asynccontextmanager
    async def run_stream(self, number: int) -> AsyncIterator[int]:
        yield await look(number)
        act(number)

    def run_streamed(self) -> str:
        return "streamed"

    async def fails(self, number: int) -> None:
        await look(number)
        raise KeyError(self)

    async def other(self) -> int:
        return await look(1)

    @classmethod
    async def arun(cls, bot: Bot) -> int:
        return await look(bot.start)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def last(store: MemoryStore) -> Trace:
    return Trace(store.read(store.resolve("last")))


def test_everything_but_the_run_methods_is_the_objects_own(store: MemoryStore) -> None:
    bot = Bot(2)
    made = wrap(bot, store=store)
    assert isinstance(made, Bot)
    assert made.__class__ is Bot
    assert (repr(made), str(made), len(made), made(4)) == ("Bot(2)", "Bot(2)", 3, 4)
    assert made == bot == made
    assert hash(made) == hash(bot)
    assert {made: 1}[bot] == 1
    assert operator.or_(made, wrap(Bot(5), store=store)) == (2, 5)
    assert made | bot == (2, 2)
    assert "astream" in dir(made)
    assert made.__doc__ == "Answers."
    made.start = 7
    assert bot.start == 7
    del made.closed
    assert not hasattr(bot, "closed")
    for copied in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert type(copied) is Bot
        assert copied.start == 7
    assert not store.runs()


def test_methods_stay_what_they_are(store: MemoryStore) -> None:
    made = wrap(Bot(), store=store)
    assert inspect.iscoroutinefunction(made.run)
    assert not inspect.iscoroutinefunction(made.invoke)
    assert made.run.__doc__ == "Runs."
    assert list(inspect.signature(made.run).parameters) == ["number", "twice"]
    with pytest.raises(AttributeError, match="nothing"):
        _ = made.nothing  # type: ignore[attr-defined]


@in_loop
async def test_an_async_method_is_a_run_on_the_deterministic_loop(store: MemoryStore) -> None:
    made = wrap(Bot(3), store=store, tags=lambda number, **_: {"n": str(number)})
    assert await made.run(4, twice=True) == 28
    trace = last(store)
    assert (trace.name, trace.tags, len(trace.calls)) == ("bot", {"n": "4"}, 3)
    assert not [entry for entry in trace.journal.entries if entry["kind"] == "gap"]
    for _ in range(5):
        with replaying(trace):
            assert await made.run(4, twice=True) == 28
    assert trace.replay(call=lambda: Bot(3).run(4, twice=True)).verdict == "identical"
    with replaying(trace), pytest.raises(DivergenceError):
        await made.run(5, twice=True)
    assert await asyncio.gather(*(made.run(number) for number in range(5))) == [6 + 2 * n for n in range(5)]
    assert len(store.runs()) == 6
    assert await made.other() == 2  # no run method
    assert len(store.runs()) == 6


def test_sync_methods(store: MemoryStore) -> None:
    made = wrap(Bot(3), store=store)
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    assert made.run_sync(4) == 14
    first = last(store)
    with replaying(first):
        assert made.run_sync(4) == 14
    assert made.invoke(4) == 16
    assert [call.name for call in last(store).calls] == ["act", "look", "look"]
    assert list(made.stream(3)) == [1, 2, 3]
    with replaying(last(store)):
        assert list(made.stream(3)) == [1, 2, 3]
    assert len(store.runs()) == 3
    asyncio.set_event_loop(None)
    loop.close()


def test_what_reads_a_stream_is_no_part_of_its_run(store: MemoryStore) -> None:
    made = wrap(Bot(), store=store)
    for number in made.stream(2):
        act(number)
    assert len(last(store).calls) == 2
    made.stream(2).close()  # type: ignore[attr-defined]
    left = made.stream(2)
    next(left)
    left.close()  # type: ignore[attr-defined]
    assert last(store).status == "cancelled"


@in_loop
async def test_async_streams(store: MemoryStore) -> None:
    bot = Bot()
    made = wrap(bot, store=store)
    assert inspect.isasyncgen(made.astream(1))
    assert [number async for number in made.astream(3)] == [0, 2, 4]
    trace = last(store)
    assert trace.status == "completed"
    with replaying(trace):
        assert [number async for number in made.astream(3)] == [0, 2, 4]
    with replaying(trace), pytest.raises(DivergenceError):
        assert [number async for number in made.astream(2)]
    async with aclosing(made.astream(100)) as stream:  # type: ignore[type-var]
        async for _ in stream:
            break
    assert last(store).status == "cancelled"
    assert bot.closed == 4
    async with made.run_stream(4) as value:
        assert value == 8
    assert [call.name for call in last(store).calls] == ["look", "act"]
    with replaying(last(store)):
        async with made.run_stream(4) as value:
            assert value == 8
    assert len(store.runs()) == 3


@in_loop
async def test_named_methods_errors_and_classes(store: MemoryStore) -> None:
    made = wrap(Bot(1), methods=("fails",), store=store, keep="failed")
    with pytest.raises(KeyError) as raised:
        await made.fails(1)
    assert raised.value.args[0].start == 1
    assert trace_of(raised.value).status == "failed"
    runner = wrap(Bot, store=store)
    assert isinstance(runner, type)
    assert await runner.arun(Bot(4)) == 8
    assert last(store).name == "bot"
    assert type(runner(3)) is Bot
    for wrong in (3, Bot(1).start, object()):
        with pytest.raises(NotSupported, match="none of the methods"):
            wrap(wrong)
    with pytest.raises(NotSupported, match=r"has no nothing\(\)"):
        wrap(Bot(), methods=("run", "nothing"))


@in_loop
async def test_wrapping_again_takes_the_new_options(store: MemoryStore) -> None:
    made = wrap(wrap(Bot(3), store=MemoryStore(), name="first"), store=store, name="second")
    assert await made.run(1) == 8
    assert [row.agent for row in store.runs()] == ["second"]


def test_a_method_whose_end_cannot_be_seen_says_so(store: MemoryStore) -> None:
    made = wrap(Bot(), store=store)
    with pytest.warns(UserWarning, match=r"bot\.run_streamed\(\) is not recorded"):
        assert made.run_streamed() == "streamed"


@in_loop
async def test_in_a_run_and_when_off_methods_are_the_objects_own(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = wrap(Bot(3), store=store)

    @agentloom.agent
    async def outer() -> list[int]:
        return [await made.run(1), *[number async for number in made.astream(2)]]

    trace = await outer.arun(store=MemoryStore())
    assert trace.output == [8, 0, 2]
    assert trace.replay().verdict == "identical"
    monkeypatch.setenv("AGENTLOOM", "off")
    assert await made.run(1) == 8
    assert [number async for number in made.astream(2)] == [0, 2]
    monkeypatch.delenv("AGENTLOOM")
    unsampled = wrap(Bot(3), store=store, rate=0)
    assert await unsampled.run(1) == 8
    assert [number async for number in unsampled.astream(2)] == [0, 2]
    assert not store.runs()
