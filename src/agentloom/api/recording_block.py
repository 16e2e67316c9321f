"""``with record("name"):`` one run of the code in the block, where it is: on a stock loop, or in sync code."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from agentloom.api.recording_generator import between_items
from agentloom.api.recording_handle import Handle
from agentloom.api.recording_keep import Keep, held
from agentloom.api.recording_mode import left_alone_here, mode, replaying, trace_to_replay
from agentloom.api.recording_target import Target, plain, target_of_block, where_it_stands
from agentloom.api.trace import RunNote, Trace
from agentloom.errors import Diverged, DivergenceError, NotSupported
from agentloom.runtime.agents import finish_raised, finish_returned
from agentloom.runtime.guard_effects import tell_unrecorded
from agentloom.runtime.interrupts import held_back
from agentloom.runtime.left_out import OFF, left_out
from agentloom.runtime.live import LiveSource
from agentloom.runtime.loading import refuse_while_loading
from agentloom.runtime.recorder import Recording, RunOptions, begin
from agentloom.runtime.scope import current, entered, here
from agentloom.runtime.session import Session
from agentloom.runtime.stock import LiveInPlace, StockCalls
from agentloom.store import Store

if TYPE_CHECKING:
    from agentloom.api.recording_again import ReplayedBlock
    from agentloom.replay.report import Report

__all__ = ["RecordedBlock", "replay_block"]

T = TypeVar("T")


class RecordedBlock(Handle):
    """A block of code as a run; ``with`` and ``async with`` do the same. ``output`` may be set in it.

    Host calls are made where they stand, on whatever loop or thread runs there. Used once.
    """

    _to_end = "leave the block first"

    def __init__(self, target: Target, options: RunOptions, store: Store | None, keep: Keep = "all") -> None:
        super().__init__(target, options, store, keep)
        self._stack = contextlib.ExitStack()
        self._session: Session | None = None
        self._recording: Recording | None = None
        self._again: ReplayedBlock | None = None
        self._entered = False
        self.output: Any = None
        self.on_cut_off: Callable[[], None] | None = None
        """Called by a replay where a call was cancelled when recorded: whoever knows why may do that again."""
        self.lacks: Sequence[str] = ()
        """Names of what the replay was not given, because the trace does not hold it."""
        self._notes: Sequence[object] = ()
        self._ended_by: BaseException | None = None
        self._failed = False

    def end_as(
        self, *, failed: bool = False, error: BaseException | None = None, notes: Sequence[object] = ()
    ) -> None:
        """How the run is to end where the block does not raise. ``failed``: it counts as failed for ``keep``;
        ``error``: what ended it; ``notes``: what else the trace is to hold."""
        self._failed, self._ended_by, self._notes = failed, error, notes

    @property
    def replayed_notes(self) -> list[object]:
        """The notes of the run that is replayed; none where it is recorded."""
        return [] if self._replays is None else self._replays.notes

    def __repr__(self) -> str:
        return f"<recorded block {self._target.name}{f', run {self._run}' if self._run else ''}>"

    # -- the block ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self._entered_by(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    def _entered_by(self, frame: FrameType) -> Self:
        if self._entered:
            raise NotSupported(
                f'record("{self._target.name}") is a block that was entered before',
                hint="call record() again",
            )
        self._entered = True
        scope = current()
        if scope is not None:
            self._target = self._target.hidden()
            if scope.session.stock is not None:
                scope.session.stock.refuse_reader(scope, f'record("{self._target.name}")')
            self._part_of(scope.session.run_id)
            self._enter(entered(scope.started(self._target.name)))
            return self
        found = left_alone_here()
        if found is not None:
            self._left_out(found)
            return self
        refuse_while_loading(self._target.name)
        chosen = mode()
        if chosen == "off":
            self._left_out(self._enter(left_out(OFF)))
            return self
        self._target = self._target.hidden()
        if chosen == "replay":
            self._begin_replay()
        else:
            self._begin_recording()
        if self._session is not None and self._session.stock is not None:
            self._session.stock.reader = between_items(frame)
        return self

    async def __aenter__(self) -> Self:
        return self._entered_by(sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session = self._session
        self._session = None
        try:
            if session is None:
                return
            if session.stock is not None:
                session.stock.reader = None
                scope = here()
                if (scope is None or scope.session is not session) and not isinstance(error, GeneratorExit):
                    session.stock.moved(session.root)
            if self._again is not None:
                self._end_replay(session, self._again, error)
            else:
                self._end_recording(session, cast(Recording, self._recording), error)
        finally:
            self._stack.close()

    def _enter(self, block: AbstractContextManager[T]) -> T:
        value = block.__enter__()

        def leave() -> None:
            # Left in another context than it was entered in (a fixture, a generator): that one is gone.
            with contextlib.suppress(ValueError):
                block.__exit__(None, None, None)

        self._stack.callback(leave)
        return value

    def _begin(self, session: Session) -> None:
        """In sync code the run belongs to this thread, and adopts those that it starts. A call that is all that a task
        does is placed where the block begins: none of the program's code is around it."""
        session.root.src = session.engine.places.caller()
        if _loop() is None:
            session.engine.take()
        else:
            cast(StockCalls, session.stock).shared = True
        self._enter(entered(session.root))

    # -- recording ---------------------------------------------------------------------------------------------------

    def _begin_recording(self) -> None:
        agent = self._target.agent(where_it_stands, self._options.guard)
        target = self._target
        store = self._where = held(self._store, self._keep)
        self._stack.enter_context(held_back())
        recording = self._recording = begin(
            agent,
            target.args,
            target.kwargs,
            store=store,
            options=self._options,
            outer=_loop(),
            code=self._target.code(agent),
        )
        session = self._session = recording.session
        self._run = recording.run_id
        session.stock = StockCalls(LiveInPlace(cast(LiveSource, session.source)))
        self._begin(session)

    def _end_recording(self, session: Session, recording: Recording, error: BaseException | None) -> None:
        try:
            for note in self._notes if session.engine.failure is None else ():
                with cast(StockCalls, session.stock).alone(session.root):
                    session.engine.mark("note", note)
            self._finish(session, error)
        finally:
            self._ended = True
            session.source.close()
            tell_unrecorded(session.engine.unrecorded)
            recording.close()
            if self._settle(recording.store, failed=self._failed) and error is not None:
                error.add_note(RunNote.of(recording.run_id, recording.store, self._target.again()))

    def _finish(self, session: Session, error: BaseException | None) -> None:
        if session.baton is not None:
            session.baton.drain()
        error = self._ended_by if error is None else error
        with cast(StockCalls, session.stock).alone(
            session.root
        ):  # threads that it leaves behind may look at the clock
            if error is None:
                finish_returned(session, plain(self.output))
            else:
                finish_raised(session, _ended_by(error))

    # -- replay ------------------------------------------------------------------------------------------------------

    def _begin_replay(self) -> None:
        from agentloom.api.recording_again import ReplayedBlock

        trace = self._replay_of(trace_to_replay(self._target.name, self._options.tags, self._store))
        self._again = ReplayedBlock(trace, self._target, self._options.secrets, self.on_cut_off, self.lacks)
        self._session = self._again.session
        self._begin(self._session)

    def _end_replay(self, session: Session, again: ReplayedBlock, error: BaseException | None) -> None:
        try:
            self.report = again.end(lambda: self._finish(session, error), self._notes)
        finally:
            self._ended = True
        if self.report is not None and self.report.verdict == "diverged":
            raise DivergenceError(self.report) from None


