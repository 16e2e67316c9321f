"""Host calls of a run without a loop of its own: on a stock event loop, in sync code, from any thread.

A call is performed where it is made, in real time, and delivered when it is there. As long as one waits at a time, the
order of everything follows from the code. Where two wait at the same time, what comes first is a matter of timing, and
nothing here can hold it for a replay: the trace gets a gap (``stock-loop``), once, and the log says what to change.
Coroutines that are recorded in such a run get the deterministic loop (``segment``).

The run does not wait for what is under way when it ends. Such a call goes on as it would without it; it has no outcome
in the trace, and what comes of it is the caller's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator, Sequence
from functools import partial
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from agentloom.errors import ControlFlow, NotSupported
from agentloom.runtime.calls import Arrival, Call, CallSpec, Whole
from agentloom.runtime.driver_async import AsyncDriver
from agentloom.runtime.engine import Delivery, Engine
from agentloom.runtime.left_behind import tell_calls, tell_stream
from agentloom.runtime.live import LiveSource, close_stream, lazily, next_of
from agentloom.runtime.locks import free_in_children
from agentloom.runtime.plainly import copied
from agentloom.runtime.scope import Scope, entered, outside
from agentloom.runtime.stock_timers import watch_timers

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["GAP", "SETTLING", "InPlace", "LiveInPlace", "StockCalls"]

T = TypeVar("T")
_MOVED = (
    "the block was left in another context than it was entered in (threads took turns to read the generator that it"
    " stands in?), and calls in between may be missing"
)
GAP = "stock-loop"
"""The code of a gap after which the order of a run was a matter of timing."""
SETTLING = 16
"""Turns of a loop until who has got something has done what follows from it: futures, groups, timeouts."""

_log = logging.getLogger("agentloom.recording")
_TIMER = (
    "a timer of the event loop (asyncio.sleep, a timeout) ran beside a call, which takes no time on replay"
)
_AT_ONCE = "a timer of the event loop (asyncio.sleep, a timeout) went off at the moment at which a call ended"
_CLOCK = "loop.time() was read before a call and after it, and shows the real time on replay"
_NEXT = "await agentloom.record(...) around them, or an @agent: their order is recorded there"


class Reader(Protocol):
    """Says whether the running code reads a generator, ``name``, that is between two of its items."""

    @property
    def name(self) -> str: ...
    def __call__(self) -> bool: ...


class InPlace(Protocol):
    """Who answers calls where they are made: the world, or a trace. ``live``: the world."""

    live: bool

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        """Perform (or look up) a call whose caller blocks."""
        ...

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        """Begin a stream whose reader blocks."""
        ...

    def next_inline(self, call: Call) -> Arrival:
        """The next chunk of such a stream, or its end."""
        ...

    def turn_inline(self, spec: CallSpec) -> None:
        """As ``turn``, for a caller that blocks."""
        ...

    async def turn(self, spec: CallSpec) -> None:
        """Wait where others of the run have something to do before a call is made: on replay, by the recorded order."""
        ...

    async def awaited(self, call: Call, perform: Callable[[], Awaitable[object]]) -> Arrival:
        """Perform (or look up) a call. A cancellation of the waiting task is raised."""
        ...

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        """Begin a stream."""
        ...

    async def next(self, call: Call) -> Arrival:
        """The next chunk, or the end."""
        ...

    def leave(self, call: Call) -> None:
        """Nobody reads the stream any more."""
        ...

    async def segment(self, driver: AsyncDriver, main: Coroutine[Any, Any, T]) -> T:
        """Run ``main`` on the driver's loop."""
        ...

    def fired(self) -> Arrival | None:
        """A timer of the loop goes off beside a call: the event, or None where it is none now."""
        ...

    def leaves(self, call: Call) -> bool:
        """Whether a call of a thread that is under way when the run ends is no part of it any more."""
        ...

    def ended(self, session: Session, left: Sequence[Call]) -> None:
        """The run has ended; ``left`` are the calls that were under way."""
        ...

    def late(self, call: Call, session: Session) -> None:
        """The call goes on after the end of the run. Raises where nobody can answer it."""
        ...


