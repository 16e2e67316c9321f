"""The live source of a run that can be resumed: what waits for somebody is left to the run's mail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial

from agentloom.runtime.calls import Arrival, Call, Status
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.live import LiveSource
from agentloom.runtime.outside import Outside
from agentloom.runtime.scope import outside as outside_context
from agentloom.runtime.scope import run_outside
from agentloom.runtime.waits import Waits
from agentloom.store.mail import Mail

__all__ = ["Again", "Answerer", "WaitingSource", "answerer", "ask_here"]

Answerer = Callable[[Call], None]
"""Asks who is there at once: called with the call that waits, it posts to the run's mail what it is told."""

_sleep = REAL_CLOCKS["sleep"]
_LOOK = 500_000_000
"""Nanoseconds after which a process that waits for a time looks into the mail of its run."""


_here: Answerer | None = None


def ask_here(answerer: Answerer | None) -> None:
    """Whom runs that begin in this process from now on ask at once: somebody at a terminal; None: nobody is there."""
    global _here
    _here = answerer


def answerer() -> Answerer | None:
    """Whom runs of this process ask at once."""
    return _here


class Again:
    """What reading an answer gives where the call is to be performed now: it did not happen before."""


class WaitingSource(LiveSource):
    """As ``LiveSource``. ``answerer``: whom to ask at once, in a thread where others go on meanwhile; None: nobody is
    there."""

    def __init__(
        self,
        outer: asyncio.AbstractEventLoop | None,
        clock: Callable[[], int],
        waits: Waits,
        answerer: Answerer | None = None,
    ) -> None:
        super().__init__(outer, clock)
        self.waits = waits
        self.answerer = answerer
        self.said: Callable[[Call, Mail], None] = _unsaid
        """Writes what was said of a call that is to be performed again."""
        self._again: dict[str, Callable[[], None]] = {}
        self._answering = 0
        self._failures: list[Arrival] = []
        self._alarm: int | None = None
        self._stop = False

    def began(self, start: int = 0) -> None:
        """As of the live source."""
        super().began(start)
        self.waits.start = start

    def goes_on_at(self, vt: int) -> None:
        """It is ``vt`` now: nanoseconds since the run began."""
        self._origin = self._clock() - vt
        self._stop = self.waits.told_to_stop(self.waits.letters())

    def _stops(self) -> bool:
        """Whether the run is to be stopped here, as by Ctrl-C; says so once."""
        told, self._stop = self._stop, False
        return told or (len(self.waits) > 0 and self.waits.told_to_stop(self.waits.letters()))

    # -- calls that wait for somebody ----------------------------------------------------------------------------

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        outside = call.spec.outside
        if outside is not None:
            self.waits.add(call, outside, self.now())
        if self._stops():
            self.waits.drop(call)
            return Arrival("outcome", call, "error", error=KeyboardInterrupt(), vt=self.now())
        if outside is None:
            return super().inline(call, perform)
        asked = self.answerer is None or outside.kind != "answer"
        while True:
            arrival = self.waits.look(self.now())
            if arrival is not None and isinstance(arrival.value, Again):
                self._say(arrival)
                return super().inline(call, perform)
            if arrival is not None:
                return arrival
            if not asked and self.answerer is not None:
                asked = True
                try:
                    run_outside(partial(self.answerer, call))
                except BaseException as error:  # noqa: BLE001 - as of any host work: recorded, and raised in the agent
                    self.waits.drop(call)
                    return Arrival("outcome", call, "error", error=error, vt=self.now())
                continue
            now = self.now()
            at = self._look_at(self.waits.rest(None, now), now)
            if at is not None:
                _sleep(max(0, at - now) / 1e9)

    def start(self, call: Call, perform: Callable[[], Awaitable[object]]) -> None:
        if call.spec.outside is None:
            super().start(call, perform)
        else:
            self._wait(call, call.spec.outside, partial(super().start, call, perform))

    def start_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        if call.spec.outside is None:
            super().start_blocking(call, perform)
        else:
            self._wait(call, call.spec.outside, partial(super().start_blocking, call, perform))

    def prepare_blocking(self, call: Call, perform: Callable[[], object]) -> Callable[[], None] | None:
        if call.spec.outside is None:
            return super().prepare_blocking(call, perform)
        self._wait(call, call.spec.outside, partial(super().start_blocking, call, perform))
        return None

    def again(self, call: Call, outside: Outside, perform: Callable[[], None]) -> None:
        """``call`` waits to be told whether it happened; ``perform`` begins it where it did not."""
        self._wait(call, outside, perform)

    def _wait(self, call: Call, outside: Outside, perform: Callable[[], None]) -> None:
        self.waits.add(call, outside, self.now())
        self._again[call.id] = perform
        if self.answerer is not None and outside.kind == "answer":
            self._answering += 1
            work = partial(outside_context().run, partial(self._ask, self.answerer, call))
            threading.Thread(target=work, name=f"agentloom ask {call.ask}", daemon=True).start()

    def _ask(self, answerer: Answerer, call: Call) -> None:
        try:
            answerer(call)
        except BaseException as error:  # noqa: BLE001 - as of any host work: recorded, and raised in the agent
            self._failures.append(Arrival("outcome", call, "error", error=error))
        self._answering -= 1
        if self._outer is None:
            self._tell()
        elif not self._outer.is_closed():
            self._outer.call_soon_threadsafe(self._tell)

    def hand(self, arrival: Arrival) -> None:
        """``arrival`` is the next event."""
        self._arrived.append(arrival)

    def _say(self, arrival: Arrival) -> None:
        if arrival.call is not None and arrival.mail is not None:
            self.said(arrival.call, arrival.mail)

    def cancel(self, call: Call, status: Status) -> None:
        self.waits.drop(call)
        super().cancel(call, status)

    # -- the order -----------------------------------------------------------------------------------------------

    def poll(self, timer: int | None) -> Arrival | None:
        if self._stop:
            self._stop = False
            return Arrival("cancel", vt=self.now())
        arrival = super().poll(timer)
        while arrival is None and len(self.waits):
            now = self.now()
            letters = self.waits.letters()
            if self.waits.told_to_stop(letters):
                return Arrival("cancel", vt=now)
            if self._failures:
                arrival = self._failures.pop()
                arrival.vt = now
                if arrival.call is not None:
                    self.waits.drop(arrival.call)
                return arrival
            arrival = self.waits.look(now, letters)
            if arrival is None:
                return None
            call = arrival.call
            begin = None if call is None else self._again.pop(call.id, None)
            if begin is not None and call is not None and isinstance(arrival.value, Again):
                self._say(arrival)
                call.spec = replace(call.spec, outside=None)  # it waits for nobody any more
                begin()
                arrival = super().poll(timer)
        return arrival

    def rests(self, timer: int | None) -> None:
        if not len(self.waits) or self._asked or self._answering or self._failures:
            return
        for call, opened in self._open.items():
            idle = call not in self._wanted and (opened.ahead is not None or opened.iterator is not None)
            if not idle:
                return
        now = self.now()
        at = self._look_at(self.waits.rest(timer, now), now)
        if at is not None and (self._alarm is None or self._alarm <= now or at < self._alarm):
            self._alarm = at
            self._wake_at(max(0, at - now) / 1e9)

    def _look_at(self, due: int | None, now: int) -> int | None:
        """When to look again where the run is not left: what goes on by itself is ``due``, and mail may come."""
        if not self.waits.mail_may_come:
            return due
        return now + _LOOK if due is None else min(due, now + _LOOK)

    def _wake_at(self, seconds: float) -> None:
        if self._outer is not None:
            self._outer.call_later(seconds, self._tell)
            return
        alarm = threading.Timer(seconds, self._tell)
        alarm.daemon = True
        alarm.start()


def _unsaid(call: Call, mail: Mail) -> None:
    raise RuntimeError(f"{call.id} was never in doubt: {mail}")
