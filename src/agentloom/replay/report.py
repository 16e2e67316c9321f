"""The report of a replay: its verdict, the first divergence, the probable cause, and what to do next.

The facts are in :class:`Report`; :meth:`Report.to_json` gives them to machines (``docs/report-json.md``),
``str(report)`` and :meth:`Report.render` to people.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from agentloom.format.values import Tree
from agentloom.replay.cause import Cause
from agentloom.replay.fields import Comparison
from agentloom.replay.text import Line, plain

__all__ = ["CallRef", "Counts", "Finding", "Noted", "Report", "Verdict", "comparison_json"]

Verdict = Literal["identical", "identical except noted", "diverged"]
FindingClass = Literal[
    "changed", "extra", "missing", "reordered", "output", "ended early", "leak", "redacted"
]
SCHEMA = "agentloom/report/1"


@dataclass(frozen=True, slots=True)
class CallRef:
    """A call as a report names it. ``index`` counts the recorded requests from 1; None for a call only made now."""

    id: str
    kind: str
    name: str
    index: int | None = None
    src: str | None = None
    src_recorded: str | None = None
    effect: str | None = None
    summary: str = ""
    outcome: str = ""

    @property
    def path(self) -> str:
        """The structural path: the id without its counter."""
        return self.id.partition("#")[0]

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON."""
        return {
            "index": self.index,
            "id": self.id,
            "path": self.path,
            "kind": self.kind,
            "name": self.name,
            "effect": self.effect,
            "src": self.src,
            "src_recorded": self.src_recorded,
            "summary": self.summary,
            "outcome": self.outcome,
        }


@dataclass(frozen=True, slots=True)
class Noted:
    """A call that matched although fields that its profile only notes differ."""

    call: CallRef
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Counts:
    """Recorded calls that matched exactly, with noted differences, and not (never reached or not equal)."""

    exact: int = 0
    noted: int = 0
    unmatched: int = 0

    @property
    def total(self) -> int:
        """All recorded calls."""
        return self.exact + self.noted + self.unmatched


@dataclass(frozen=True, slots=True)
class Finding:
    """The first divergence. ``last`` closes a range of calls (reordered); ``sequences`` are its two orders.

    ``reason`` is a word for machines, finer than the class (``docs/report-json.md``).
    """

    cls: FindingClass
    call: CallRef | None
    message: str
    comparison: Comparison | None = None
    last: int | None = None
    sequences: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a replay of ``run`` found. Exit code 0 or 3 (``exit_code``). ``guard`` is the policy of the run's guard, by
    which it was replayed too."""

    run: str
    agent: str
    verdict: Verdict
    counts: Counts
    finding: Finding | None = None
    cause: Cause | None = None
    leading: tuple[CallRef, ...] = ()
    noted: tuple[Noted, ...] = ()
    compared: tuple[str, ...] = ("output",)
    seconds: float | None = None
    next: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    guard: str | None = None
    extra: dict[str, Tree] = field(default_factory=dict[str, Tree])

    @property
    def ok(self) -> bool:
        """Whether every call and the output matched (noted differences aside)."""
        return self.verdict != "diverged"

    def exit_code(self, *, strict_noted: bool = False) -> int:
        """0 for identical, 3 for a divergence; with ``strict_noted`` also 3 for noted differences."""
        return 3 if not self.ok or (strict_noted and self.verdict != "identical") else 0

    def to_json(self) -> dict[str, Tree]:
        """The facts as plain JSON; the schema is described in ``docs/report-json.md``."""
        finding = self.finding
        out: dict[str, Tree] = {
            "schema": SCHEMA,
            "run": self.run,
            "agent": self.agent,
            "verdict": self.verdict,
            "class": finding.cls if finding else None,
            "reason": (finding.reason or None) if finding else None,
            "message": finding.message if finding else None,
            "call": finding.call.to_json() if finding and finding.call else None,
            "last_index": finding.last if finding else None,
            "differences": comparison_json(finding.comparison if finding else None),
            "orders": _orders(finding),
            "cause": self.cause.to_json() if self.cause else None,
            "leading": [call.to_json() for call in self.leading],
            "counts": {
                "calls": self.counts.total,
                "exact": self.counts.exact,
                "noted": self.counts.noted,
                "unmatched": self.counts.unmatched,
            },
            "noted": [
                {"call": item.call.to_json(), "differences": comparison_json(item.comparison)}
                for item in self.noted
            ],
            "compared": list(self.compared),
            "seconds": self.seconds,
            "next": [{"command": command, "for": why} for command, why in self.next],
            "notes": list(self.notes),
            "guard": self.guard,
        }
        out.update(self.extra)
        return out

    def render(self, width: int = 100) -> list[Line]:
        """Styled lines of at most about ``width`` characters, 1,200 characters in all."""
        from agentloom.replay.report_text import render

        return render(self, width)

    def __str__(self) -> str:
        return plain(self.render())


def comparison_json(comparison: Comparison | None) -> Tree:
    """A comparison as plain JSON (``docs/report-json.md``, Differences)."""
    if comparison is None:
        return None
    return {
        "total": comparison.total,
        "complete": comparison.complete,
        "items": [item.to_json() for item in comparison.items],
        "same": list(comparison.same),
    }


def _orders(finding: Finding | None) -> Tree:
    if finding is None or finding.sequences is None:
        return None
    recorded, now = finding.sequences
    return {"recorded": list(recorded[:100]), "now": list(now[:100])}