class LiveInPlace:
    """Performs calls on the loop that runs, each in a task of its own outside of the run."""

    live = True

    def __init__(self, source: LiveSource) -> None:
        watch_timers()
        self._source = source
        self._reading: dict[str, tuple[int, asyncio.Task[None], asyncio.Queue[Arrival]]] = {}
        self._streams: dict[str, tuple[int, Iterator[object]]] = {}
        self._told: set[str] = set()

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        return self._source.inline(call, perform)

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        self._streams[call.id] = self._source.now(), lazily(perform)

    def next_inline(self, call: Call) -> Arrival:
        began, iterator = self._streams[call.id]
        arrival = next_of(iterator, call, began, self._source.now)
        if arrival.kind == "outcome":
            del self._streams[call.id]
        return arrival

    def turn_inline(self, spec: CallSpec) -> None:
        pass

    async def turn(self, spec: CallSpec) -> None:
        pass

    async def awaited(self, call: Call, perform: Callable[[], Awaitable[object]]) -> Arrival:
        began = self._source.now()
        work = asyncio.get_running_loop().create_task(_all_of(perform), context=outside())
        try:
            value = await work
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if not work.done() or not work.cancelled() or (task is not None and task.cancelling()):
                work.cancel()
                raise
            arrival = Arrival("outcome", call, "error", error=error)  # the work itself was cancelled
        except BaseException as error:  # noqa: BLE001 - whatever it is: recorded, and raised in the agent
            arrival = Arrival("outcome", call, "error", error=error)
        else:
            arrival = Arrival("outcome", call, value=value)
        return self._stamped(arrival, began)

    def _stamped(self, arrival: Arrival, began: int) -> Arrival:
        arrival.vt = self._source.now()
        if arrival.kind == "chunk":
            arrival.offset = arrival.vt - began
        else:
            arrival.dur = arrival.vt - began
        return arrival

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        began, queue = self._source.now(), asyncio.Queue[Arrival]()
        reader = asyncio.get_running_loop().create_task(
            self._read(call, began, perform, queue), context=outside()
        )
        self._reading[call.id] = began, reader, queue

    async def _read(
        self,
        call: Call,
        began: int,
        perform: Callable[[], AsyncIterator[object]],
        queue: asyncio.Queue[Arrival],
    ) -> None:
        """One task reads the whole stream: what is entered in it (timeouts, cancel scopes) is left by the same one."""
        iterator = perform()
        end = Arrival("outcome", call)
        try:
            async for value in iterator:
                if type(value) is Whole:
                    end.value = value.value
                else:
                    queue.put_nowait(self._stamped(Arrival("chunk", call, value=value), began))
        except BaseException as error:  # recorded as the stream's end and raised again in the agent
            if call.ended:
                raise
            queue.put_nowait(self._stamped(Arrival("outcome", call, "error", error=error), began))
        else:
            queue.put_nowait(self._stamped(end, began))
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()

    async def next(self, call: Call) -> Arrival:
        _, _, queue = self._reading[call.id]
        arrival = await queue.get()
        arrival.vt = self._source.now()  # it is delivered now, however long it lay there
        if arrival.kind == "outcome":
            del self._reading[call.id]
        return arrival

    def leave(self, call: Call) -> None:
        found = self._reading.pop(call.id, None)
        if found is not None:
            found[1].cancel()
        stream = self._streams.pop(call.id, None)
        if stream is not None:
            close_stream(call.id, stream[1])

    async def segment(self, driver: AsyncDriver, main: Coroutine[Any, Any, T]) -> T:
        self._source.host(asyncio.get_running_loop())
        return await driver.run(main)

    def fired(self) -> Arrival | None:
        return Arrival("timer", vt=self._source.now())

    def leaves(self, call: Call) -> bool:
        return True

    def ended(self, session: Session, left: Sequence[Call]) -> None:
        tell_calls(session, left)

    def late(self, call: Call, session: Session) -> None:
        if call.spec.stream and call.id not in self._told:
            self._told.add(call.id)
            tell_stream(session, call)


