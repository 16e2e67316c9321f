"""A block in a generator: who reads it is no part of the run, and is told so where it would be."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route

import agentloom
from agentloom import Trace, record, replaying, sync, tool
from agentloom.errors import NotSupported
from agentloom.store import MemoryStore
from tests.api.recorded_programs import in_loop, look

STORE = MemoryStore()


@tool(effect="read")
def double(number: int) -> int:
    return number * 2


def last(store: MemoryStore = STORE) -> Trace:
    return Trace(store.read(store.resolve("last")))


def numbers(count: int) -> Iterator[int]:
    with record("numbers", store=STORE):
        for number in range(count):
            yield double(number)


def through(count: int) -> Iterator[int]:
    with record("through", store=STORE):
        yield from [1]
        yield from (double(number) for number in range(count))


def stacked(count: int) -> Iterator[int]:
    with ExitStack() as stack:
        stack.enter_context(record("stacked", store=STORE))
        for number in range(count):
            yield double(number)


async def later(count: int) -> AsyncIterator[int]:
    async with record("later", store=STORE):
        for number in range(count):
            yield await look(number)


async def later_stacked(count: int) -> AsyncIterator[int]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(record("later", store=STORE))
        for number in range(count):
            yield await look(number)


@pytest.mark.parametrize("generator", [numbers, through, stacked])
def test_reading_is_fine_and_replays(generator: Any) -> None:
    found = list(generator(3))
    assert len(last().calls) == 3
    with replaying(last()):
        assert list(generator(3)) == found
    left = generator(3)
    next(left)
    left.close()
    assert last().status == "cancelled"


@pytest.mark.parametrize("generator", [numbers, through, stacked])
def test_a_reader_that_makes_host_calls_between_two_items_is_refused(generator: Any) -> None:
    reading = generator(3)
    next(reading)
    name = generator.__name__
    for call in (lambda: double(1), sync.now, lambda: sync.step(len, "x")):
        with pytest.raises(NotSupported, match=rf"reads the generator {name}\(\).* between two of its items"):
            call()
    with pytest.raises(NotSupported, match="between two of its items"), record("other"):
        pass
    assert len(list(reading)) >= 2
    assert all(call.path == last().calls[0].path for call in last().calls)
    assert sync_after() == 2


def sync_after() -> int:
    """Nothing of the block is left in the context."""
    with record("after", store=STORE):
        return double(1)


@pytest.mark.parametrize("generator", [later, later_stacked])
@in_loop
async def test_so_is_one_of_an_async_generator(generator: Any) -> None:
    reading = generator(3)
    assert await anext(reading) == 0
    for work in (look, agentloom.sleep):
        with pytest.raises(NotSupported, match="between two of its items"):
            await work(1)
    with pytest.raises(NotSupported, match="between two of its items"):
        await record(look(1))
    with pytest.raises(NotSupported, match="between two of its items"):
        async for _ in await agentloom.model("openai/m", "Hi", stream=True):
            pass
    assert [item async for item in reading] == [2, 4]
    assert len(last().calls) == 3
    assert sync_after() == 2


@in_loop
async def test_generators_that_are_read_in_turn_do_not_cross() -> None:
    with pytest.raises(NotSupported, match=r'record\("numbers"\) .*the generator numbers\(\)'):
        list(zip(numbers(2), numbers(2), strict=True))
    first, second = later(2), later(2)
    await anext(first)
    with pytest.raises(NotSupported, match="between two of its items"):
        await anext(second)
    await first.aclose()  # type: ignore[attr-defined]
    await second.aclose()  # type: ignore[attr-defined]

    async def read(count: int) -> list[int]:
        return [item async for item in later(count)]

    assert list(await asyncio.gather(read(2), read(3))) == [[0, 2], [0, 2, 4]]


@in_loop
async def test_tasks_of_the_generator_work_on_while_it_is_read() -> None:
    async def events() -> AsyncIterator[int]:
        async with record("events", store=STORE):
            queue: asyncio.Queue[int | None] = asyncio.Queue()

            async def work() -> None:
                for number in range(4):
                    queue.put_nowait(await look(number))
                queue.put_nowait(None)

            task = asyncio.create_task(work())
            while (item := await queue.get()) is not None:
                yield item
            await task

    async def main() -> list[int]:
        found: list[int] = []
        async for item in events():
            await asyncio.sleep(0.01)  # the task goes on meanwhile
            found.append(item)
        return found

    assert await main() == [0, 2, 4, 6]
    assert len(last().calls) == 4
    with replaying(last()):
        assert await main() == [0, 2, 4, 6]


@in_loop
async def test_managers_are_meant_to_be_current_in_their_block() -> None:
    @contextmanager
    def traced() -> Iterator[None]:
        with record("managed", store=STORE):
            yield

    @asynccontextmanager
    async def traced_later() -> AsyncIterator[None]:
        async with record("managed", store=STORE):
            yield

    with traced():
        double(1)
    assert len(last().calls) == 1
    async with traced_later():
        await look(1)
        double(2)
    assert len(last().calls) == 2


@pytest.fixture
def recorded() -> Iterator[Any]:
    with record("fixture", store=STORE) as run:
        yield run


def test_fixtures_too(recorded: Any) -> None:
    assert double(4) == 8
    assert recorded.run_id is not None


@in_loop
async def test_the_body_of_a_streamed_answer_may_be_one() -> None:
    import httpx2

    async def streamed(_: Any) -> StreamingResponse:
        async def body() -> AsyncIterator[str]:
            async for item in later(3):
                yield f"{item} "

        return StreamingResponse(body())

    app = Starlette(routes=[Route("/", streamed)])
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://x") as client:
        assert (await client.get("/")).text == "0 2 4 "
    assert len(last().calls) == 3


def test_one_that_is_read_in_several_contexts_is_marked(caplog: pytest.LogCaptureFixture) -> None:
    reading = contextvars.copy_context().run(lambda: iter(numbers(2)))
    with caplog.at_level(logging.WARNING, "agentloom.recording"):
        while contextvars.copy_context().run(next, reading, None) is not None:
            pass
    trace = last()
    assert trace.status == "completed"
    assert [entry["why"] for entry in trace.journal.entries if entry["kind"] == "gap"] == ["stock-loop"]
    assert "left in another context than it was entered in" in caplog.text
    assert not trace.verify().complete


@in_loop
async def test_one_that_a_thread_reads_on_takes_its_context_along() -> None:
    handler = signal.getsignal(signal.SIGINT)
    reading = numbers(2)
    assert next(reading) == 0
    assert await asyncio.to_thread(lambda: list(reading)) == [2]
    assert len(last().calls) == 2
    assert last().verify().complete
    assert sync_after() == 2
    assert signal.getsignal(signal.SIGINT) is handler
