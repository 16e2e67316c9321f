"""The run of a double run: the one that was named, the newest of the target in the store, or one recorded now."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, cast

from agentloom.cli.options import Settings
from agentloom.cli.replay import Place, beginning, entry_of, place_of
from agentloom.cli.run import record_job
from agentloom.cli.runs import Found, find, short
from agentloom.cli.script_parent import child_environment, start
from agentloom.cli.targets import Target, parse_target
from agentloom.errors import LoomError, NotSupported, TargetError
from agentloom.format.values import decode
from agentloom.replay.recording import Recording
from agentloom.store import Query

__all__ = ["Chosen", "chosen_run", "record_run"]

_LOOKED = 200
"""Runs of the store that are looked at for one of the target, the newest first."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A run to replay. ``how`` it was chosen, in words; ``place``: the program of today."""

    found: Found
    recording: Recording
    place: Place
    how: str

    @property
    def name(self) -> str:
        """What to call the run."""
        return self.found.name


def chosen_run(
    settings: Settings, target: str, run: str | None, inputs: Sequence[str], stack: ExitStack
) -> Chosen | None:
    """The run ``run``, else the newest of ``target`` (with this input, where one is given); None where there is none.

    Raises as ``find``; ``TargetError`` where a run that was named cannot be replayed by ``target``.
    """
    if run is not None:
        found = find(settings, run)
        return _chosen(found, beginning(found), target, "as named", stack)
    if os.path.isdir(target):
        return None
    wanted = parse_target(target)
    store = settings.open_store()
    for row in store.runs(Query(limit=_LOOKED)):
        if row.status in ("running", "damaged", "crashed"):
            continue
        found = Found(store.read(row.run), row.run, None)
        try:
            recording = beginning(found)
            if _is_of(entry_of(recording), wanted) and _has_input(recording, inputs):
                how = "the newest run of it in the store" + (" with that input" if inputs else "")
                return _chosen(found, recording, target, how, stack)
        except LoomError:  # a run that cannot be read is none that could be replayed; `verify` says why
            continue
    return None


def record_run(settings: Settings, target: str, inputs: Sequence[str], stack: ExitStack) -> Chosen:
    """Record a run of ``target`` now, as ``agentloom run TARGET -- INPUT...`` does; raises what kept it from that."""
    job = record_job(parse_target(target), inputs, settings.store) | {"json": True}
    child = start(job, child_environment(None, os.environ))
    if child.run is None:
        facts = child.error or {}
        raise TargetError(
            str(facts.get("message") or f"{target} recorded nothing (exit code {child.code})"),
            hint=facts.get("next") or f"agentloom run {target}",
        )
    found = find(settings, child.run)
    return _chosen(found, beginning(found), target, "recorded now", stack)


def _chosen(found: Found, recording: Recording, target: str, how: str, stack: ExitStack) -> Chosen:
    entry = entry_of(recording)
    is_run = not (os.path.exists(target.partition(":")[0]) or ":" in target) or target == found.path
    given = None if is_run or os.path.isdir(target) else target
    if entry.get("kind") == "call" and (given is None or parse_target(given).name is None):
        raise NotSupported(
            f"run {short(recording.run)} does not say how {recording.agent} was called: {entry.get('missing')}",
            hint="name a function without arguments that makes that call: agentloom check FILE:NAME RUN",
        )
    return Chosen(found, recording, place_of(recording, entry, given, None, stack), how)


def _is_of(entry: dict[str, Any], wanted: Target) -> bool:
    """Whether a run was made by the target: the same file (or module), and the same object where one is named."""
    script = entry.get("kind") == "script"
    if entry.get("kind") == "call" and wanted.name is None:
        return False
    if wanted.name is not None and (script or entry.get("qualname") != wanted.name):
        return False
    if wanted.path is None:
        return entry.get("module") == wanted.module
    recorded = entry.get("path") or entry.get("file")
    return isinstance(recorded, str) and os.path.realpath(recorded) == os.path.realpath(wanted.path)


def _has_input(recording: Recording, inputs: Sequence[str]) -> bool:
    if not inputs:
        return True
    given = decode(recording.payload("input"))
    facts = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    values: list[Any] = [*(facts.get("args") or ()), *(facts.get("kwargs") or {}).values()]
    return [str(value) for value in values] == [
        text.partition("=")[2] if _named(text, facts) else text for text in inputs
    ]


def _named(text: str, facts: dict[str, Any]) -> bool:
    """Whether ``NAME=VALUE`` names a parameter that the run was given."""
    return text.partition("=")[0] in (facts.get("kwargs") or {})
