"""A run that another process goes on with: answered from its trace as far as that reaches, and live from there.

Up to the frontier nothing is performed and nothing is written. There calls without an outcome are performed again or
asked about (``replay/doubt.py``), and the run goes on in the same file, in a new epoch. Nothing is written either
before something happens: a run that waits for an answer which is not there is left as it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

from agentloom.errors import Interrupted
from agentloom.format.values import Tree
from agentloom.replay.doubt import did_it_happen, fate_of
from agentloom.replay.recording import RecordedCall
from agentloom.replay.source import ReplaySource
from agentloom.runtime.calls import Arrival, Call, CallSpec, Status
from agentloom.runtime.engine import Engine
from agentloom.runtime.ledger import TraceLedger
from agentloom.runtime.live_waits import WaitingSource
from agentloom.runtime.outside import Outside
from agentloom.runtime.profiles import Profile
from agentloom.runtime.source import OutcomeSource, StateEntry
from agentloom.store.mail import Mail

__all__ = ["Frontier", "LateLedger"]


class Frontier:
    """The outcome source: ``then`` up to the end of what was recorded, ``live`` from there. ``on_live`` is called once,
    when it is reached; ``retried``: the ids of calls to try again whatever they do."""

    def __init__(
        self,
        then: ReplaySource,
        live: WaitingSource,
        engine: Engine,
        on_live: Callable[[], None],
        retried: frozenset[str] = frozenset(),
    ) -> None:
        self.on_arrival: Callable[[], None] | None = None
        self.then = then
        self.live = live
        self._source: OutcomeSource = then
        """The source of the moment: whom everything is handed to that is the same on both sides."""
        live.on_arrival = self._told
        self.passed = False
        self.ledger: LateLedger | None = None
        self._engine = engine
        engine.asked = then.recording.asks
        self._on_live: Callable[[], None] | None = on_live
        self._retried = retried
        self._begun: dict[str, tuple[Call, Callable[[], None]]] = {}
        """Calls that are waited for, and what begins each for real; in order."""
        self._streams: dict[str, Callable[[], None]] = {}
        self._broken: set[str] = set()

    # -- the frontier --------------------------------------------------------------------------------------------

    def reach(self) -> bool:
        """Whether the run is live: from the first time that everything recorded has happened and more is asked for."""
        if not self.passed and self.then.exhausted:
            self._go_live()
        return self.passed

    def _go_live(self) -> None:
        self.passed, self._source = True, self.live
        recording = self.then.recording
        engine = self._engine
        engine.deliveries, reached = recording.reached
        engine.vt = max(engine.vt, reached)
        engine.asks |= recording.asks
        if self._on_live is not None:
            self._on_live()
            self._on_live = None
        begun, self._begun = self._begun, {}
        for call, perform in begun.values():
            recorded = self.then.recorded(call)
            if recorded is not None and recorded.status is None and self.then.waits_for(call):
                self._go_on(call, recorded, perform)

    def _go_on(self, call: Call, recorded: RecordedCall, perform: Callable[[], None]) -> None:
        """Begin a call that was in doubt, or ask about it."""
        fate = fate_of(call, retried=call.id in self._retried)
        if fate == "broken":
            self._broken.add(call.id)
            self.live.hand(self._interrupted(call))
        elif fate == "wait" and call.spec.outside is not None:
            self._ask(call, recorded, call.spec.outside)
            perform()
        elif fate == "again":
            self._announce()
            perform()
        else:
            outside = did_it_happen(call)
            self._ask(call, recorded, outside)
            self.live.again(call, outside, perform)

    def _ask(self, call: Call, recorded: RecordedCall, outside: Outside) -> None:
        """Give a call the id by which it is answered: that of its open question, or one more."""
        call.spec = replace(call.spec, outside=outside)  # one of its own: many calls may be made with one
        answered = [entry.get("ask") for entry in self.then.recording.said]
        if recorded.ask is not None and recorded.ask["ask"] not in answered:
            call.ask = str(recorded.ask["ask"])
            due = recorded.ask.get("deadline")
            call.spec.outside = replace(outside, due=due if type(due) is int else None)
        else:
            self._engine.put_down(partial(self._engine.suspend, call, outside))

    def _announce(self) -> None:
        if self.ledger is not None:
            self._engine.put_down(self.ledger.announce)

    def _interrupted(self, call: Call) -> Arrival:
        error = Interrupted(
            f"the process died while {call.type} {call.name} was read; {call.chunks} of its parts had come",
            hint="ask again, with what was read so far where that helps",
            call=call.id,
        )
        return Arrival("outcome", call, "error", error=error, vt=self.live.now())

    # -- requests ------------------------------------------------------------------------------------------------

    def _told(self) -> None:
        told = self.on_arrival  # read once: another thread may end the run meanwhile
        if told is not None:
            told()

    def recorded_rule(self, call_id: Callable[[], str], spec: CallSpec, rule: Profile) -> Profile:
        """The recorded profile up to the frontier, the program's own from there."""
        if self.passed or self.then.exhausted:
            return rule
        return self.then.recorded_rule(call_id, spec, rule)

    def begin(self, call: Call) -> None:
        """As the source of the moment."""
        self._source.begin(call)

    def inline(self, call: Call, perform: Callable[[], object]) -> Arrival:
        """As the source of the moment; at the frontier what becomes of a call in doubt."""
        recorded = None if self.passed else self.then.recorded(call)
        if self.passed:
            return self.live.inline(call, perform)
        if recorded is None or recorded.status is not None or not self.reach():
            return self.then.inline(call, perform)
        fate = fate_of(call, retried=call.id in self._retried)
        if fate == "again":
            self._announce()
        elif fate == "wait" and call.spec.outside is not None:
            self._ask(call, recorded, call.spec.outside)
        elif fate == "ask":
            self._ask(call, recorded, did_it_happen(call))
        return self.live.inline(call, perform)

    def open_inline(self, call: Call, perform: Callable[[], Iterator[object]]) -> None:
        """As the source of the moment."""
        if self.passed:
            self.live.open_inline(call, perform)
        else:
            self.then.open_inline(call, perform)
            self._streams[call.id] = partial(self.live.open_inline, call, perform)

    def next_inline(self, call: Call) -> Arrival:
        """As the source of the moment; a stream that was under way when the process died begins anew, or is broken."""
        recorded = self.then.recorded(call)
        if recorded is None or recorded.status is not None or not self.reach():
            return self.live.next_inline(call) if recorded is None else self.then.next_inline(call)
        begin = self._streams.pop(call.id, None)
        if begin is not None:
            fate = fate_of(call, retried=call.id in self._retried)
            if fate != "again":
                return self._interrupted(call)
            self._announce()
            begin()
        return self.live.next_inline(call)

    def start(self, call: Call, perform: Callable[[], Awaitable[object]]) -> None:
        """As the source of the moment."""
        if self.passed:
            self.live.start(call, perform)
        else:
            self.then.start(call, perform)
            self._begun[call.id] = call, partial(self.live.start, call, perform)

    def start_blocking(self, call: Call, perform: Callable[[], object]) -> None:
        """As the source of the moment."""
        if self.passed:
            self.live.start_blocking(call, perform)
        else:
            self.then.start_blocking(call, perform)
            self._begun[call.id] = call, partial(self.live.start_blocking, call, perform)

    def prepare_blocking(self, call: Call, perform: Callable[[], object]) -> Callable[[], None] | None:
        """As the source of the moment."""
        if self.passed:
            return self.live.prepare_blocking(call, perform)
        self.then.prepare_blocking(call, perform)
        self._begun[call.id] = call, partial(self.live.start_blocking, call, perform)
        return None

    def open(self, call: Call, perform: Callable[[], AsyncIterator[object]]) -> None:
        """As the source of the moment."""
        if self.passed:
            self.live.open(call, perform)
        else:
            self.then.open(call, perform)
            self._streams[call.id] = partial(self.live.open, call, perform)

    def want(self, call: Call) -> None:
        """As the source of the moment."""
        if not self.passed:
            self.then.want(call)
            begin = self._streams.get(call.id)
            if begin is not None:
                self._begun[call.id] = call, partial(self._open_and_want, call, begin)
            return
        begin = self._streams.pop(call.id, None)
        recorded = self.then.recorded(call)
        if begin is not None and recorded is not None:
            self._go_on(call, recorded, partial(self._open_and_want, call, begin))
        elif call.id not in self._broken:
            self.live.want(call)

    def _open_and_want(self, call: Call, begin: Callable[[], None]) -> None:
        self._streams.pop(call.id, None)
        begin()
        self.live.want(call)

    # -- what the agent ends itself ------------------------------------------------------------------------------

    def cancel(self, call: Call, status: Status) -> None:
        """As the source of the moment."""
        self._begun.pop(call.id, None)
        self._streams.pop(call.id, None)
        if self.passed and not self.then.left_before(call):
            self.live.cancel(call, status)
        else:
            self.then.cancel(call, status)

    def ended(self, call: Call, status: Status, tree: Tree) -> None:
        """As the source of the moment."""
        self._source.ended(call, status, tree)

    def state(self, entry: StateEntry) -> None:
        """As the source of the moment."""
        self._source.state(entry)

    def finished(self, status: str, tree: Tree) -> None:
        """As the source of the moment."""
        self._source.finished(status, tree)

    # -- the order -----------------------------------------------------------------------------------------------

    def poll(self, timer: int | None) -> Arrival | None:
        """As the source of the moment."""
        self.reach()
        return self._source.poll(timer)

    def interrupt(self) -> bool:
        """Up to the frontier the resumption is given up, and the run left as it was."""
        return self._source.interrupt()

    def goes_on(self) -> bool:
        """As the source of the moment."""
        return self._source.goes_on()

    def never_made(self, call_id: str) -> bool:
        """As the source of the moment."""
        return not (self.passed or self.then.exhausted) and self.then.never_made(call_id)

    def rests(self, timer: int | None) -> None:
        """As the source of the moment."""
        self._source.rests(timer)

    def turn_due(self, vt: int) -> bool:
        """As the source of the moment."""
        return self._source.turn_due(vt)

    def turn(self, timer: int | None) -> Arrival | None:
        """As the source of the moment."""
        self.reach()
        return self._source.turn(timer)

    def tick(self, shown: int, reads: int) -> int | None:
        """As the source of the moment."""
        if not self.then.ticking:
            self.reach()
        return self._source.tick(shown, reads)

    def ticked(self, vt: int) -> None:
        """As the source of the moment."""
        self._source.ticked(vt)

    def now(self) -> int:
        """As the source of the moment."""
        return self._source.now()

    def close(self) -> None:
        """Stop whatever is still under way."""
        self.then.close()
        self.live.close()


