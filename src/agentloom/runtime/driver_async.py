"""The async driver: pumps the run's inner loop to quiescence, then delivers exactly one event, then pumps again."""

from __future__ import annotations

import asyncio
import contextvars
import types
from asyncio import Future
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any, TypeVar

from agentloom.errors import ControlFlow, StoreFailed
from agentloom.runtime.calls import Arrival
from agentloom.runtime.engine import Delivery
from agentloom.runtime.left_behind import tell_tasks
from agentloom.runtime.loop import InnerLoop, refused_threadsafe
from agentloom.runtime.loop_bridge import Bridge
from agentloom.runtime.loop_hooks import hold_hooks
from agentloom.runtime.scope import Scope, enter_task, entered
from agentloom.runtime.session import Session
from agentloom.runtime.source import OutcomeSource
from agentloom.runtime.strands import Strand, holder
from agentloom.runtime.thread_pools import in_thread

__all__ = ["AsyncDriver", "one_turn"]

T = TypeVar("T")

_CLEAN_UP_ROUNDS = 1000
"""How often tasks that answer cancellation by waiting again are cancelled before the run gives up on them."""


class AsyncDriver:
    """Drives one run's inner loop. The same code records and replays; only the session's source differs."""

    def __init__(
        self, session: Session, outer: asyncio.AbstractEventLoop | None = None, scope: Scope | None = None
    ) -> None:
        """``outer`` is a real loop that nobody else runs, for a program that runs the inner loop itself (a script
        with ``asyncio.run``); it is run whenever the inner loop has to wait. ``scope`` is where the main task stands
        (default: the root of the run)."""
        self.session = session
        self._scope = session.root if scope is None else scope
        self.loop = InnerLoop(start_ns=session.engine.vt, on_new_task=enter_task)
        self.loop.drive = self._drive_nested
        self.loop.more = self._more
        if session.guard.virtual:
            self.loop.look = partial(session.guard.look, session)
        self._outer = outer
        session.loop = self.loop
        if session.adopts:
            self.loop.in_thread = partial(in_thread, session, self.loop)
            self.loop.inject = self._from_strand
        if session.passes:
            self.loop.bridge = Bridge(self)
        self._waker: Callable[[], None] | None = None
        self._main: asyncio.Task[Any] | None = None
        self._cancel_requested = False
        self._cancelled_late = False
        self._turned = False
        self._asked = False
        self._idle = True
        self._left_behind: list[str] = []

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled from outside when the agent had already ended."""
        return self._cancelled_late or self._cancel_requested

    # -- entry points --------------------------------------------------------------------------------------------

    async def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run the agent while the caller's loop performs host work. Cancelling the caller cancels the agent."""
        wake = asyncio.Event()
        self._listen(wake, asyncio.get_running_loop())
        value = await self._alive(main, wake)
        tell_tasks(self.session, self._left_behind)
        return value

    def run_blocking(self, main: Coroutine[Any, Any, T]) -> T:
        """Run the agent from a source that never has to wait (a replay)."""
        try:
            task = self._spawn_main(main)
            try:
                self._must(task.done)
            except (SystemExit, KeyboardInterrupt):
                self._fetch(task)
                self._settle_blocking()
                raise
            self._settle_blocking()
            return task.result()
        finally:
            self._close()

    async def _alive(self, main: Coroutine[Any, Any, T], wake: asyncio.Event) -> T:
        try:
            task = self._spawn_main(main)
            try:
                await self._until(task.done, wake)
            except (
                SystemExit,
                KeyboardInterrupt,
            ):  # come out of a loop at once; the other tasks still clean up
                self._fetch(task)
                await self._settle(wake)
                raise
            if not task.cancelled():
                self._left_behind = [_name_of(one) for one in self._left_over()]
            await self._settle(wake)
            return task.result()
        finally:
            self._close()

    @staticmethod
    def _fetch(task: asyncio.Task[Any]) -> None:
        """Look at the exception that is under way, or the task would say that nobody did."""
        if task.done() and not task.cancelled():
            task.exception()

    # -- progress ------------------------------------------------------------------------------------------------

    def advance(self, done: Callable[[], bool]) -> bool:
        """Go on until ``done`` (True) or until nothing more can be delivered now (False)."""
        session = self.session
        baton = session.baton
        before = None if baton is None else baton.enter()
        release = hold_hooks(self.loop)
        try:
            return self._advance(done)
        finally:
            release()
            made = session.baton
            if made is not None:
                made.leave(before if made is baton else made.main.before)

    def _advance(self, done: Callable[[], bool]) -> bool:
        session = self.session
        source = session.source
        engine = session.engine
        loop = self.loop
        engine.take()
        session.driver = self
        while True:
            quiescent = loop.pump()
            baton = session.baton
            if baton is not None and baton.lend():
                continue
            engine.stop()
            if done():
                return True
            if loop.stopping:
                raise RuntimeError("Event loop stopped before Future completed.")  # as on the stock loop
            if loop.held is not None and not self._cancel_requested:
                if self._asked or source.goes_on():
                    self._let_go(loop.held)
                    continue
                if self._waker is not None:
                    return False  # live; on replay the recorded cancellation is next
            if self._cancel_requested:
                self._cancel_requested = False
                arrival: Arrival | None = Arrival("cancel", vt=engine.vt)
            else:
                try:
                    arrival = source.poll(loop.next_timer() if baton is None else self._next_timer())
                except (ControlFlow, StoreFailed) as failure:
                    engine.fail(failure)
            if arrival is None:
                if quiescent and (baton is None or not baton.outside):
                    self._come_to_rest(source)
                    return False
                # The program polls (``while not done: await sleep(0)``). Nothing has happened, and it is let go on;
                # that is an event too, or a replay would not know how often. The outer loop has its turn first, or
                # what the program polls for could never arrive.
                self._deliver(engine.deliver(Arrival("turn", vt=engine.vt)), quiescent=quiescent)
                self._turned = True
                return False
            self._idle = False
            delivery = engine.deliver(arrival)
            if baton is None:
                self.hand_over(delivery)
            else:
                self._deliver(delivery, quiescent=quiescent)
            if source.turn_due(arrival.vt):
                self._turned = True
                return False

    def _come_to_rest(self, source: OutcomeSource) -> None:
        """Nothing goes on here until something arrives: the run may end the work of this process."""
        try:
            source.rests(self._next_timer())
        except (ControlFlow, StoreFailed) as left:
            self.session.engine.fail(left)

    def _deliver(self, delivery: Delivery, *, quiescent: bool) -> None:
        """Give an event to whom it is for: the loop, or a thread of the run."""
        baton = self.session.baton
        if baton is not None:
            if delivery.kind == "timer":
                first, strands = self.loop.next_timer(), baton.next_timer()
                if strands is not None and (first is None or strands <= first):
                    baton.fire(strands)
                if first is None or (strands is not None and strands < first):
                    self.loop.advance(self.session.engine.vt)
                    return
            elif delivery.kind == "turn" and quiescent:
                baton.from_outside()
            elif delivery.call is not None and isinstance(delivery.call.sink, Strand):
                self.loop.advance(self.session.engine.vt)
                baton.wake(delivery.call.sink, delivery)
                return
        self.hand_over(delivery)

    def hand_over(self, delivery: Delivery) -> None:
        """Give an event to the loop."""
        call, vt = delivery.call, self.session.engine.vt
        if call is None:
            self._happened(delivery.kind, vt)
            return
        loop = self.loop
        if vt > loop.vt:
            loop.advance(vt)
        waiting: Any = call.sink
        if not isinstance(waiting, Future) or waiting.done():
            return
        # The future will hold the delivery, which holds the call: no cycle for the collector.
        call.sink = None
        if delivery.error is not None and isinstance(delivery.error, StopIteration):
            # A coroutine refuses StopIteration; asyncio itself turns it into RuntimeError at the same place.
            delivery.error = RuntimeError("a host call raised StopIteration")
        waiting.set_result(delivery)  # pyright: ignore[reportUnknownMemberType]

    def _happened(self, kind: str, vt: int) -> None:
        """Do what an event that is of no call does to the loop."""
        if kind == "timer":
            self.loop.fire_timer(vt)
            return
        self.loop.advance(vt)
        if kind != "cancel":
            return
        if self._main is not None and not self._main.done():
            self._main.cancel()
        else:
            self._cancelled_late = True
            self._begin_settling()

    async def _until(self, done: Callable[[], bool], wake: asyncio.Event) -> None:
        while not self.advance(done):
            try:
                await self._wait(wake)
            except asyncio.CancelledError:
                self._cancel_requested = True

    async def _wait(self, wake: asyncio.Event) -> None:
        """Wait for an arrival or for the run's first timer, whichever is first, in real time.

        After a turn of a program that polls, only let the outer loop run once.
        """
        turned, self._turned = self._turned, False
        await one_turn()
        if turned:
            return
        if wake.is_set():
            wake.clear()
            return
        timer = self._next_timer() if self.loop.held is None else None
        handle: asyncio.TimerHandle | None = None
        if timer is not None:
            delay = max(0, timer - self.session.source.now()) / 1e9
            handle = asyncio.get_running_loop().call_later(delay, wake.set)
        try:
            await wake.wait()
        finally:
            if handle is not None:
                handle.cancel()
            wake.clear()

    # -- threads of the run ----------------------------------------------------------------------------------------

    def _listen(self, wake: asyncio.Event, outer: asyncio.AbstractEventLoop) -> None:
        """Be told of arrivals; of those in threads of the run by the baton."""
        if self.session.baton is None:
            self.session.source.on_arrival = wake.set

        def waker() -> None:
            outer.call_soon_threadsafe(wake.set)

        self._waker = waker

    def wake_up(self) -> None:
        """Something happened in another thread: the loop is to look what."""
        if self._waker is not None:
            self._waker()

    def _let_go(self, held: asyncio.Future[None]) -> None:
        """Go on behind what was handed out. Where nothing was delivered since the last time that is an event, or a
        replay would not know behind which one a cancellation came."""
        source = self.session.source
        if self._idle:
            turn = Arrival("turn", vt=source.now()) if self._asked else source.turn(None)
            if turn is not None:
                self.hand_over(self.session.engine.deliver(turn))
        self._asked, self._idle = False, True
        self.loop.held = None
        held.set_result(None)

    def _more(self) -> None:
        """Who reads from the run asks for more."""
        self._asked = True
        self.wake_up()

    def _next_timer(self) -> int | None:
        first = self.loop.next_timer()
        baton = self.session.baton
        if baton is None:
            return first
        other = baton.next_timer()
        return first if other is None or (first is not None and first < other) else other

    def _from_strand(
        self, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context
    ) -> asyncio.Handle:
        """``call_soon_threadsafe`` in another thread, which must be one of the run."""
        strand = holder()
        if strand is None or strand.baton is not self.session.baton:
            raise refused_threadsafe()
        handle = self.loop.call_soon(callback, *args, context=context)
        strand.baton.loop_ready()
        return handle

    # -- calls from inside ---------------------------------------------------------------------------------------

    def _spawn_main(self, main: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        context = contextvars.copy_context()
        scope = self._scope

        def create() -> asyncio.Task[T]:
            with entered(scope):
                self.loop.on_new_task = None
                try:
                    return self.loop.create_task(main, context=contextvars.copy_context())
                finally:
                    self.loop.on_new_task = enter_task

        self._main = task = context.run(create)
        return task

    def _drive_nested(self, loop: InnerLoop, done: Callable[[], bool]) -> None:
        """The program itself runs the loop: go on until it is done, running the outer loop while there is nothing."""
        if self._outer is None:
            self._must(done)
            return
        wake = asyncio.Event()
        self._listen(wake, self._outer)
        try:
            while not self.advance(done):
                self._outer.run_until_complete(self._wait(wake))
        finally:
            self._waker = self.session.driver = None

    def _must(self, done: Callable[[], bool]) -> None:
        while not self.advance(done):
            if not self._turned:
                raise RuntimeError("the outcome source has nothing to deliver and nothing can arrive")
            self._turned = False

    # -- the end -------------------------------------------------------------------------------------------------

    def _left_over(self) -> list[asyncio.Task[Any]]:
        return sorted(asyncio.all_tasks(self.loop), key=hash)  # a task's hash is its number

    def _begin_settling(self) -> list[asyncio.Task[Any]]:
        left = self._left_over()
        for task in left:
            task.cancel()
        return left

    async def _settle(self, wake: asyncio.Event) -> None:
        """As ``asyncio.run`` does: cancel what the agent left running and let it clean up."""
        for _ in range(_CLEAN_UP_ROUNDS):
            left = self._begin_settling()
            if not left:
                break
            await self._until(_all_done(left), wake)
        await self._until(self._closing_generators(), wake)
        if self.session.baton is not None:
            await self._until(partial(_drained, self.session), wake)

    def _settle_blocking(self) -> None:
        for _ in range(_CLEAN_UP_ROUNDS):
            left = self._begin_settling()
            if not left:
                break
            self._must(_all_done(left))
        self._must(self._closing_generators())
        if self.session.baton is not None:
            self._must(partial(_drained, self.session))

    def _closing_generators(self) -> Callable[[], bool]:
        with entered(self._scope):  # generators may make host calls while they are closed
            context = contextvars.copy_context()
        closing = self.loop.create_task(self.loop.shutdown_asyncgens(), context=context)
        return closing.done

    def _close(self) -> None:
        self.session.source.close()
        self.session.source.on_arrival = None
        if self.session.engine.failure is not None:
            self._abandon()
        if self.session.baton is not None:
            self.session.baton.drain()
        self.session.driver = None
        self.loop.close()
        self.loop.bridge = None  # it holds this driver

    def _abandon(self) -> None:
        """After a verdict: let the agent's clean-up code run without a single event; its host calls are refused."""
        # The verdict is reported once; tasks that were refused by it have nothing to add when they are collected.
        self.loop.set_exception_handler(_say_nothing)
        for _ in range(_CLEAN_UP_ROUNDS):
            left = self._left_over()
            if not left:
                return
            for task in left:
                task.cancel()
            self.loop.pump()


def _name_of(task: asyncio.Task[Any]) -> str:
    work = task.get_coro()
    return f"{getattr(work, '__qualname__', type(work).__qualname__)}()"


def _drained(session: Session) -> bool:
    return session.baton is None or session.baton.drained


@types.coroutine
def one_turn() -> Generator[None]:
    """Let the loop run once. Not ``asyncio.sleep(0)``, which programs and tests replace."""
    yield


def _say_nothing(_loop: asyncio.AbstractEventLoop, _context: dict[str, Any]) -> None:
    """An exception handler for the tasks of a run that has its verdict."""


def _all_done(tasks: list[asyncio.Task[Any]]) -> Callable[[], bool]:
    return lambda: all(task.done() for task in tasks)
