"""The outcome source: the one thing that knows whether a run is recorded, replayed or forked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Protocol

from agentloom.format.values import Tree
from agentloom.runtime.calls import Arrival, Call, CallSpec, Status
from agentloom.runtime.profiles import Profile

__all__ = ["TICK", "OutcomeSource", "StateEntry"]

TICK = 10_000_000
"""Nanoseconds that the run's clock may stand behind the real one before a reading of it writes that time went by.

Less than the shortest wait that programs make on purpose (a poll every 20 or 50 ms), so that each is seen; more than
Python's own pauses (a thread goes on after 5 ms, a full collection), which would only fill traces: at most 100 entries
a second, and those only where the clock is read all the time and nothing else happens.
"""


class StateEntry(Protocol):
    """A deterministic result that really ran: its call id, name, value and the state fields that it read; what it
    chose to go on with, and what it could have chosen instead. ``tree`` is the value as it is written, ``made`` as it
    is, with its secrets."""

    @property
    def call(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def tree(self) -> Tree: ...
    @property
    def reads(self) -> tuple[str, ...]: ...
    @property
    def src(self) -> str: ...
    @property
    def goto(self) -> str | None: ...
    @property
    def others(self) -> tuple[str, ...]: ...
    @property
    def made(self) -> Tree: ...


class OutcomeSource(Protocol):
    """Answers the host calls of one run.

    The engine calls ``begin`` for every request, in order, after it was written. Then, for a call made
    synchronously, ``inline`` (or ``open_inline`` and ``next_inline`` for a stream); for an awaited call, ``start``
    (or ``open``, and ``want`` each time the agent waits for the next chunk). ``poll`` hands over the next event to
    deliver once the agent is quiescent. A replay source raises ``Diverged`` from ``begin``, ``inline``,
    ``next_inline``, ``poll``, ``state`` or ``finished`` after it has kept a verdict; for an awaited call it may
    instead leave the call unanswered and raise from the next ``poll``.
    """

    on_arrival: Callable[[], None] | None
    """Set by the driver: called, by whichever thread performs, when ``poll`` may have something."""

    @property
    def recorded_rule(self) -> Callable[[Callable[[], str], CallSpec, Profile], Profile] | None:
        """Of a replay: gives the profile by which the request was sorted when recorded, from its call id (asked for
        when it is needed), what is asked, and the program's own profile. None: the program's profiles hold."""
        ...

    def begin(self, call: Call) -> None:
        """A request was made. Replay: the call id selects a recorded call, its key is checked."""
        ...

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        """Perform (or look up) a call whose caller blocks; kind ``outcome``."""
        ...

    def start(self, call: Call, perform: Callable[[], Awaitable[object]]) -> None:
        """Begin an awaited call; its outcome comes from ``poll``."""
        ...

    def start_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        """Begin a call of one of several threads of a sync agent; its outcome comes from ``poll``."""
        ...

    def prepare_blocking(self, call: Call, perform: Callable[[], object]) -> Callable[[], None] | None:
        """As ``start_blocking``, for a thread that performs its calls itself: what it is to do then; None: nothing."""
        ...

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        """Begin an awaited stream."""
        ...

    def want(self, call: Call) -> None:
        """The agent waits for the next chunk of an awaited stream; it (or the end) comes from ``poll``."""
        ...

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        """Begin a stream whose reader blocks."""
        ...

    def next_inline(self, call: Call) -> Arrival:
        """The next chunk (kind ``chunk``) or the end (kind ``outcome``) of a blocking stream."""
        ...

    def cancel(self, call: Call, status: Status) -> None:
        """The agent itself ended the call: ``cancelled`` (its task was), or ``closed`` (it left a stream early)."""
        ...

    def ended(self, call: Call, status: Status, tree: Tree) -> None:
        """A call that the agent's own code performed (a child agent) ended; replay compares its result."""
        ...

    def poll(self, timer: int | None) -> Arrival | None:
        """The next event to deliver, or None when nothing has happened yet (live only).

        ``timer`` is the virtual deadline, in nanoseconds, of the run's first timer, or None. Called only when the
        agent is quiescent; a replay source that sees no way on (the recorded call was never made) raises.
        """
        ...

    def interrupt(self) -> bool:
        """Somebody outside wants the run to end: whether the next ``poll`` hands a cancellation over (live), or the
        run is simply given up (replay). Called from the thread that was interrupted."""
        ...

    def state(self, entry: StateEntry) -> None:
        """A deterministic step ran; replay compares its result with the recorded one."""
        ...

    def finished(self, status: str, tree: Tree) -> None:
        """The agent returned (``completed``, its output) or raised (``failed``, its error) or was cancelled."""
        ...

    def goes_on(self) -> bool:
        """The run has handed something out and comes to rest: whether it goes on though nobody has asked for more. Live
        it waits for its reader; a replay has none, and stops there only where the reader left when recorded."""
        ...

    def rests(self, timer: int | None) -> None:
        """Nothing has arrived, nothing of the run can go on before ``timer`` (as of ``poll``). Raises ``Suspend`` where
        that is for good as far as this process goes: the run waits for a person, a message, or for long."""
        ...

    def never_made(self, call_id: str) -> bool:
        """Whether the run is one that was recorded before, and did not make that call."""
        ...

    def turn_due(self, vt: int) -> bool:
        """After a delivery to an async agent, at virtual time ``vt``: whether the loop on which calls are performed is
        to have a turn before the agent goes on. A replay has no such loop."""
        ...

    def turn(self, timer: int | None) -> Arrival | None:
        """A thread of the run that polls lets others go on, of whom none is ready. The turn that is to be delivered
        first where an event is there for them (``timer``: as of ``poll``), or, on replay, was; else None."""
        ...

    def tick(self, shown: int, reads: int) -> int | None:
        """The run's clock is read, ``reads`` times since the last delivery, and would show ``shown`` (ns): the virtual
        time that a tick is to bring it to first, or None. Live: where more than ``TICK`` went by since. A replay: where
        one was recorded for this reading, or for an earlier one that was not made."""
        ...

    def ticked(self, vt: int) -> None:
        """The tick that ``tick`` asked for was written."""
        ...

    def now(self) -> int:
        """Nanoseconds since the run began (live), or the virtual time reached (replay)."""
        ...

    def close(self) -> None:
        """Stop whatever is still under way. Idempotent."""
        ...