async def _all_of(perform: Callable[[], Awaitable[object]]) -> object:
    return await perform()


class StockCalls:
    """Makes the host calls of one run in place, for whichever task or thread asks."""

    def __init__(self, in_place: InPlace) -> None:
        self.in_place = in_place
        self._lock = free_in_children(threading.RLock())
        self._waits = 0
        self._waited = self._came = 0  # how often somebody began to, and ended
        self._settling = 0  # turns of the loop until what a timer has set going is done
        self._clock_read: int | None = None
        self._segment: int | None = None  # the thread that drives a coroutine of the run
        self._marked = False
        self._under_way: dict[str, Call] = {}
        self.shared = False
        """Whether the run is in no thread of its own: every one that carries its context is part of it."""
        self.reader: Reader | None = None
        """Of a block in a generator: whether the running code is who reads it, and no part of the run."""

    # -- one at a time -------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def alone(self, scope: Scope) -> Generator[None]:
        """A block in which no other thread moves the run, which goes on here for so long."""
        engine = scope.session.engine
        with self._lock:
            before = engine.thread
            engine.take()
            try:
                yield
            finally:
                engine.give_back(before)

    def tick(self, session: Session, vt: int) -> bool:
        """Write that time went by. False: another thread moves the run just now, or drives a coroutine of it, and may
        want what this one holds; the next reading of the clock comes here again."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            engine = session.engine
            if engine.over or self.elsewhere(engine) or self._segment not in (None, get_ident()):
                return False
            before = engine.thread
            engine.take()
            try:
                engine.tick(vt)
            finally:
                engine.give_back(before)
            return True
        finally:
            self._lock.release()

    @staticmethod
    def elsewhere(engine: Engine) -> bool:
        """Whether another thread moves the run just now."""
        thread = engine.thread
        return thread is not None and thread != get_ident()

    @contextlib.contextmanager
    def waiting(self, scope: Scope) -> Generator[None]:
        """A block that waits for a call. Two at a time are marked."""
        with self._lock:
            self._waits += 1
            self._waited += 1
            if self._waits > 1:
                self._mark(scope, "calls of different tasks waited at the same time on a stock event loop")
        try:
            yield
        finally:
            with self._lock:
                self._waits -= 1
                self._came += 1

    @property
    def waits(self) -> tuple[int, int]:
        """How often somebody has begun to wait for a call, and how often that was over."""
        return self._waited, self._came

    def timer_fired(self, scope: Scope, where: str, then: tuple[int, int]) -> None:
        """A timer that the run's code set at ``where`` goes off; ``then``: ``waits`` when it was set. Beside a call
        that waits all the time it is an event of the run: the call goes on behind it on replay. Where a call was over
        meanwhile, which takes no time on replay, its order is a matter of time."""
        if then == self.waits and not self._waits:
            return
        session = scope.session
        with self._lock:
            if session.engine.over:
                return
            beside = self._waits and then[1] == self._came
            if not beside or self._segment is not None or session.baton is not None:
                self._mark(scope, _TIMER, where=where)
                return
            arrival = self.in_place.fired()
            if arrival is not None:
                with self.alone(scope):
                    session.engine.deliver(arrival)
                self._settle(asyncio.get_running_loop(), SETTLING)

    def _settle(self, loop: asyncio.AbstractEventLoop, turns: int) -> None:
        """Count turns of the loop since the last timer went off. What came of it is not done before some have gone
        by."""
        if turns < SETTLING and self._settling != turns + 1:
            return  # another one went off meanwhile, and is counted from
        self._settling = turns
        if turns:
            loop.call_soon(self._settle, loop, turns - 1, context=contextvars.Context())

    def clock_read(self, scope: Scope) -> None:
        """The run's own code reads the clock of its loop."""
        if not self.in_place.live:
            return
        now, before = self._waited, self._clock_read
        self._clock_read = now
        if before is not None and before != now:
            self._mark(scope, _CLOCK, f"time.monotonic(); or {_NEXT}")

    def moved(self, scope: Scope) -> None:
        """The block was left in another context than it was entered in. What was called in between is marked."""
        self._mark(
            scope, _MOVED, "put the block around the code that reads the generator, or make that an async one"
        )

    def _mark(self, scope: Scope, what: str, instead: str = _NEXT, *, where: str | None = None) -> None:
        session = scope.session
        if self._marked or not self.in_place.live or session.engine.over:
            return
        self._marked = True
        where = where or session.engine.place(scope)
        with self.alone(scope):
            session.engine.mark("gap", {"what": what, "where": where, "next": instead}, why=GAP)
        _log.warning(
            "run %s of %s is not replayable past %s: %s. To change it: %s",
            session.run_id, session.agent, where, what, instead,
        )  # fmt: skip

    def ended(self, session: Session) -> None:
        """The run has ended. What is under way is no part of it any more."""
        with self._lock:
            left = [call for call in self._under_way.values() if not call.ended]
            self._under_way.clear()
        self.in_place.ended(session, left if session.engine.failure is None else ())

    def leaves_behind(self, call: Call) -> bool:
        """Whether this call of a thread, under way at the end of the run, goes on without it."""
        if not self.in_place.leaves(call):
            return False
        self._under_way[call.id] = call
        return True

    def came_late(self, call: Call, scope: Scope, came: Sequence[Arrival]) -> object:
        """What came of such a call. Raises what it raised, and where nobody can answer it."""
        self.in_place.late(call, scope.session)
        if not came:
            raise RuntimeError(f"{call.id} ended without an outcome")
        return self._deliver(came[0], scope).unwrap()

    def _deliver(self, arrival: Arrival, scope: Scope) -> Delivery:
        """Hand over what came of a call: through the record, or as it is where the run has ended meanwhile."""
        engine, call = scope.session.engine, arrival.call
        if self._settling and self.in_place.live:
            self._mark(scope, _AT_ONCE, where=None if call is None else call.src)
        with self.alone(scope):
            if not engine.ended:
                delivery = engine.deliver(arrival)
                if delivery.done and call is not None:
                    self._under_way.pop(call.id, None)
                return delivery
        if call is not None:
            self.in_place.late(call, scope.session)
        done = arrival.kind == "outcome"
        if arrival.error is not None:
            return Delivery(call, arrival.kind, error=arrival.error, done=done)
        return Delivery(call, arrival.kind, copied(arrival.value), done=done)

    def refuse_reader(self, scope: Scope, what: str) -> None:
        """``NotSupported`` where the running code is no part of the run, though the run is current in its context."""
        reader = self.reader
        if reader is not None and reader():
            raise NotSupported(
                f"{what} came from who reads the generator {reader.name}, between two of its items: the block"
                f' record("{scope.session.agent}") in it is current there too, and is not meant',
                hint="put the block around the code that reads; or read the generator in a task of its own",
            )

    def _fail(self, scope: Scope, failure: ControlFlow) -> NoReturn:
        scope.session.engine.fail(failure)

    # -- calls ---------------------------------------------------------------------------------------------------

    def call(self, spec: CallSpec, scope: Scope, perform: Callable[[Call], object]) -> object:
        """Make a call whose caller blocks. Raises what the call raised."""
        if self.shared and self._under_way and not self.in_place.live:
            self.in_place.turn_inline(spec)
        call = self._begin(spec, scope, waits=True)
        with self.waiting(scope):
            try:
                arrival = self.in_place.inline(call, partial(perform, call))
            except ControlFlow as failure:
                self._fail(scope, failure)
        return self._deliver(arrival, scope).unwrap()

    async def call_async(
        self, spec: CallSpec, scope: Scope, perform: Callable[[Call], Awaitable[object]]
    ) -> object:
        """Make an awaited call. Raises what the call raised; a cancelled one is written down as such."""
        if self._under_way and not self.in_place.live:
            await self.in_place.turn(spec)
        call = self._begin(spec, scope)
        with self.waiting(scope):
            try:
                arrival = await self.in_place.awaited(call, partial(perform, call))
            except ControlFlow as failure:
                self._fail(scope, failure)
            except asyncio.CancelledError:
                self._cancelled(call, scope)
                raise
        return self._deliver(arrival, scope).unwrap()

    def _begin(self, spec: CallSpec, scope: Scope, *, waits: bool = False) -> Call:
        self.refuse_reader(scope, f"{spec.type} {spec.name}")
        with self.alone(scope):
            call = scope.session.engine.begin(spec, scope, waits=waits)
            self._under_way[call.id] = call
        return call

    def _cancelled(self, call: Call, scope: Scope) -> None:
        engine = scope.session.engine
        with self.alone(scope):
            self._under_way.pop(call.id, None)
            if not engine.over:
                self._mark(scope, "a call was cancelled on a stock event loop", where=call.src)
                engine.end_by_agent(call, "cancelled")

    # -- streams -------------------------------------------------------------------------------------------------

    def open(self, spec: CallSpec, scope: Scope, perform: Callable[[Call], AsyncIterator[object]]) -> Call:
        """Begin an awaited stream."""
        call = self._begin(spec, scope)
        try:
            self.in_place.open(call, partial(perform, call))
        except ControlFlow as failure:
            self._fail(scope, failure)
        return call

    async def next(self, call: Call, scope: Scope) -> Delivery:
        """The next chunk or the end; raises the error that the stream ended with."""
        self._may_go_on(scope)
        with self.waiting(scope):
            try:
                arrival = await self.in_place.next(call)
            except ControlFlow as failure:
                self._fail(scope, failure)
            except asyncio.CancelledError:
                self._cancelled(call, scope)
                self.in_place.leave(call)
                raise
        delivery = self._deliver(arrival, scope)
        if delivery.error is not None:
            raise delivery.error
        return delivery

    def open_inline(self, spec: CallSpec, scope: Scope, perform: Callable[[Call], Iterator[object]]) -> Call:
        """Begin a stream whose reader blocks."""
        call = self._begin(spec, scope)
        with self.alone(scope):
            try:
                self.in_place.open_inline(call, partial(perform, call))
            except ControlFlow as failure:
                self._fail(scope, failure)
        return call

    def next_inline(self, call: Call, scope: Scope) -> Delivery:
        """As ``next``, for a reader that blocks."""
        self._may_go_on(scope)
        with self.waiting(scope):
            try:
                arrival = self.in_place.next_inline(call)
            except ControlFlow as failure:
                self._fail(scope, failure)
        delivery = self._deliver(arrival, scope)
        if delivery.error is not None:
            raise delivery.error
        return delivery

    @staticmethod
    def _may_go_on(scope: Scope) -> None:
        engine = scope.session.engine
        if not engine.ended:
            engine.guard()

    def leave(self, call: Call, scope: Scope) -> None:
        """The reader leaves the stream where it is."""
        with self.alone(scope):
            self._under_way.pop(call.id, None)
            scope.session.engine.end_by_agent(call, "closed")
        self.in_place.leave(call)

    # -- the deterministic loop ----------------------------------------------------------------------------------

    async def segment(self, scope: Scope, main: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on an inner loop, as a part of this run. A second one at the same time runs on the stock loop
        like everything else there, and is marked."""
        with self._lock:
            second = self._segment is not None
            if not second:
                self._segment = get_ident()
            else:
                self._mark(scope, "two recorded coroutines ran at the same time on a stock event loop")
        if second:
            with entered(scope):
                return await main
        try:
            with self.waiting(scope):
                return await self.in_place.segment(_Segment(scope), main)
        finally:
            self._segment = None


class _Segment(AsyncDriver):
    """Drives an inner loop in a run that has none: it is the run's only while it is pumped."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope.session, scope=scope)
        scope.session.loop = None

    def advance(self, done: Callable[[], bool]) -> bool:
        session = self.session
        before = session.engine.thread
        session.loop = self.loop
        try:
            return super().advance(done)
        finally:
            session.loop = None
            session.engine.give_back(before)
