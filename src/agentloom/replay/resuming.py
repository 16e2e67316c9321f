"""Resuming: a run whose process has ended goes on in this one, in the same trace.

What was recorded is replayed first, call by call. Where the code asks for something else than when recorded nothing has
happened yet: the run is left as it was, and the report of the replay says what to do.
"""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from collections.abc import Mapping
from functools import partial
from typing import cast

from agentloom.errors import ControlFlow, DivergenceError, NotSupported, Suspend
from agentloom.format.journal import Entry, Journal
from agentloom.format.values import Tree
from agentloom.replay.cause import CodeFacts
from agentloom.replay.frontier import Frontier, LateLedger
from agentloom.replay.recording import RecordedCall, Recording
from agentloom.replay.refusal import Refusing
from agentloom.replay.replayer import conclude, current_facts, session_for, watch_over
from agentloom.replay.source import ReplaySource
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.guard_effects import watch_run
from agentloom.runtime.guard_env import Resumed
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.identity import code_identity, environment
from agentloom.runtime.ledger import TraceLedger
from agentloom.runtime.live_waits import Answerer, WaitingSource
from agentloom.runtime.recorder import Recording as RunUnderWay
from agentloom.runtime.registry import TYPES
from agentloom.runtime.session import Session
from agentloom.runtime.waits import Waits
from agentloom.store.base import Appender, Store

__all__ = ["Resumption", "begin_again", "last_stop"]


class Resumption:
    """A run that goes on here: ``run`` is what drivers drive."""

    def __init__(self, run: RunUnderWay, frontier: Frontier, facts: CodeFacts) -> None:
        self.run = run
        self._frontier = frontier
        self._facts = facts

    @property
    def live(self) -> bool:
        """Whether it has come to what was not recorded."""
        return self._frontier.passed

    def judged(self, error: BaseException) -> BaseException:
        """What to raise where ``error`` came out of the run."""
        then = self._frontier.then
        if then.unusable is not None:
            return then.unusable
        if isinstance(error, ControlFlow) and not isinstance(error, Suspend) and then.finding is not None:
            return DivergenceError(conclude(then, self._facts))
        return error


def begin_again(
    agent: AgentFunction,
    store: Store,
    run: str,
    *,
    outer: asyncio.AbstractEventLoop | None,
    retry_failed: bool = False,
    answerer: Answerer | None = None,
) -> Resumption:
    """Take the run's lease and make it ready to be driven. Raises ``LeaseHeld`` (who has it), ``NotSupported`` (it has
    ended, or has a gap), ``FormatError`` and ``IntegrityError`` where the trace does not hold."""
    appender = store.reopen(run)
    try:
        journal = Journal.parse(store.read(run))
        return _ready(agent, store, appender, journal, outer, retry_failed, answerer)
    except BaseException:
        appender.close()
        raise


def _ready(
    agent: AgentFunction,
    store: Store,
    appender: Appender,
    journal: Journal,
    outer: asyncio.AbstractEventLoop | None,
    retry_failed: bool,
    answerer: Answerer | None,
) -> Resumption:
    recording = Recording.from_journal(journal)
    void = _said_alone(recording)
    if void is None:
        void = _chunks_alone(recording)
    retried: RecordedCall | None = None
    if retry_failed:
        retried = _last_failed(recording)
        void = _seq_of_outcome(journal, retried)
    if void is not None:
        recording = Recording.from_journal(journal, before=void)
    _check(recording)
    tell_of_power(recording)
    facts = current_facts(agent, recording)
    then = ReplaySource(recording)
    session = session_for(recording, then, agent.root, goes_on=True)
    engine = session.engine
    start = _wall_start(recording)
    taken = [str(entry["mail"]) for entry in recording.said if "mail" in entry]
    waits = Waits(
        partial(store.mail, recording.run), TYPES, start=start, taken=taken, stopped=last_stop(recording)
    )
    live = WaitingSource(outer, REAL_CLOCKS["monotonic_ns"], waits, answerer)
    frontier = Frontier(
        then,
        live,
        engine,
        partial(_go_live, session, live, start),
        frozenset() if retried is None else frozenset((retried.id,)),
    )
    ledger = TraceLedger.again(
        journal, appender.append, os.urandom, reads=session.guard.pending, redactor=engine.redactor
    )
    engine.ledger = LateLedger(
        frontier,
        ledger,
        recording.epoch + 1,
        _payloads(agent, recording),
        void,
    )
    said = engine.ledger.said
    live.said = lambda call, mail: engine.put_down(partial(said, call, mail))
    engine.suspends = True
    engine.source = session.source = frontier
    watch_over(session, Refusing(then))
    under_way = RunUnderWay(session, ledger, store, appender, recording.payload("input"))
    return Resumption(under_way, frontier, facts)


