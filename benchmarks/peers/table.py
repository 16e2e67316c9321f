"""The rows of all contestants, who is ahead of whom, and the table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CONTESTANTS", "SDK", "Contest", "Row", "behind", "compared", "lines"]

SDK = "openai SDK"


@dataclass(frozen=True, slots=True)
class Contest:
    """A line of the table: where its recorder stands (``seam``), its environment (None: this one), what to know."""

    seam: str
    environment: str | None
    note: str = ""


CONTESTANTS: dict[str, Contest] = {
    "agentloom model": Contest("calls", None),
    "agentos-platform": Contest("calls", "agentos-platform", "keeps digests of requests, not the requests"),
    "agentcassette": Contest("calls", "agentcassette"),
    "agent-rewind": Contest("calls", "agent-rewind"),
    "ai-agent-vcr": Contest("calls", "ai-agent-vcr", "plays frames, runs no agent"),
    "langgraph SqliteSaver": Contest("calls", "langgraph", "performs again what follows a checkpoint"),
    "langgraph functional": Contest("calls", "langgraph", "keeps results, not requests"),
    "dbos SQLite": Contest("calls", "dbos", "keeps results, not requests"),
    "temporalio replayer": Contest("calls", "temporalio", "records on a server only; history made by hand"),
    "agentloom openai": Contest(SDK, None, "model calls only"),
    "vcrpy + openai": Contest(SDK, "vcrpy", "model calls only; matches method and address"),
    "vcrpy + openai, body": Contest(SDK, "vcrpy", "model calls only; matches bodies too"),
}
"""Every line in order. Those of one seam are compared with each other, and with no others."""


@dataclass(slots=True)
class Row:
    """What was measured of one contestant, or ``failed``: why nothing was."""

    name: str
    found: dict[str, Any] = field(default_factory=dict[str, Any])
    failed: str = ""

    @property
    def contest(self) -> Contest:
        return CONTESTANTS[self.name]

    @property
    def ours(self) -> bool:
        return self.contest.environment is None

    @property
    def checks(self) -> bool:
        """Whether a replay raised when the agent's history had been changed."""
        return bool(self.found.get("noticed"))

    def ratio(self, what: str) -> tuple[float, float, float] | None:
        """``record`` or ``replay`` in times of floor A of the same process: of the least times, then the least and the
        most of the rounds. None where there is nothing to compare."""
        mine = self.found.get("seconds", {}).get(what)
        if not mine:
            return None
        other: list[float] = self.found["seconds"][f"floor {what}"]
        each = [a / b for a, b in zip(mine, other, strict=True)]
        return min(mine) / min(other), min(each), max(each)

    def added(self) -> float | None:
        """Seconds of processor time a call that recording adds to the agent without a recorder: the median over the
        rounds. What the agent itself does, an SDK or a graph, is not the recorder's."""
        seconds: dict[str, list[float]] = self.found.get("seconds", {})
        if not seconds.get("record") or not seconds.get("bare"):
            return None
        each = [a - b for a, b in zip(seconds["record"], seconds["bare"], strict=True)]
        return statistics.median(each) / (2 * float(self.found["turns"]))

    def relative(self, what: str) -> float | None:
        """``record`` or ``replay`` in times of the bare agent of the same process and the same round: the median."""
        seconds: dict[str, list[float]] = self.found.get("seconds", {})
        if not seconds.get(what) or not seconds.get("bare"):
            return None
        return statistics.median(a / b for a, b in zip(seconds[what], seconds["bare"], strict=True))

    def cost(self, what: str) -> float | None:
        """What is compared. At the SDK, which makes up most of each number, times of the bare agent (``relative``): of
        recording only what it adds. Everywhere else times of floor A. Each of the same process."""
        if self.contest.seam == SDK:
            found = self.relative(what)
            return None if found is None else found - 1 if what == "record" else found
        ratio = self.ratio(what)
        return None if ratio is None else ratio[0]

    def said(self, what: str) -> str:
        """``cost`` for a person."""
        found = self.cost(what)
        if found is None:
            return "-"
        if self.contest.seam != SDK:
            return f"{found:.2f}x floor A"
        return f"adds {found:.1%} to the bare call" if what == "record" else f"{found:.2f}x the bare call"

    def micros(self, what: str) -> float | None:
        """The least microseconds of processor time a call of workload W (two a turn)."""
        seconds = self.found.get("seconds", {}).get(what)
        return min(seconds) / (2 * self.found["turns"]) * 1e6 if seconds else None


