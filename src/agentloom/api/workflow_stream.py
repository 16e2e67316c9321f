"""The events of a run while it goes on, for async and for sync readers."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from agentloom.api.agent import Agent, loop_is_running
from agentloom.api.trace import RunNote, Trace, run_of
from agentloom.api.tracebacks import UserFrames
from agentloom.api.workflow_events import Event, Finished, watched
from agentloom.errors import NotSupported

__all__ = ["WorkflowStream", "in_steps"]


class WorkflowStream:
    """An async iterator over what a run does. The run starts with the first event that is asked for.

    What the reader does between events changes nothing in the record. Leaving early cancels the run, and that is
    recorded: at the end of an ``async with`` block, by ``aclose``, or when nobody holds the stream any more. ``trace``
    is the record once the run has ended, well or not.
    """

    def __init__(self, agent: Agent[..., Any], given: object, options: Mapping[str, Any]) -> None:
        self._agent = agent
        self._given = given
        self._options = options
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._run: asyncio.Task[Trace] | None = None
        self._ended_badly: list[RunNote] = []
        self._over = False

    @property
    def trace(self) -> Trace | None:
        """The record of the run, also of one that failed or was left; None before its end, and where nothing of it
        could be recorded."""
        run = self._run
        if run is None or not run.done():
            return None
        for note in self._ended_badly:
            return Trace.of_run(note.run, note.store, note.agent)
        return None if run.cancelled() or run.exception() is not None else run.result()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event | Finished:
        if self._over:
            raise StopAsyncIteration
        if self._run is None:
            self._start()
        event = await self._events.get()
        if event is not None:
            return event
        run, told = self._run, self._over
        self._over = True
        self._events.put_nowait(None)  # for another reader that waits here
        if run is None or told:
            raise StopAsyncIteration
        with UserFrames():
            return Finished(await run)

    async def aclose(self) -> None:
        """Cancel the run where it still goes on, and wait until its end is recorded."""
        self._over = True
        run = self._run
        if run is not None and not run.done():
            run.cancel()
            await asyncio.wait([run])

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _start(self) -> None:
        events = self._events

        def over(run: asyncio.Task[Trace]) -> None:
            if not run.cancelled():
                run.exception()  # a reader that has gone does not ask for it
            events.put_nowait(None)

        with watched(events.put_nowait):
            self._run = asyncio.get_running_loop().create_task(
                _recorded(self._agent, self._given, self._options, self._ended_badly)
            )
        self._run.add_done_callback(over)

    def __del__(self) -> None:
        """Nobody can read on: the run is left, as by ``aclose``."""
        run = self._run
        if run is not None and not run.done() and not run.get_loop().is_closed():
            run.get_loop().call_soon_threadsafe(run.cancel)


async def _recorded(
    agent: Agent[..., Any], given: object, options: Mapping[str, Any], ended_badly: list[RunNote]
) -> Trace:
    """Run it; ``ended_badly`` gets the note of a run that raised. It does not hold the stream, whose end cancels it."""
    try:
        return await agent.arun(given, **options)
    except BaseException as error:
        note = run_of(error)
        ended_badly.extend([] if note is None else [note])
        raise


def in_steps(agent: Agent[..., Any], given: object, options: Mapping[str, Any]) -> Iterator[Event | Finished]:
    """The events one by one, from an event loop that runs while the next one is asked for. ``NotSupported`` where one
    is running already."""
    if loop_is_running():
        raise NotSupported(
            f"{agent.function.name}.stream_sync() was called where an event loop is running",
            hint=f"async with {agent.function.name}.stream(...) as events there",
        )
    return _in_steps(agent, given, options)


def _in_steps(
    agent: Agent[..., Any], given: object, options: Mapping[str, Any]
) -> Iterator[Event | Finished]:
    before = signal.getsignal(signal.SIGINT)
    runner = asyncio.Runner()
    try:
        with runner:
            stream = WorkflowStream(agent, given, options)
            try:
                while (event := _next_of(runner, stream)) is not None:
                    yield event
            finally:
                runner.run(stream.aclose())
    finally:
        # The run takes Ctrl-C over in one `runner.run` and gives it back in another: to the handler of the first.
        last = getattr(signal.getsignal(signal.SIGINT), "func", None)
        if getattr(last, "__self__", None) is runner and before is not None:
            signal.signal(signal.SIGINT, before)


def _next_of(runner: asyncio.Runner, stream: WorkflowStream) -> Event | Finished | None:
    with UserFrames():
        return runner.run(_next(stream))


async def _next(stream: WorkflowStream) -> Event | Finished | None:
    return await anext(stream, None)