def _go_live(session: Session, live: WaitingSource, start: int) -> None:
    """The frontier is reached: from here on the session is that of a run that is recorded."""
    now = cast(int, REAL_CLOCKS["time_ns"]()) - start
    live.goes_on_at(max(now, session.engine.vt))
    watch_run(session)
    if isinstance(session.guard.environment, Resumed):
        session.guard.environment.live = True


def tell_of_power(recording: Recording) -> None:
    """Warn where a power cut may have taken the end of the trace: its process died, this machine was started since, and
    entries were not synced. What is lost then was done all the same, and nothing says so."""
    policy = recording.payload("policy")
    if not isinstance(policy, dict) or policy.get("durability") != "process":
        return
    started = _machine_started()
    last = recording.journal.entries[-1].get("at")
    waits = {call.id for call in recording.open_asks()}
    under_way = [call for call in recording.calls if call.status is None and call.id not in waits]
    if started is None or type(last) is not int or last > started or (waits and not under_way):
        return
    warnings.warn(
        f"run {recording.run} was cut off before this machine was started, and was recorded with durability"
        " 'process': after a power cut its last entries may be lost, and what they recorded would be done again."
        " AGENTLOOM_DURABILITY=power (or LocalStore(durability='power')) loses none",
        RuntimeWarning,
        stacklevel=2,
    )


