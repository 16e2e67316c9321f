"""What a replayed run is given, beside what the recorded one was given: a difference there is said before all else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from agentloom.replay.cause import parse_src
from agentloom.replay.fields import Comparison
from agentloom.replay.recording import Recording
from agentloom.replay.report import Finding
from agentloom.replay.text import show

__all__ = ["UNKNOWN_INPUT", "by_input", "input_notes", "unknown_input"]

UNKNOWN_INPUT = "what it was given is not in the trace, so this may be another input"


def unknown_input(recording: Recording, finding: Finding) -> bool:
    """Whether a difference in what is asked for may come of another input, which this trace does not hold: that of a
    block, or of a call that only its program can make again."""
    code = recording.payload("code")
    entry = code.get("entry") if isinstance(code, dict) else None
    kind = entry.get("kind") if isinstance(entry, dict) else None
    held = recording.payload("input")
    given = isinstance(held, dict) and bool(held.get("kwargs"))  # a request of a service is held
    return kind in ("call", "block") and not given and finding.reason in ("request", "state", "unrecorded")


def by_input(finding: Finding, differs: Comparison) -> Finding:
    """The finding of a run that was given something else; ``finding`` is what came of it."""
    call = finding.call
    where = ""
    if call is not None:
        site = parse_src(call.src) or parse_src(call.src_recorded)
        number = "" if call.index is None else f" {call.index}"
        where = f"; the first call that differs is{number} {call.kind} {call.name}" + (
            f" at {site}" if site else ""
        )
    message = f"The input is not the recorded one{where}."
    return replace(
        finding,
        cls="changed",
        reason="input",
        message=message,
        comparison=differs,
        sequences=None,
        last=None,
        call=None,
    )


def input_notes(differs: Comparison | None) -> Iterator[str]:
    """Says of an identical replay that its input is another one."""
    if differs is not None:
        first = differs.items[0]
        old = "(absent)" if first.kind == "added" else show(first.recorded, 24)
        new = "(absent)" if first.kind == "removed" else show(first.now, 24)
        more = f" and {differs.total - 1} more" if differs.total > 1 else ""
        yield f"the input differs: {first.path} {old} -> {new}{more}; it makes no difference to this run"
