"""The live source: performs every call for real, outside the run's context, and hands arrivals over in order."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import Context, copy_context
from dataclasses import dataclass
from functools import partial
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import Any

from agentloom.format.values import Tree
from agentloom.runtime.calls import Arrival, Call, CallSpec, Status, Whole
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.hostwork import HostWork, Waiting
from agentloom.runtime.profiles import Profile
from agentloom.runtime.scope import leave, outside, run_outside
from agentloom.runtime.source import TICK, StateEntry

__all__ = ["LiveSource", "close_stream", "lazily", "next_of"]

_SLICE = 5_000_000
"""Nanoseconds after which the loop has a turn, where calls are performed without waiting all the time: others use it
too. As long as Python lets a thread go on while others wait (``sys.getswitchinterval``)."""
_log = logging.getLogger("agentloom.live")


@dataclass(slots=True)
class _Open:
    """A call under way: when it began, its task on the outer loop, and (for a stream) what was read ahead."""

    began: int
    task: asyncio.Task[None] | Waiting | None = None
    iterator: Iterator[object] | None = None
    ahead: deque[Arrival] | None = None


class LiveSource:
    """``outer`` is the real event loop for awaited calls; a sync agent needs none. ``clock`` gives nanoseconds."""

    def __init__(
        self,
        outer: asyncio.AbstractEventLoop | None = None,
        clock: Callable[[], int] = REAL_CLOCKS["monotonic_ns"],
    ) -> None:
        self.on_arrival: Callable[[], None] | None = None
        self.recorded_rule: Callable[[Callable[[], str], CallSpec, Profile], Profile] | None = None
        self._outer = outer
        self._clock = clock
        self._origin = clock()
        self._arrived: deque[Arrival] = deque()
        self._open: dict[str, _Open] = {}
        self._wanted: dict[str, Call] = {}
        self._asked: list[tuple[Call, Callable[[], Any], _Open, Context]] = []  # not begun yet
        self._home = 0  # the thread of the loop
        self._work: HostWork | None = None
        self._beginning = False  # whoever begins work looks at what has arrived
        self._waiting = 0  # awaited calls whose work waits on the loop
        self._turn_due = _SLICE

    def now(self) -> int:
        """Nanoseconds since the run began."""
        return self._clock() - self._origin

    def began(self, start: int = 0) -> None:
        """The run begins now, at virtual time 0; its clock on the wall shows ``start`` (ns since 1970)."""
        self._origin = self._clock()

    def tick(self, shown: int, reads: int) -> int | None:
        now = self._clock() - self._origin
        return now if now - shown > TICK else None

    def ticked(self, vt: int) -> None:
        pass

    @property
    def outer(self) -> asyncio.AbstractEventLoop | None:
        """The loop on which awaited calls are performed."""
        return self._outer

    def host(self, outer: asyncio.AbstractEventLoop) -> None:
        """From now on awaited calls are performed on ``outer``."""
        if outer is not self._outer:
            self._outer, self._work = outer, None

    # -- blocking calls ------------------------------------------------------------------------------------------

    def begin(self, call: Call) -> None:
        pass

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        clock = self._clock
        began = clock()
        try:
            value = run_outside(perform)
        except BaseException as error:  # noqa: BLE001 - whatever it is, Ctrl-C too: recorded, and raised in the agent
            now = clock()
            return Arrival("outcome", call, "error", error=error, vt=now - self._origin, dur=now - began)
        now = clock()
        return Arrival("outcome", call, value=value, vt=now - self._origin, dur=now - began)

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        self._open[call.id] = _Open(self.now(), iterator=lazily(perform))

    def next_inline(self, call: Call) -> Arrival:
        opened = self._open[call.id]
        iterator = opened.iterator
        if iterator is None:
            raise RuntimeError(f"{call.id} is not a blocking stream")
        arrival = next_of(iterator, call, opened.began, self.now)
        if arrival.kind == "outcome":
            del self._open[call.id]
        return arrival

    # -- awaited calls -------------------------------------------------------------------------------------------

    # Work is begun when the run comes to rest, in the context that there is when it is asked for.

    def start(self, call: Call, perform: Callable[[], Awaitable[object]]) -> None:
        if self._outer is None:
            raise _no_loop()
        self._home = get_ident()
        opened = self._open[call.id] = _Open(self._clock() - self._origin)
        self._asked.append((call, perform, opened, copy_context()))

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        if self._outer is None:
            raise _no_loop()
        self._home = get_ident()
        opened = self._open[call.id] = _Open(self._clock() - self._origin, ahead=deque())
        self._asked.append((call, perform, opened, copy_context()))

    def _begin(self, outer: asyncio.AbstractEventLoop) -> None:
        """Begin what was asked for, in its order. What never waits has arrived afterwards."""
        asked, self._asked = self._asked, []
        if self._work is None:
            self._work = HostWork(outer)
        self._beginning = True
        for call, perform, opened, context in asked:
            if self._open.get(call.id) is not opened:
                continue  # it was cancelled meanwhile
            if opened.ahead is None:
                opened.task = self._work.begin(perform, context, self._finished, call, opened)
            else:
                opened.task = self._work.begin(
                    partial(self._read, call, opened, perform), context, _read_over
                )
            if opened.task is not None:
                self._waiting += 1
        self._beginning = False

    def goes_on(self) -> bool:
        return False

    def never_made(self, call_id: str) -> bool:
        return False

    def rests(self, timer: int | None) -> None:
        pass

    def turn_due(self, vt: int) -> bool:
        # With work that waits a turn follows every delivery: what happens next is not a matter of how long things take.
        if not self._waiting and vt < self._turn_due:
            return False
        self._turn_due = vt + _SLICE
        return self._outer is not None

    def turn(self, timer: int | None) -> Arrival | None:
        now = self.now()
        there = any(one.call is None or not one.call.ended for one in self._arrived)
        return Arrival("turn", vt=now) if there or (timer is not None and timer <= now) else None

    def _finished(self, call: Call, opened: _Open, value: object, error: BaseException | None) -> bool:
        """The work of a call is over. An error is recorded as its outcome, and raised again in the agent."""
        if error is not None and self._is_over(call, opened):
            return False
        if not call.ended:
            now = self._clock() - self._origin
            status: Status = "ok" if error is None else "error"
            arrival = Arrival(
                "outcome", call, status, value=value, error=error, vt=now, dur=now - opened.began
            )
            self._arrived.append(arrival)
            if not self._beginning:
                self._tell()
        return True

    def want(self, call: Call) -> None:
        opened = self._open[call.id]
        if opened.ahead:
            self._arrived.append(opened.ahead.popleft())
        else:
            self._wanted[call.id] = call

    def start_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        work = self._work_of(call, perform)
        try:
            threading.Thread(target=work, name=f"agentloom {call.id}", daemon=True).start()
        except RuntimeError as error:  # the system has no more threads: the call fails, and that is recorded
            self._arrive(Arrival("outcome", call, "error", error=error), self._open[call.id])

    def prepare_blocking(self, call: Call, perform: Callable[[], object]) -> Callable[[], None] | None:
        return self._work_of(call, perform)

    def _work_of(self, call: Call, perform: Callable[[], object]) -> Callable[[], None]:
        opened = self._open[call.id] = _Open(self.now())
        context = outside()

        def work() -> None:
            arrival = context.run(self.inline, call, perform)
            self._arrive(arrival, opened)

        return work

    async def _read(self, call: Call, opened: _Open, perform: Callable[[], AsyncIterator[object]]) -> None:
        leave()
        iterator: AsyncIterator[object] | None = None
        end = Arrival("outcome", call)
        try:
            iterator = perform()
            async for value in iterator:
                if type(value) is Whole:
                    end.value = value.value
                else:
                    self._arrive(Arrival("chunk", call, value=value), opened)
        except BaseException as error:  # recorded as the stream's end and raised again in the agent
            if self._is_over(call, opened):
                raise
            self._arrive(Arrival("outcome", call, "error", error=error), opened)
        else:
            self._arrive(end, opened)
        finally:
            close = getattr(iterator, "aclose", None)
            if close is not None:
                await close()

    def _is_over(self, call: Call, opened: _Open) -> bool:
        """Whether nobody waits any more: the agent cancelled the call, or the run ended. Then what stops the host
        work (a cancellation, the closing of its coroutine) is no outcome."""
        return call.ended or self._open.get(call.id) is not opened

    def _arrive(self, arrival: Arrival, opened: _Open) -> None:
        call = arrival.call
        if call is None or call.ended:
            return
        arrival.vt = now = self._clock() - self._origin
        if arrival.kind == "chunk":
            arrival.offset = now - opened.began
        else:
            arrival.dur = now - opened.began
        if opened.ahead is None or self._wanted.pop(call.id, None) is not None:
            self._arrived.append(arrival)
        else:
            opened.ahead.append(arrival)
            return
        if not self._beginning:
            self._tell()

    def _tell(self) -> None:
        tell = self.on_arrival  # read once: another thread may end the run meanwhile
        if tell is not None and not self._beginning:
            tell()

    # -- the order -----------------------------------------------------------------------------------------------

    def poll(self, timer: int | None) -> Arrival | None:
        if self._asked and self._outer is not None and get_ident() == self._home:
            self._begin(self._outer)
        while self._arrived:
            arrival = self._arrived.popleft()
            call = arrival.call
            if call is None or not call.ended:
                if call is not None and arrival.kind == "outcome":
                    opened = self._open.pop(call.id, None)
                    if opened is not None and opened.task is not None:
                        self._waiting -= 1
                return arrival
        if timer is None:
            return None
        now = self.now()
        return Arrival("timer", vt=now) if timer <= now else None

    def interrupt(self) -> bool:
        self._arrived.appendleft(Arrival("cancel", vt=self.now()))
        self._tell()
        return True

    def cancel(self, call: Call, status: Status) -> None:
        self._wanted.pop(call.id, None)
        opened = self._over(call)
        if opened is not None:
            _stop(call.id, opened)

    def _over(self, call: Call) -> _Open | None:
        opened = self._open.pop(call.id, None)
        if opened is not None and opened.task is not None:
            self._waiting -= 1
        return opened

    def ended(self, call: Call, status: Status, tree: Tree) -> None:
        pass

    def state(self, entry: StateEntry) -> None:
        pass

    def finished(self, status: str, tree: Tree) -> None:
        pass

    def close(self) -> None:
        left = dict(self._open)
        self._open.clear()
        self._waiting = 0
        for call, opened in left.items():
            _stop(call, opened)
        self._arrived.clear()
        self._asked.clear()
        if self._work is not None:
            self._work.close()
        self._wanted.clear()


def _stop(call: str, opened: _Open) -> None:
    """Stop the work of a call that nobody waits for. What goes wrong there is not part of the run: it is logged."""
    if opened.task is not None:
        opened.task.cancel()
    if opened.iterator is not None:
        close_stream(call, opened.iterator)


def _read_over(_value: object, error: BaseException | None) -> bool:
    """The work of a stream is over: it has told of its end itself."""
    return error is None


def _no_loop() -> RuntimeError:
    return RuntimeError("a sync run cannot perform awaited calls")


def lazily(perform: Callable[[], Iterator[object]]) -> Iterator[object]:
    """What ``perform`` gives, made at the first read: an error of making it is an outcome like any other."""
    yield from perform()


def next_of(iterator: Iterator[object], call: Call, began: int, now: Callable[[], int]) -> Arrival:
    """The next chunk of a stream that began at ``began`` by the clock ``now`` (ns), or its end."""
    arrival = Arrival("outcome", call)
    try:
        context = outside()
        value = context.run(next, iterator)
        while type(value) is Whole:  # the end, once it has let go of what it holds
            arrival.value = value.value
            value = context.run(next, iterator)
    except StopIteration:
        pass
    except BaseException as error:  # noqa: BLE001 - recorded as the stream's end and raised again in the agent
        arrival = Arrival("outcome", call, "error", error=error)
    else:
        vt = now()
        return Arrival("chunk", call, value=value, vt=vt, offset=vt - began)
    arrival.vt = now()
    arrival.dur = arrival.vt - began
    return arrival


def close_stream(call: str, iterator: Iterator[object]) -> None:
    """Close a stream that nobody reads any more. What goes wrong there is not part of the run: it is logged."""
    close = getattr(iterator, "close", None)
    if close is not None:
        try:
            outside().run(close)
        except Exception:  # noqa: BLE001 - whatever it is; a replay would not see it
            _log.warning("closing the stream of %s failed", call, exc_info=True)
