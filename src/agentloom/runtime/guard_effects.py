"""Effects inside a run: refused, let through for a declared scope, or noted, as the run's guard says.

``Session.effects`` is who is told: a ``Noting`` while recording, a refusing one of the replay. Without it (a recording
with the guard off) nothing here happens.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from agentloom.errors import UnrecordedEffect
from agentloom.runtime.boundary import call_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.effects import NOBODY, READS, RUNS_ONLY, Effect, Effects, Kind
from agentloom.runtime.finding import attributed, in_import
from agentloom.runtime.guard_allow import ALLOWS, reason_for
from agentloom.runtime.passed import client_of
from agentloom.runtime.scope import current
from agentloom.runtime.strands import let_others
from agentloom.runtime.strays import stray

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = [
    "Noting",
    "RunEffects",
    "facts_of",
    "of_run",
    "of_session",
    "refusal",
    "tell_unrecorded",
    "watch_run",
]

_log = logging.getLogger("agentloom.guard")
_MOST = 200
_SHOWN = 3


class RunEffects(Effects, Protocol):
    """Who is told of the effects of one run."""

    def allowed(self, effect: Effect, reason: str) -> None:
        """One in a scope that allows it. May raise."""
        ...

    def refused(self, effect: Effect, error: UnrecordedEffect) -> BaseException:
        """One that a strict guard refuses: what to raise where it was attempted."""
        ...


def of_run() -> Session | None:
    """The run whose doing the current code is, threads that it started included, where its effects matter."""
    scope = current()
    session = scope.session if scope is not None else stray()
    return session if session is not None and session.effects is not None else None


def of_session(
    session: Session, found: tuple[Kind, str], frame: FrameType | None, *, everything: bool
) -> None:
    """Judge one event of a run; raises what refuses it. ``everything``: also where none of the program's own code is on
    the stack."""
    kind = found[0]
    effects = session.effects
    policy = session.guard.policy
    if effects is None or session.engine.writing or (policy == "off" and kind in RUNS_ONLY):
        return
    effect, direct = attributed(found, frame, session.engine.places, everything=everything)
    if effect is None:
        return
    if kind == "network" and (client := client_of(frame)):
        effect = Effect(kind, f"{effect.what} ({client})", effect.where)
    reason = reason_for(kind) if effect.where != NOBODY and policy != "off" else None
    if reason is not None:
        _allowed(session, effects, effect, reason, direct=direct)
    elif (
        policy == "strict" and direct and effect.where != NOBODY and not (kind in READS and in_import(frame))
    ):
        failure = effects.refused(effect, refusal(effect))
        if session.engine.failure is None:
            session.engine.failure = failure
        raise failure
    else:
        effects.attempt(effect)


def _allowed(session: Session, effects: RunEffects, effect: Effect, reason: str, *, direct: bool) -> None:
    """An effect in a scope that allows it. A write is a host call of its own, so that the trace has no gap there; on
    replay it is found in the trace, and then refused."""
    if effect.kind == "file write" and direct and current() is not None:
        root = os.path.join(session.engine.places.root, "")
        request = {"what": effect.what.replace(root, "")}
        call_inline(CallSpec("file", "write", request, effect="write"), lambda _: None)
        if isinstance(effects, Noting):
            return
    effects.allowed(effect, reason)


_INSTEAD: dict[Kind, str] = {
    "file read": 'read it in a tool (@tool(effect="read")) or in step(...)',
    "file write": "write it in a tool, which runs once and never on replay",
    "database": "use it in a tool, which runs once and never on replay",
    "network": "use http(...), or a tool",
    "process": "start it in a tool, which runs once and never on replay",
    "native": "call it in a tool, which runs once and never on replay",
    "library": "load and use it in a tool",
    "identity": "use uuid() for an id, which is recorded",
    "stdin": "ask with input(), which is recorded, or give it to the agent as its input",
    "readiness": "wait for it in a tool, which runs once and never on replay",
    "setting": "set it before the run",
    "tool": "give it arguments that can be recorded",
}


def refusal(effect: Effect) -> UnrecordedEffect:
    """The error for an effect that a strict guard refuses, with the host function to use instead."""
    place, _, function = effect.where.partition(" ")
    file, _, line = place.rpartition(":")
    kind = ALLOWS.get(effect.kind)
    declare = f'; or declare it: with allow("{kind}", reason="...")' if kind is not None else ""
    if declare and effect.kind not in READS:
        declare += ", which a replay refuses: no replay of the run is identical then"
    return UnrecordedEffect(
        f"{place} in {function} {effect.what}; agent code may not, because the trace would not hold it",
        hint=f"{_INSTEAD[effect.kind]}{declare}",
        what=effect.what,
        kind=effect.kind,
        file=file,
        line=int(line) if line.isdigit() else 0,
        function=function,
    )


def watch_run(session: Session) -> None:
    """Note what a recorded run does outside every host call; it is written before the run's end."""
    noting = Noting()
    session.effects = session.engine.unrecorded = noting


class Noting:
    """Keeps what a recorded run did outside every host call, each once; a strict guard's refusals are raised."""

    def __init__(self) -> None:
        self.seen: dict[Effect, str | None] = {}
        """With the reason of the scope that allowed it, if one did."""
        self.more = 0

    def attempt(self, effect: Effect) -> None:
        """Note it and let it happen. It may wait for what another thread of the run has yet to begin."""
        self._keep(effect, None)
        if effect.kind == "network":
            let_others()

    def allowed(self, effect: Effect, reason: str) -> None:
        """Note it with the reason and let it happen."""
        self._keep(effect, reason)

    def refused(self, effect: Effect, error: UnrecordedEffect) -> BaseException:
        """An ordinary error at the line. The run ends failed with it, whatever the agent catches (``Engine.judge``)."""
        return error

    def _keep(self, effect: Effect, reason: str | None) -> None:
        if effect in self.seen:
            return
        if len(self.seen) >= _MOST:
            self.more += 1
        else:
            self.seen[effect] = reason

    def facts(self) -> list[dict[str, str]]:
        """What was seen, for people and other processes."""
        return [facts_of(effect, reason) for effect, reason in self.seen.items()]

    def marks(self) -> Iterator[tuple[str, object, str | None]]:
        """The entries for the trace, as kind, value and code: reads as a note, everything else as a gap (nothing
        replays past it)."""
        for effect, reason in self.seen.items():
            facts = facts_of(effect, reason)
            if effect.kind in READS:
                yield "note", {"unrecorded": facts}, None
            else:
                yield "gap", facts, "unrecorded-effect"
        if self.more:
            yield "note", {"unrecorded": {"more": self.more}}, None


def tell_unrecorded(noting: object) -> None:
    """Say at the end of a run what of it is not in its trace, if anything (logger ``agentloom.guard``)."""
    if not isinstance(noting, Noting) or not noting.seen:
        return
    said = [str(effect) for effect in noting.seen]
    more = len(said) - _SHOWN + noting.more
    refused = any(effect.kind not in READS for effect in noting.seen)
    _log.warning(
        "not recorded: %s%s%s",
        ", ".join(said[:_SHOWN]),
        f" and {more} more" if more > 0 else "",
        "; a replay refuses it and stops there: move it into a tool"
        if refused
        else "; a replay reads it as it is then",
    )


def facts_of(effect: Effect, reason: str | None) -> dict[str, str]:
    """One effect as plain data."""
    facts = {"kind": str(effect.kind), "what": effect.what, "where": effect.where}
    return facts if reason is None else facts | {"allowed": reason}
