"""Run methods that hand something out while they run: async and sync generators, async context managers."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from agentloom.api.recording_block import RecordedBlock
from agentloom.api.recording_mode import mode

__all__ = ["recorded_context", "recorded_iterator", "recorded_stream"]


async def recorded_stream(
    make: Callable[[], Any], record: Callable[[Coroutine[Any, Any, None]], Coroutine[Any, Any, None]]
) -> AsyncIterator[Any]:
    """The items of ``make()``, which is run on the deterministic loop; what the reader does between them changes
    nothing. Leaving early cancels the run."""
    if mode() == "off":
        async for item in make():
            yield item
        return
    items: asyncio.Queue[tuple[Any] | None] = asyncio.Queue()

    async def main() -> None:
        async for item in make():
            items.put_nowait((item,))

    task = asyncio.ensure_future(record(main()))
    task.add_done_callback(lambda _: items.put_nowait(None))
    try:
        while (found := await items.get()) is not None:
            yield found[0]
        await task
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()  # the reader has left: nobody asks


def recorded_iterator(make: Callable[[], Any], block: RecordedBlock) -> Generator[Any]:
    """The items of ``make()``, made in a run whose code alone is in it: the reader between two items is not."""
    context = contextvars.copy_context()
    context.run(block.__enter__)
    try:
        inner = context.run(lambda: iter(make()))
        while True:
            try:
                item = context.run(next, inner)
            except StopIteration:
                break
            yield item
    except BaseException as error:
        context.run(block.__exit__, type(error), error, error.__traceback__)
        raise
    else:
        context.run(block.__exit__, None, None, None)


@asynccontextmanager
async def _entered(
    make: Callable[[], AbstractAsyncContextManager[Any]], block: RecordedBlock
) -> AsyncGenerator[Any]:
    async with block, make() as value:
        yield value


def recorded_context(
    make: Callable[[], AbstractAsyncContextManager[Any]], block: RecordedBlock
) -> AbstractAsyncContextManager[Any]:
    """``make()`` as a block that is a run, on the loop that it is entered on."""
    return _entered(make, block)
