"""Calls in doubt: asked for when the process died, without an outcome. Which are performed again, which asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from agentloom.errors import ValueRefused
from agentloom.format.guards import is_map
from agentloom.runtime.calls import Call
from agentloom.runtime.live_waits import Again
from agentloom.runtime.outside import Outside

__all__ = ["Fate", "did_it_happen", "fate_of"]

Fate = Literal["again", "ask", "wait", "broken"]
"""``again``: performed again. ``ask``: a person says whether it happened. ``wait``: it waits for somebody anyway.
``broken``: a stream of which the agent has read; it ends with an error."""

_HARMLESS = frozenset(
    ("model", "now", "random", "uuid", "env", "sleep", "step", "retrieve", "ask", "file", "changed")
)
"""Kinds of calls that do nothing to the world that must not happen twice (file: an allowed read; ask: a line from the
terminal)."""
_SAFE_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))  # RFC 9110, 9.2.1


def fate_of(call: Call, *, retried: bool) -> Fate:
    """What becomes of a call that has no outcome. ``retried``: somebody wants it to be tried again."""
    if call.chunks:
        return "broken"
    if call.spec.outside is not None:
        return "wait"
    if retried or call.type in _HARMLESS or call.spec.effect in ("pure", "read") or call.spec.idempotent:
        return "again"
    if call.type == "http" and str(call.tree.get("method", "")).upper() in _SAFE_METHODS:
        return "again"
    if call.type == "memory" and call.name in ("get", "search"):
        return "again"
    return "ask"


def did_it_happen(call: Call) -> Outside:
    """The question whether a call in doubt has happened. What is answered: ``{"happened": false}``, and it is performed
    now; or ``{"happened": true, "result": ...}``, and that is its result."""
    facts: dict[str, object] = {
        "question": f"Did this happen? {call.type} {call.name} was under way when the process died.",
        "in_doubt": True,
        "kind": call.type,
        "name": call.name,
        "request": call.tree,
        "choices": ["no", "yes"],
    }
    return Outside("answer", facts=facts, read=_happened)


def _happened(said: object) -> object:
    answer: Mapping[str, object] = said if is_map(said) else {}
    happened = answer.get("happened")
    if happened is False:
        return Again()
    if happened is not True:
        raise ValueRefused(
            "answer",
            type(said).__name__,
            'whether a call in doubt happened is {"happened": false}, or {"happened": true, "result": ...}',
            hint="answer it again in that form",
        )
    return answer.get("result")
