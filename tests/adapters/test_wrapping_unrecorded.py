"""What a wrapped object does that is no run of its own: told when it is recorded, refused when it is replayed."""

from __future__ import annotations

import asyncio
import inspect
import logging
import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
import openai
import pytest

from agentloom import DivergenceError, Trace, replaying, tool, wrap
from agentloom.errors import Diverged, NotSupported
from agentloom.runtime import unrecorded
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says
from tests.api.recorded_programs import in_loop, look


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def last(store: MemoryStore) -> Trace:
    return Trace(store.read(store.resolve("last")))


# -- pydantic-ai -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def agent_of(url: str) -> AsyncIterator[Any]:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=2) as client:
        yield Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)), name="bot")


async def by_iter(bot: Any) -> Any:
    nodes: list[str] = []
    async with bot.iter("Hi") as run:
        async for node in run:
            nodes.append(type(node).__name__)  # noqa: PERF401
        return nodes, run.result.output


async def by_events(bot: Any) -> Any:
    async with bot.run_stream_events("Hi") as events:
        found = [event async for event in events]
    return [type(event).__name__ for event in found], found[-1].result.output


async def by_events_left_early(bot: Any) -> Any:
    async with bot.run_stream_events("Hi") as events:
        return type(await anext(events)).__name__


async def by_run(bot: Any) -> Any:
    return (await bot.run("Hi")).output


async def by_stream(bot: Any) -> Any:
    async with bot.run_stream("Hi") as result:
        return [text async for text in result.stream_text(delta=True, debounce_by=None)]


@pytest.mark.parametrize("way", [by_iter, by_events, by_events_left_early, by_run, by_stream])
@in_loop
async def test_every_way_to_run_an_agent_of_pydantic_ai_is_recorded(way: Any, store: MemoryStore) -> None:
    with FakeProvider(lambda _: Says("one two")) as provider:
        url = provider.openai_url
        async with agent_of(url) as bot:
            bare = await way(bot)
            assert await way(wrap(bot, store=store)) == bare
        assert provider.count == 2
    assert [row.agent for row in store.runs()] == ["bot"]
    assert [call.kind for call in last(store).calls] == ["model"]
    with replaying(last(store)):
        async with agent_of(url) as bot:
            assert await way(wrap(bot)) == bare  # the provider is gone


def in_a_loop_of_its_own(work: Any) -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        return work()
    finally:
        asyncio.set_event_loop(None)
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@in_loop
async def test_what_goes_on_in_the_background_is_refused_on_a_replay(store: MemoryStore) -> None:
    with FakeProvider(lambda _: Says("one two")) as provider:
        async with agent_of(provider.openai_url) as agent:
            bot: Any = wrap(agent, store=store)
            await by_run(bot)

            def reads() -> Any:
                return list(bot.run_stream_sync("Hi").stream_text())

            with replaying(last(store)), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with pytest.raises((NotSupported, Diverged), match=r"bot\.run_stream_sync\(\)"):
                    await asyncio.to_thread(in_a_loop_of_its_own, reads)
        assert provider.count == 1


# -- any object --------------------------------------------------------------------------------------------------------

acted: list[int] = []


@tool
def act(number: int) -> int:
    acted.append(number)
    return number


class Bot:
    name = "bot"

    def __init__(self, url: str = "", extra: int = 0) -> None:
        self.url, self.extra = url, extra

    async def run(self, number: int) -> int:
        return await look(number + self.extra)

    def with_extra(self, extra: int) -> Bot:
        return Bot(self.url, extra)

    def _get(self) -> int:
        with httpx2.Client() as client:
            return client.get(f"{self.url}/models").status_code

    async def _aget(self) -> int:
        async with httpx2.AsyncClient() as client:
            return (await client.get(f"{self.url}/models")).status_code

    def get(self, *, twice: bool = False) -> int:
        """Gets."""
        return self._get()

    async def aget(self) -> int:
        return await self._aget()

    def gives(self) -> Any:
        return self._aget()

    def items(self) -> Iterator[int]:
        yield 1
        yield self._get()

    async def aitems(self) -> AsyncIterator[int]:
        yield 1
        yield await self._aget()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Any]:
        yield self._aget

    def tools(self) -> int:
        return act(3)

    def background(self) -> asyncio.Task[int]:
        return asyncio.create_task(self._aget())

    async def __call__(self, *, twice: bool = False) -> int:
        return await self._aget() + twice

    async def __aenter__(self) -> int:
        return await self._aget()

    async def __aexit__(self, *_: object) -> None:
        return None

    def iter(self) -> list[int]:
        """Not what a framework means by it."""
        return [1]

    def connects(self) -> AbstractAsyncContextManager[int]:
        return self._connected()

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[int]:
        yield await look(2)


