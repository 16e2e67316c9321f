"""Replays of what is recorded where it stands. Loaded by the first of them: who records does without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from agentloom.api.recording_target import Target, where_it_stands
from agentloom.api.trace import Trace, holds_call
from agentloom.errors import ControlFlow, DivergenceError, TargetError
from agentloom.format.values import encode
from agentloom.replay.fields import Comparison
from agentloom.replay.recording import Recording
from agentloom.replay.refusal import Refusing
from agentloom.replay.replayer import conclude, current_facts, replay, session_for, watch_over
from agentloom.replay.report import Report
from agentloom.replay.source import ReplaySource
from agentloom.replay.stock import ReplayInPlace
from agentloom.runtime.redaction_rules import NO_RULES, Rules
from agentloom.runtime.registry import TYPES

__all__ = ["ReplayedBlock", "replay_in_place"]


def replay_in_place(trace: Trace, target: Target, main: Callable[..., Any]) -> Report:
    """Replay ``trace`` with the code that is at hand. Raises ``DivergenceError`` where it differs, and what a replay
    raises that cannot be made at all."""
    given: dict[str, Any] | None = None
    if target.missing is None and holds_call(trace):
        given = {"args": list(target.args), "kwargs": dict(target.kwargs)}
    report = replay(trace.journal, target.agent(main), given=given)
    if report.verdict == "diverged":
        raise DivergenceError(report)
    return report


class ReplayedBlock:
    """The replay of a block, begun. ``TargetError`` for the trace of something else. ``secret``: what is in it beside
    what the trace says; ``on_cut_off``, ``lacks``: see ``RecordedBlock``."""

    def __init__(
        self,
        trace: Trace,
        target: Target,
        secret: Rules = NO_RULES,
        on_cut_off: Callable[[], None] | None = None,
        lacks: Sequence[str] = (),
    ) -> None:
        recording = Recording.from_journal(trace.journal)
        recording.replayable()
        agent = target.agent(where_it_stands)
        self._trace = trace
        self._facts = current_facts(agent, recording)
        self._source = ReplaySource(recording)
        self._source.lacks = tuple(lacks)
        self.session = session_for(recording, self._source, agent.root)
        if self.session.engine.redactor is not None:
            self.session.engine.redactor.add(secret)
        given: dict[str, Any] = {"args": [], "kwargs": dict(target.kwargs)}
        self._differs = self._source.input_differs(encode(given, TYPES))
        if self.session.stock is None:
            raise TargetError(
                f"run {recording.run} is none of a block or a function where it stands, as {recording.agent!r} is here",
                hint="record it again, or replay it by what made it",
            )
        if isinstance(in_place := self.session.stock.in_place, ReplayInPlace):
            in_place.on_cut_off = on_cut_off
        watch_over(self.session, Refusing(self._source))

    def end(self, finish: Callable[[], None], notes: Sequence[object]) -> Report | None:
        """End the run with ``finish``, and what was noted of it; the report. None: an error that no verdict explains is
        on its way. Raises what the trace cannot give."""
        source = self._source
        try:
            finish()
        except ControlFlow:
            pass  # the verdict is with the source
        finally:
            self.session.source.close()
            self.session.release()
        if source.unusable is not None:
            raise source.unusable
        if source.finding is None and not source.complete:
            return None
        return conclude(source, self._facts, differs=self._differs or self._notes_differ(notes))

    def _notes_differ(self, notes: Sequence[object]) -> Comparison | None:
        """What was noted of the input (the body of a request) is compared too."""
        then, now = _facts_in(self._trace.notes), _facts_in(notes)
        both = [name for name in now if name in then]
        recorded, given = (encode({name: facts[name] for name in both}, TYPES) for facts in (then, now))
        return self._source.differs(recorded, given, "")


def _facts_in(notes: Sequence[object]) -> dict[str, object]:
    facts: dict[str, object] = {}
    for note in notes:
        if isinstance(note, dict):
            facts |= cast("dict[str, object]", note)
    return facts
