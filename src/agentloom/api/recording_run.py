"""One coroutine as one run: recorded, replayed, or left alone; the handle that the caller awaits."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar, cast

from agentloom.api.recording_handle import Handle
from agentloom.api.recording_keep import Keep, held
from agentloom.api.recording_mode import left_alone_here, mode, trace_to_replay
from agentloom.api.recording_target import Target, plain
from agentloom.api.trace import RunNote
from agentloom.api.tracebacks import UserFrames
from agentloom.runtime.left_out import OFF, left_out
from agentloom.runtime.loading import refuse_while_loading
from agentloom.runtime.recorder import RunOptions, begin, record_async
from agentloom.runtime.scope import Scope, current, entered
from agentloom.store import Store

__all__ = ["Outcome", "RecordedRun"]

R = TypeVar("R")


_ANOTHER_LOOP = (
    "a recorded coroutine runs on a loop of its own and cannot await what belongs to the one around it (locks, queues,"
    " pools that were opened there): make these inside, or record the code where it is: with agentloom.record(name):"
)


class Outcome(Generic[R]):
    """What came out of the code itself: its own objects, whatever is kept of them."""

    __slots__ = ("_after", "_before", "error", "value")

    def __init__(self) -> None:
        self.value: R | None = None
        self.error: BaseException | None = None
        self._before = self._after = contextvars.Context()

    async def of(self, work: Awaitable[R]) -> object:
        """Await ``work`` and keep what comes of it; its value as plain data."""
        return plain(await self.kept(work))

    async def kept(self, work: Awaitable[R]) -> R:
        """Await ``work`` and keep what comes of it."""
        self._before = contextvars.copy_context()
        try:
            self.value = value = await work
        except BaseException as error:
            self.error = error
            raise
        finally:
            self._after = contextvars.copy_context()
        return value

    def carry(self) -> None:
        """Set in the running context what the code set in its own: it was awaited here."""
        before = self._before
        for variable, value in self._after.items():
            if before.get(variable, self) is not value and not variable.name.startswith("agentloom."):
                variable.set(value)
        self._before = self._after = contextvars.Context()

    def of_call(self, work: Callable[[], R]) -> object:
        """As ``of``, for a function."""
        try:
            self.value = value = work()
        except BaseException as error:
            self.error = error
            raise
        return plain(value)

    def again(self) -> R:
        """The value, or the exception raised."""
        if self.error is not None:
            raise self.error
        return cast(R, self.value)


class RecordedRun(Handle, Coroutine[Any, Any, R]):
    """A coroutine whose execution is a run. Await it, or give it to ``asyncio.run``, ``create_task``, ``gather``.

    ``trace`` is the record once it has ended, well or not; ``report`` that of a replay.
    """

    _to_end = "await it first"

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, R],
        target: Target,
        options: RunOptions,
        store: Store | None,
        keep: Keep = "all",
    ) -> None:
        super().__init__(target, options, store, keep)
        self._coroutine = coroutine
        self._made: Coroutine[Any, Any, R] | None = None

    # -- as a coroutine ----------------------------------------------------------------------------------------------

    def send(self, value: Any, /) -> Any:
        """As of any coroutine."""
        return self._main.send(value)

    def throw(self, *error: Any) -> Any:
        """As of any coroutine."""
        return self._main.throw(*error)

    def close(self) -> None:
        """As of any coroutine."""
        if self._made is not None:
            self._made.close()
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, R]:
        return self._main.__await__()

    @property
    def _main(self) -> Coroutine[Any, Any, R]:
        if self._made is None:
            self._made = self._performed()
        return self._made

    def __repr__(self) -> str:
        return f"<recorded {self._target.name}{f', run {self._run}' if self._run else ''}>"

    # -- what happens ------------------------------------------------------------------------------------------------

    async def _performed(self) -> R:
        with UserFrames():
            scope = current()
            try:
                if scope is not None:
                    return await self._inside(scope)
                if left_alone_here() is not None:
                    return await self._left_alone()
                refuse_while_loading(self._target.name)
                chosen = mode()
                if chosen == "off":
                    return await self._left_alone()
                self._target = self._target.hidden()
                return await (self._recorded() if chosen == "record" else self._replayed())
            except BaseException:
                self._coroutine.close()  # one that never began says so, which would hide the error
                raise

    async def _left_alone(self) -> R:
        with left_out(OFF) as which:
            self._left_out(which)
            return await self._coroutine

    async def _inside(self, scope: Scope) -> R:
        """In a run of somebody else: a part of it, with paths of its own."""
        self._target = self._target.hidden()
        session = scope.session
        if session.stock is not None:
            session.stock.refuse_reader(scope, f"record({self._target.name}(...))")
        self._part_of(session.run_id)
        if session.stock is not None and session.loop is None:
            outcome = Outcome[R]()
            work = outcome.kept(self._coroutine)
            try:
                return await session.stock.segment(scope.started(self._target.name), work)
            finally:
                outcome.carry()
        with entered(scope.started(self._target.name)):
            return await self._coroutine

    async def _recorded(self) -> R:
        outcome = Outcome[R]()
        target = self._target

        def main(*_: Any, **__: Any) -> Coroutine[Any, Any, object]:
            return outcome.of(self._coroutine)

        agent = target.agent(main, self._options.guard)
        store = self._where = held(self._store, self._keep)
        recording = begin(
            agent,
            target.args,
            target.kwargs,
            store=store,
            options=self._options,
            outer=asyncio.get_running_loop(),
            code=target.code(agent),
        )
        self._run = recording.run_id
        try:
            await record_async(recording, agent)
        except BaseException as error:
            self._ended = True
            if isinstance(error, RuntimeError) and "different" in str(error) and "loop" in str(error):
                error.add_note(_ANOTHER_LOOP)
            if self._settle(store):
                error.add_note(RunNote.of(recording.run_id, store, target.again()))
            raise
        finally:
            outcome.carry()
        self._ended = True
        self._settle(store)
        return cast(R, outcome.value)

    async def _replayed(self) -> R:
        from agentloom.api.recording_again import replay_in_place
        from agentloom.api.recording_cancelled import await_cancellation

        trace = self._replay_of(trace_to_replay(self._target.name, self._options.tags, self._store))
        outcome = Outcome[R]()

        async def main(*_: Any, **__: Any) -> object:
            return await outcome.of(self._coroutine)

        try:
            self.report = replay_in_place(trace, self._target, main)
            await await_cancellation(trace, self.report)
        finally:
            outcome.carry()
            self._ended = True
        return outcome.again()
