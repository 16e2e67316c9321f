"""The findings of a check on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from agentloom.cli.checks.accepted import Accepted
from agentloom.cli.checks.double import Difference
from agentloom.cli.checks.findings import Finding

if TYPE_CHECKING:
    from agentloom.cli.render import Span

__all__ = ["accepted_lines", "counted", "difference_lines", "finding_lines"]


_OF_A_REPLAY = frozenset(["exit 3"])
"""Words of a replay's report that are not true of a check."""


def finding_lines(found: Sequence[Finding], *, all_reasons: bool) -> Iterator[list[Span]]:
    """Each finding, with its reason and remedy where they are not the same as those of an earlier one."""
    said: set[tuple[str, str, str]] = set()
    for finding in found:
        place = f"{finding.file}:{finding.line}:{finding.column}" if finding.line else finding.file
        style = "warn" if finding.level == "warning" else "dim"
        yield [("name", place), "  ", (style, finding.level), f"  {finding.check}  ", finding.said]
        texts = (finding.check, finding.reason, finding.fix)
        if texts in said and not all_reasons:
            continue
        said.add(texts)
        yield [("label", "  why   "), finding.reason]
        if finding.fix:
            yield [("label", "  next  "), finding.fix]


def accepted_lines(accepted: Sequence[Accepted]) -> Iterator[list[Span]]:
    """One line for each finding that a comment accepts."""
    for one in accepted:
        finding = one.finding
        yield [("dim", f"{finding.file}:{finding.line}  accepted  {finding.check}  {one.reason}")]


def difference_lines(difference: Difference, origins: Sequence[Finding]) -> Iterator[list[Span]]:
    """The report of what differed, indented, and the lines of the source that explain it."""
    for line in difference.lines:
        kept = [span for span in line if span[1] not in _OF_A_REPLAY]
        if line[:1] != [("label", "all leaks   ")]:
            yield [("", "    "), *kept]
    for origin in origins:
        where = f"{origin.file}:{origin.line}"
        yield [("label", "    origin  "), ("path", where), f"  {origin.check}  {origin.said}"]


def counted(found: Sequence[Finding], accepted: Sequence[Accepted], looked: str) -> list[Span]:
    """The last line: how much was found, and in what."""
    counts = {level: sum(finding.level == level for finding in found) for level in ("warning", "note")}
    parts = [f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items() if count]
    parts = parts or ["nothing found"]
    if accepted:
        parts.append(f"{len(accepted)} accepted")
    return [("bad" if counts["warning"] else "good", ", ".join(parts)), f"  in {looked}"]