def replay_block(trace: Trace, call: Callable[[], object]) -> Report:
    """Replay the trace of a block with what ``call`` does, and awaits. ``NotSupported`` where it has to be awaited and
    a loop is running already."""
    given = cast("dict[str, Any] | None", trace.input)
    block = RecordedBlock(target_of_block(trace.name, (given or {}).get("kwargs")), RunOptions(), None)
    if inspect.iscoroutinefunction(call) and _loop() is not None:
        raise NotSupported(
            "the block is to be awaited, and an event loop is running here",
            hint="with agentloom.replaying(trace): await it there",
        )
    with replaying(trace):
        try:
            if inspect.iscoroutinefunction(call):
                asyncio.run(_in_block(block, call))
            else:
                with block:
                    block.output = call()
        except Exception:
            if block.report is None:
                raise  # else the report says what it was: a divergence, or the error that was recorded
    if block.report is None:
        raise Diverged("the replay stopped before the block ended")
    return block.report


async def _in_block(block: RecordedBlock, call: Callable[[], Awaitable[object]]) -> None:
    async with block:
        block.output = await call()


def _loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _ended_by(error: BaseException) -> BaseException:
    """What the run ended with: a generator that is closed in the block was cancelled."""
    return asyncio.CancelledError() if isinstance(error, GeneratorExit) else error