def _machine_started() -> int | None:
    """When this machine was started, nanoseconds since 1970; None where the system does not say."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    if clock is None:
        return None
    return cast(int, REAL_CLOCKS["time_ns"]()) - cast(int, REAL_CLOCKS["clock_gettime_ns"](clock))


def _said_alone(recording: Recording) -> int | None:
    """The number of the entry that says what was said to the run, where its process died before it wrote the outcome
    made of that: it was not taken, and is taken again from the mail. None where there is no such entry."""
    entries = [entry for entry in recording.journal.entries if entry["seq"] not in recording.void]
    last = entries[-1]
    if last["kind"] not in ("answer", "signal"):
        return None
    if last["kind"] == "answer" and _did_not_happen(recording, entries, last):
        return None  # the call in doubt may have been performed since
    return cast(int, last["seq"])


def _chunks_alone(recording: Recording) -> int | None:
    """The number of the first entry of chunks with which deliveries begin to be missing: streams that were read side by
    side are written one after the other, and the process died between two of them. None where none is missing."""
    rows: list[tuple[int, int]] = []
    for entry in recording.journal.entries:
        if entry["seq"] not in recording.void:
            numbers = [item[0] for item in entry["items"]] if entry["kind"] == "chunks" else [entry.get("d")]
            rows += [(d, cast(int, entry["seq"])) for d in numbers if type(d) is int]
    there = {d for d, _ in rows}
    missing = next((d for d in range(1, max(there, default=0)) if d not in there), None)
    return None if missing is None else min(seq for d, seq in rows if d > missing)


def _did_not_happen(recording: Recording, entries: list[Entry], answer: Entry) -> bool:
    """Whether ``answer`` says of a call in doubt that it did not happen, so that it was performed next."""
    asked = next(one for one in entries if one["kind"] == "suspend" and one["ask"] == answer["ask"])
    facts, said = (recording.tree(one["val"], "what was asked, or said") for one in (asked, answer))
    return (
        isinstance(facts, dict)
        and facts.get("in_doubt") is True
        and isinstance(said, dict)
        and said.get("happened") is False
    )


def last_stop(recording: Recording) -> int:
    """When the run was last stopped from outside, or a call of it that waited failed; nanoseconds since 1970."""
    waited = {call.id for call in recording.calls if call.ask is not None and call.status == "error"}
    return max(
        (
            cast(int, entry["at"])
            for entry in recording.journal.entries
            if entry["kind"] == "cancel" or (entry["kind"] == "outcome" and entry.get("call") in waited)
        ),
        default=0,
    )


def _wall_start(recording: Recording) -> int:
    clock = recording.start.get("clock")
    start = clock.get("start") if isinstance(clock, dict) else None
    return start if isinstance(start, int) else 0


def _check(recording: Recording) -> None:
    recording.replayable()
    if recording.closed:
        raise NotSupported(
            f"run {recording.run} has ended ({recording.status}): there is nothing to resume",
            hint="try a failed call again with --retry-failed (retry_failed=True)"
            if recording.status == "failed"
            else "replay it, or run the agent anew",
            run=recording.run,
            status=recording.status,
        )
    if recording.gaps:
        gap = recording.gaps[0]
        raise NotSupported(
            f"run {recording.run} did something that is not in its trace (entry {gap['seq']}, {gap.get('why')}):"
            " it cannot be gone on with",
            hint="run the agent anew",
            run=recording.run,
        )
    code = recording.payload("code")
    entry = code.get("entry") if isinstance(code, dict) else None
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if kind in ("script", "call", "block"):
        raise NotSupported(
            f"run {recording.run} was recorded as {kind}, which another process cannot go on with",
            hint="make the code an @agent and start it with run(), arun() or `agentloom run FILE:AGENT`",
            run=recording.run,
        )


def _payloads(agent: AgentFunction, recording: Recording) -> Mapping[str, Tree]:
    """Code and environment of this process, where they are not as the trace says."""
    now: dict[str, Tree] = {"code": cast(Tree, code_identity(agent)), "env": cast(Tree, environment())}
    then: dict[str, Tree] = {name: recording.payload(name) for name in now}
    for entry in recording.epochs:
        for name in now:
            blob = entry.get(name)
            if isinstance(blob, str):
                then[name] = recording.tree(blob, f"the {name} of epoch {entry.get('epoch')}")
    return {name: tree for name, tree in now.items() if tree != then[name]}


# -- a call that failed is tried again --------------------------------------------------------------------------------


def _last_failed(recording: Recording) -> RecordedCall:
    if recording.status != "failed":
        raise NotSupported(
            f"run {recording.run} has not failed: it is {recording.status or 'unfinished'}",
            hint="resume it without --retry-failed" if recording.status is None else "run the agent anew",
            run=recording.run,
        )
    failed = [call for call in recording.calls if call.status == "error" and not call.left]
    if not failed:
        raise NotSupported(
            f"no call of run {recording.run} failed: its own code did",
            hint="mend the code and run the agent anew",
            run=recording.run,
        )
    last = max(failed, key=lambda call: _seq_of_outcome(recording.journal, call))
    seq = _seq_of_outcome(recording.journal, last)
    lost = [call for call in recording.calls if call.seq > seq and call.effect == "write"]
    if lost:
        names = ", ".join(f"{call.index} {call.name}" for call in lost[:3])
        raise NotSupported(
            f"after call {last.index} ({last.type} {last.name}) failed the run did more: {names};"
            " trying it again would do that twice",
            hint="run the agent anew, with what was done in mind",
            run=recording.run,
        )
    return last


def _seq_of_outcome(journal: Journal, call: RecordedCall) -> int:
    return max(
        cast(int, entry["seq"])
        for entry in journal.entries
        if entry["kind"] == "outcome" and entry.get("call") == call.id
    )