class LateLedger:
    """The ledger: writes nothing up to the frontier, into the trace from there. ``epoch`` and ``payloads`` are said
    before the first entry, and where entries are void from number ``void`` on that before it."""

    def __init__(
        self,
        frontier: Frontier,
        ledger: TraceLedger,
        epoch: int,
        payloads: Mapping[str, Tree],
        void: int | None = None,
    ) -> None:
        self._frontier = frontier
        self._ledger = ledger
        self._epoch = epoch
        self._payloads: Mapping[str, Tree] | None = payloads
        self._void = void
        self._marks = [str(entry["kind"]) for entry in frontier.then.recording.marks]
        frontier.ledger = self

    def announce(self) -> None:
        """Say that another process goes on, once."""
        payloads, self._payloads = self._payloads, None
        if payloads is not None:
            if self._void is not None:
                self._ledger.retract(self._void)
            self._ledger.resume(self._epoch, payloads)

    def start(self, facts: Mapping[str, Tree], payloads: Mapping[str, Tree], nonce: bytes) -> None:
        """A resumed run has begun long ago."""
        raise RuntimeError("a resumed run has a start entry")

    def _open(self, *, reach: bool = False) -> TraceLedger | None:
        """What to write into; None up to the frontier. ``reach``: what is written next is more than was recorded, where
        all that was has happened."""
        if self._frontier.reach() if reach else self._frontier.passed:
            self.announce()
            return self._ledger
        return None

    def request(self, call: Call) -> None:
        """As of the trace, behind the frontier."""
        if (ledger := self._open(reach=True)) is not None:
            ledger.request(call)

    def outcome(
        self,
        call: Call,
        status: Status,
        tree: Tree,
        *,
        d: int | None,
        vt: int,
        usage: Mapping[str, Tree] | None,
        dur: int | None,
        text: bytes | None = None,
    ) -> None:
        """As of the trace, behind the frontier. What the agent ends itself may have been ended when recorded."""
        if self._frontier.then.left_before(call):
            return
        if (ledger := self._open(reach=d is None)) is not None:
            ledger.outcome(call, status, tree, d=d, vt=vt, usage=usage, dur=dur, text=text)

    def chunk(self, call: Call, tree: Tree, *, d: int, vt: int, offset: int) -> None:
        """As of the trace, behind the frontier."""
        if (ledger := self._open()) is not None:
            ledger.chunk(call, tree, d=d, vt=vt, offset=offset)

    def event(self, kind: str, d: int, vt: int, reads: int | None = None) -> None:
        """As of the trace, behind the frontier."""
        if (ledger := self._open()) is not None:
            ledger.event(kind, d, vt, reads)

    def suspend(self, call: Call, ask: str, outside: Outside) -> None:
        """As of the trace, behind the frontier."""
        if (ledger := self._open()) is not None:
            ledger.suspend(call, ask, outside)

    def said(self, call: Call, mail: Mail) -> None:
        """As of the trace, behind the frontier."""
        if (ledger := self._open()) is not None:
            ledger.said(call, mail)

    def state(self, entry: StateEntry) -> None:
        """As of the trace, behind the frontier."""
        if (ledger := self._open(reach=True)) is not None:
            ledger.state(entry)

    def mark(self, kind: str, tree: Tree, *, call: str | None, why: str | None = None) -> None:
        """As of the trace, behind the frontier. Marks are no steps: so many of a kind as were recorded are there."""
        if not self._frontier.passed and kind in self._marks:
            self._marks.remove(kind)
        elif (ledger := self._open(reach=True)) is not None:
            ledger.mark(kind, tree, call=call, why=why)

    def end(self, status: str, tree: Tree, totals: Mapping[str, Tree]) -> None:
        """As of the trace, behind the frontier."""
        if (ledger := self._open(reach=True)) is not None:
            ledger.end(status, tree, totals)
