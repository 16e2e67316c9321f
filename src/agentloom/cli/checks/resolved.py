"""A recorded run: which models were asked for by name, and which ones answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

from agentloom.cli.checks.aliases import NAME
from agentloom.cli.checks.findings import Finding, Level
from agentloom.cli.checks.model_names import standing
from agentloom.errors import PayloadMissing
from agentloom.format.values import Tree
from agentloom.replay.recording import RecordedCall, Recording

__all__ = ["resolved_findings"]


def resolved_findings(recording: Recording, name: str) -> list[Finding]:
    """A finding for each model that was asked for by a floating or unknown name, or answered by another name.

    ``name``: what messages call the run. A floating name is a warning; the answers say what it stood for then.
    """
    asked: dict[str, Counter[str]] = {}
    places: dict[str, RecordedCall] = {}
    for call in recording.calls:
        if call.type == "model":
            places.setdefault(call.name, call)
            asked.setdefault(call.name, Counter())[_answered(recording, call) or ""] += 1
    return [
        found for model, counts in asked.items() for found in _of_model(model, counts, places[model], name)
    ]


def _of_model(model: str, counts: Counter[str], first: RecordedCall, name: str) -> Iterator[Finding]:
    stands = standing(model)
    bare = model.partition(":")[2] or model
    others = [answered for answered in counts if answered and answered not in (model, bare)]
    if stands.kind == "pinned" and not others:
        return
    told = ", ".join(
        f"{count} by {answered or 'a model that was not named'}" for answered, count in counts.most_common(4)
    )
    times = "once" if counts.total() == 1 else f"{counts.total():,} times"
    said = f"{model} was asked {times}; answered {told}"
    reason = (
        stands.reason if stands.kind != "pinned" else "another model answered than the one that was asked"
    )
    pin = next((answered for answered in others if standing(answered).kind == "pinned"), None)
    fix = (
        f"name {pin}"
        if pin
        else f"name {stands.fix}"
        if stands.fix
        else "nothing pinned was named by the answers"
    )
    level: Level = "warning" if stands.kind == "floating" or len(others) > 1 else "note"
    yield Finding(NAME, level, f"{name}, call {first.index}", 0, 0, model, said, reason, fix)


def _answered(recording: Recording, call: RecordedCall) -> str | None:
    """The model that an answer names: in agentloom's own form, an SDK's exchange, or the first chunk that says it."""
    try:
        found = _model(recording.outcome(call))
        chunks: Iterable[Tree] = recording.chunks_of(call) if call.chunks else ()
        return found or next((model for chunk in chunks if (model := _model(chunk))), None)
    except PayloadMissing:
        return None


def _model(tree: Tree) -> str | None:
    if not isinstance(tree, dict):
        return None
    body = tree.get("json") if isinstance(tree.get("json"), dict) else tree
    for part in (
        body,
        cast("dict[str, Tree]", body).get("response"),
        cast("dict[str, Tree]", body).get("message"),
    ):
        if isinstance(part, dict):
            named = part.get("model") or part.get("modelVersion")
            if isinstance(named, str):
                return named
    return None
