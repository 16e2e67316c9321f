"""The calls of a run that wait for what no process does: which of them can go on, and when the run is to be left.

A run comes to rest where nothing is under way and nothing can arrive. Where it waits for a person, a message or for
long then, its process ends the work on it (``Suspend``); whoever answers resumes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from agentloom.errors import Expired, FormatError, NotSupported, RunNotFound, StoreFailed, Suspend
from agentloom.format.values import Types, decode
from agentloom.runtime.calls import Arrival, Call
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.outside import PATIENCE, Outside
from agentloom.store.mail import Mail

__all__ = ["Waits", "refuse_wait"]


@dataclass(slots=True)
class _Waiting:
    call: Call
    outside: Outside
    began: int  # virtual time


class Waits:
    """``mail`` reads what was said to the run, oldest first; ``start`` is what its clock showed at virtual time 0,
    nanoseconds since 1970; ``taken``: signals that it has taken before; ``stopped``: when it was last stopped."""

    def __init__(
        self,
        mail: Callable[[], list[Mail]],
        types: Types,
        *,
        start: int = 0,
        taken: Iterable[str] = (),
        stopped: int = 0,
        patience: int = PATIENCE,
        clock: Callable[[], int] = REAL_CLOCKS["time_ns"],
    ) -> None:
        self._read = mail
        self.start = start
        self._types = types
        self._taken = set(taken)
        self._stopped = stopped
        self._patience = patience
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}

    def letters(self) -> list[Mail]:
        """All mail of the run. ``StoreFailed`` where it cannot be read: the run is left then, and has not failed."""
        try:
            return self._read()
        except (FormatError, RunNotFound) as error:
            raise StoreFailed(error.message, hint=error.hint) from error

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def mail_may_come(self) -> bool:
        """Whether something that is waited for is said by somebody."""
        return any(one.outside.kind != "time" for one in self._waiting.values())

    def add(self, call: Call, outside: Outside, vt: int) -> None:
        """``call`` waits from now on, virtual time ``vt``."""
        self._waiting[call.id] = _Waiting(call, outside, vt)

    def drop(self, call: Call) -> None:
        """Nobody waits for ``call`` any more."""
        self._waiting.pop(call.id, None)

    def told_to_stop(self, letters: list[Mail]) -> bool:
        """Whether somebody asked the run to stop since it last was; says so once."""
        asked = max((letter.at for letter in letters if letter.kind == "cancel"), default=0)
        if asked <= self._stopped:
            return False
        self._stopped = asked
        return True

    def look(self, now: int, letters: list[Mail] | None = None) -> Arrival | None:
        """The outcome of the first call that can go on at virtual time ``now``, which waits no more; None: of none.
        ``letters``: the mail, where it was just read."""
        if not self._waiting:
            return None
        if letters is None:
            letters = self.letters() if self.mail_may_come else []
        wall = self._clock()
        for one in self._waiting.values():
            arrival = self._answered(one, letters) or self._over(one, wall)
            if arrival is not None:
                del self._waiting[one.call.id]
                arrival.vt, arrival.dur = now, max(0, now - one.began)
                return arrival
        return None

    def _answered(self, one: _Waiting, letters: list[Mail]) -> Arrival | None:
        call, outside = one.call, one.outside
        for letter in letters:
            if outside.kind == "answer":
                fits = letter.kind == "answer" and letter.key == call.ask
            else:
                fits = (
                    letter.kind == outside.kind == "signal"
                    and letter.name == outside.name
                    and letter.key not in self._taken
                )
            if not fits or (outside.due is not None and letter.at > outside.due):
                continue  # what came too late changes nothing, however late it is looked at
            self._taken.add(letter.key)
            arrival = Arrival("outcome", call)
            arrival.mail = letter
            try:
                said = decode(letter.value, self._types)
                arrival.value = said if outside.read is None else outside.read(said)
            except Exception as error:  # noqa: BLE001 - whatever reading it raises: raised in the agent, and recorded
                arrival.status, arrival.error = "error", error
            return arrival
        return None

    @staticmethod
    def _over(one: _Waiting, wall: int) -> Arrival | None:
        """The outcome of a call whose time is over."""
        outside, call = one.outside, one.call
        if outside.due is None or wall < outside.due:
            return None
        if outside.kind == "time":
            return Arrival("outcome", call)
        if outside.default is not None:
            return Arrival("outcome", call, value=outside.default())
        what = f"signal {outside.name}" if outside.kind == "signal" else f"question {call.ask}"
        error = Expired(f"{what} of {call.src} was not answered in time", ask=call.ask, due=outside.due)
        return Arrival("outcome", call, "error", error=error)

    def next_due(self) -> int | None:
        """When the first call goes on by itself: virtual time; None: none does."""
        due = min(
            (one.outside.due for one in self._waiting.values() if one.outside.due is not None), default=None
        )
        return None if due is None else due - self.start

    def rest(self, timer: int | None, now: int) -> int | None:
        """Nothing is under way at virtual time ``now`` but what waits here, and the run's own first ``timer``. The time
        at which to look again; raises ``Suspend`` where that is too long to wait for."""
        due = self.next_due()
        first = min((one for one in (due, timer) if one is not None), default=None)
        if first is None or first - now > self._patience:
            raise Suspend(None if first is None else first + self.start)
        return due


def refuse_wait(call: Call) -> NotSupported:
    """The error of a call that waits for somebody in a run that no other process could go on with."""
    return NotSupported(
        f"{call.type} {call.name} waits for somebody, and this run cannot be resumed: it is no run of an agent",
        hint="make the code an @agent and start it with run(), arun() or `agentloom run FILE:AGENT`",
    )