async def from_context(bot: Any) -> Any:
    async with bot.opened() as get:
        return await get()


async def from_itself(bot: Any) -> Any:
    async with bot as found:
        return found


async def from_items(bot: Any) -> Any:
    return [item async for item in bot.aitems()]


async def from_sync(work: Any) -> Any:
    return await asyncio.to_thread(work)


WAYS: dict[str, Any] = {
    "get": lambda bot: from_sync(bot.get),
    "aget": lambda bot: bot.aget(),
    "gives": lambda bot: bot.gives(),
    "items": lambda bot: from_sync(lambda: [*bot.items()]),
    "aitems": from_items,
    "opened": from_context,
    "tools": lambda bot: from_sync(bot.tools),
    "background": lambda bot: bot.background(),
    "__call__": lambda bot: bot(twice=True),
    "__aenter__": from_itself,
}


@pytest.mark.parametrize("method", WAYS)
@in_loop
async def test_a_method_that_is_no_run_is_named_and_on_a_replay_refused(
    method: str, store: MemoryStore, caplog: pytest.LogCaptureFixture
) -> None:
    unrecorded._told.clear()
    acted.clear()
    with (
        FakeProvider(lambda _: Says("x")) as provider,
        caplog.at_level(logging.WARNING, "agentloom.recording"),
    ):
        bot: Any = wrap(Bot(provider.url), store=store)
        await bot.run(1)
        bare = await WAYS[method](Bot(provider.url))
        told = caplog.records.copy()
        for _ in range(2):
            assert await WAYS[method](bot) == bare
        (said,) = [one.getMessage() for one in caplog.records if one not in told]
        assert f"bot.{method}() is not recorded" in said
        assert ("tool act" if method == "tools" else "httpx2") in said
        before, done = provider.count, len(acted)
        with replaying(last(store)):
            with pytest.raises((NotSupported, Diverged), match=rf"refused: it was made by bot\.{method}\(\)"):
                await WAYS[method](bot)
            assert await bot.run(1) == 2
        assert (provider.count, len(acted)) == (before, done)
    assert len(store.runs()) == 1


def test_such_methods_stay_what_they_are(store: MemoryStore) -> None:
    bot = Bot()
    made = wrap(bot, store=store)
    assert inspect.ismethod(made.get)
    assert made.get.__self__ is bot
    assert made.get.__doc__ == "Gets."
    assert inspect.signature(made.get) == inspect.signature(bot.get)
    assert inspect.iscoroutinefunction(made.aget)
    assert inspect.isasyncgen(made.aitems())
    assert inspect.isgenerator(made.items())
    assert made.iter() == [1]


@in_loop
async def test_another_object_of_the_class_is_wrapped_as_it_was(store: MemoryStore) -> None:
    made = wrap(Bot(), store=store).with_extra(5)
    assert type(made) is not Bot
    assert isinstance(made, Bot)
    assert await made.run(1) == 12
    assert len(store.runs()) == 1
    with replaying(last(store)), pytest.raises(DivergenceError):
        await made.with_extra(6).run(1)


@in_loop
async def test_a_method_that_says_it_gives_a_context_is_one(store: MemoryStore) -> None:
    made = wrap(Bot(), store=store, methods=("connects",))
    async with made.connects() as found:
        assert found == 4
    assert len(last(store).calls) == 1
    with replaying(last(store)):
        async with made.connects() as found:
            assert found == 4


@in_loop
async def test_a_call_of_the_object_itself_may_be_the_run(store: MemoryStore) -> None:
    class Answers:
        async def __call__(self, number: int, *, more: int = 0) -> int:
            return await look(number + more)

    made = wrap(Answers(), methods=("__call__",), store=store)
    assert await made(1, more=2) == 6
    assert len(last(store).calls) == 1
    with replaying(last(store)):
        assert await made(1, more=2) == 6
