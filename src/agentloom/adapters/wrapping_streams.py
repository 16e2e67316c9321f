"""Methods that hand something out while they run: async and sync generators, async context managers."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Literal

from agentloom.api.recording_block import RecordedBlock
from agentloom.runtime.loop import InnerLoop

__all__ = [
    "Kind",
    "Within",
    "context_within",
    "iterator_within",
    "kind_of_method",
    "recorded_context",
    "recorded_iterator",
    "recorded_stream",
    "stream_within",
]

Within = Callable[[], AbstractContextManager[object]]
"""Makes a block that what stands in it is part of: entered anew for each step of a generator, whose reader is not."""

Kind = Literal["await", "stream", "enter", "iterate", "call"]


def kind_of_method(method: Callable[..., Any]) -> Kind:
    """How a method is used, by what it is: a coroutine function, an async generator, one that a context manager was
    made of, a generator; any other is only called."""
    plain = inspect.unwrap(method)
    if inspect.iscoroutinefunction(method) or inspect.iscoroutinefunction(plain):
        return "await"
    if inspect.isasyncgenfunction(method):
        return "stream"
    if inspect.isasyncgenfunction(plain):
        return "enter"
    return "iterate" if inspect.isgeneratorfunction(method) else "call"


async def recorded_stream(
    make: Callable[[], Any], record: Callable[[Coroutine[Any, Any, None]], Coroutine[Any, Any, None]]
) -> AsyncIterator[Any]:
    """The items of ``make()``, which is run on the deterministic loop, and goes on when the next one is asked for; what
    the reader does between them changes nothing. Leaving early cancels the run."""
    items: asyncio.Queue[tuple[Any] | None] = asyncio.Queue()
    reader, asked = asyncio.get_running_loop(), asyncio.Semaphore(0)
    loop: asyncio.AbstractEventLoop = reader

    async def main() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        made = make()
        try:
            async for item in made:
                items.put_nowait((item,))
                if isinstance(loop, InnerLoop) and loop is not reader:
                    await loop.hold()
                else:  # in a run of the reader's
                    await asked.acquire()
        finally:
            # Where the reader has left, the code in it cleans up as if it had been closed.
            if hasattr(made, "aclose"):
                await made.aclose()

    def more() -> None:
        if isinstance(loop, InnerLoop) and loop is not reader:
            if loop.more is not None:
                loop.more()
        else:
            asked.release()

    task = asyncio.ensure_future(record(main()))
    task.add_done_callback(lambda _: items.put_nowait(None))
    try:
        while (found := await items.get()) is not None:
            yield found[0]
            more()
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


def iterator_within(make: Callable[[], Any], within: Within) -> Generator[Any, Any, Any]:
    """``make()``, a generator: what it does is part of the block, what is done between two items is not."""
    with within():
        inner = make()
    step: Callable[..., Any] = inner.__next__
    given: tuple[Any, ...] = ()
    while True:
        try:
            with within():
                item = step(*given)
        except StopIteration as stop:
            return stop.value
        try:
            sent = yield item
        except GeneratorExit:
            with within():
                inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown into the generator: it is its own
            step, given = inner.throw, (error,)
        else:
            step, given = inner.send, (sent,)


async def stream_within(make: Callable[[], Any], within: Within) -> AsyncGenerator[Any, Any]:
    """As ``iterator_within``, for async generators."""
    with within():
        inner = make()
    step: Callable[..., Any] = inner.__anext__
    given: tuple[Any, ...] = ()
    while True:
        try:
            with within():
                item = await step(*given)
        except StopAsyncIteration:
            return
        try:
            sent = yield item
        except GeneratorExit:
            with within():
                await inner.aclose()
            raise
        except BaseException as error:  # noqa: BLE001 - thrown into the generator: it is its own
            step, given = inner.athrow, (error,)
        else:
            step, given = (inner.__anext__, ()) if sent is None else (inner.asend, (sent,))


class _ContextWithin(AbstractAsyncContextManager[Any]):
    """``make()``, an async context manager, and the code in its block, as part of another block."""

    def __init__(self, make: Callable[[], AbstractAsyncContextManager[Any]], within: Within) -> None:
        self._within = within()
        with within():
            self._inner = make()

    async def __aenter__(self) -> Any:
        self._within.__enter__()
        try:
            return await self._inner.__aenter__()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._inner.__aexit__(kind, error, trace)
        finally:
            self._leave()

    def _leave(self) -> None:
        with contextlib.suppress(
            ValueError
        ):  # left in another context than it was entered in: that one is gone
            self._within.__exit__(None, None, None)


def context_within(
    make: Callable[[], AbstractAsyncContextManager[Any]], within: Within
) -> AbstractAsyncContextManager[Any]:
    """``make()`` with all that is done in it, by the code in its block too, as part of a block."""
    return _ContextWithin(make, within)