def behind(rows: Sequence[Row]) -> list[str]:
    """Where agentloom is not below a peer of the same seam that does the same: both record, or both check on replay.

    agentloom itself must be measured, and its replay must notice the change.
    """
    found: list[str] = []
    for own in (row for row in rows if row.ours):
        if own.failed or not own.checks:
            found.append(f"{own.name}: {own.failed or 'its replay did not notice a changed history'}")
            continue
        for peer in (row for row in rows if not row.ours and row.contest.seam == own.contest.seam):
            for what in ("record", "replay"):
                mine, theirs = own.cost(what), peer.cost(what)
                if what == "replay" and not peer.checks:
                    continue
                if mine is not None and theirs is not None and mine >= theirs:
                    found.append(f"{own.name}: {what} {own.said(what)}, {peer.name} {peer.said(what)}")
    return found


_HEADER = (
    f"{'':22} {'bare':>7} {'record':>8} {'x floor A (rounds)':>23} {'replay':>8} {'x floor A (rounds)':>23}"
)
_HEADER += f" {'notices':>8} {'bytes':>11} {'4x turns':>9}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _times(ratio: tuple[float, float, float] | None) -> str:
    return "-" if ratio is None else f"{ratio[0]:.1f} ({ratio[1]:.1f} - {ratio[2]:.1f})"


def _line(row: Row) -> str:
    if row.failed:
        return f"{row.name:22} not measured: {row.failed}"
    notices = "-" if row.ratio("replay") is None else "yes" if row.checks else "no"
    cells = [f"{row.name:22} {_number(row.micros('bare')):>7}"]
    cells += [
        f"{_number(row.micros(what)):>8} {_times(row.ratio(what)):>23}" for what in ("record", "replay")
    ]
    growth = "-" if row.found["growth"] is None else f"{row.found['growth']:.1f}x"
    size = f"{row.found['bytes']:>11,} {growth:>9}"
    again = [
        f"replay performs {count} {kind} calls" for kind, count in row.found["performed"].items() if count
    ]
    added = row.added()
    if row.contest.seam == SDK and added is not None:
        again.append(
            f"recording adds {added * 1e6:,.0f} us a call, {row.cost('record') or 0:.1%} of the bare one"
        )
    note = "; ".join([row.contest.note] * bool(row.contest.note) + again)
    return f"{' '.join(cells)} {notices:>8} {size}  {note}".rstrip()


def compared(rows: Sequence[Row]) -> list[str]:
    """What is compared with what: a line for each of ours and what it does."""
    made: list[str] = []
    for own in (row for row in rows if row.ours and not row.failed):
        for what in ("record", "replay"):
            others = [
                f"{peer.name} {peer.said(what)}"
                for peer in rows
                if not peer.ours and peer.contest.seam == own.contest.seam and peer.cost(what) is not None
                and (what == "record" or peer.checks)
            ]  # fmt: skip
            if others:
                made.append(f"{own.name}, {what}: {own.said(what)}; beside {', '.join(others)}")
    return made


def lines(rows: Iterable[Row]) -> list[str]:
    """The table, a part for each seam: microseconds of processor time a call, and times of floor A."""
    kept = list(rows)
    made: list[str] = []
    for seam in dict.fromkeys(row.contest.seam for row in kept):
        made += [f"recorded at the {seam}", _HEADER]
        made += [_line(row) for row in kept if row.contest.seam == seam]
        made.append("")
    return made
