"""Findings on the terminal."""

from __future__ import annotations

from agentloom.cli.checks.accepted import Accepted
from agentloom.cli.checks.double import Difference
from agentloom.cli.checks.findings import Finding
from agentloom.cli.checks.shown import accepted_lines, counted, difference_lines, finding_lines

ONE = Finding("hash", "warning", "a.py", 3, 5, "x", "said", "reason", "fix", "f")
NOTE = Finding("unread", "note", "b.py", 0, 0, "x", "said", "reason")


def words(lines: object) -> list[str]:
    return ["".join(part if isinstance(part, str) else part[1] for part in line) for line in lines]  # type: ignore[attr-defined]


def test_reasons_are_said_once() -> None:
    assert words(finding_lines([ONE, ONE, NOTE], all_reasons=False)) == [
        "a.py:3:5  warning  hash  said", "  why   reason", "  next  fix", "a.py:3:5  warning  hash  said",
        "b.py  note  unread  said", "  why   reason",
    ]  # fmt: skip
    assert len(words(finding_lines([ONE, ONE], all_reasons=True))) == 6


def test_a_difference_is_shown_without_words_of_a_replay() -> None:
    lines = [[("bad", "DIVERGED"), ("dim", "exit 3")], [("label", "all leaks   "), ("", "x")]]
    difference = Difference(("umask",), 1, {}, lines)
    assert words(difference_lines(difference, [ONE])) == ["    DIVERGED", "    origin  a.py:3  hash  said"]


def test_counts() -> None:
    assert "".join(
        part if isinstance(part, str) else part[1] for part in counted([ONE, NOTE], [], "2 files")
    ) == ("1 warning, 1 note  in 2 files")
    assert words([counted([], [Accepted(ONE, "why")], "1 file")]) == ["nothing found, 1 accepted  in 1 file"]
    assert words(accepted_lines([Accepted(ONE, "why")])) == ["a.py:3  accepted  hash  why"]
