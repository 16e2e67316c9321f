"""All static checks of a target: rules of one file, and the data flow over all of them."""

from __future__ import annotations

import sys
from collections.abc import Container, Sequence
from dataclasses import replace

from agentloom.cli.checks import aliases
from agentloom.cli.checks.catalogue import RULES
from agentloom.cli.checks.findings import Check, Finding, Source
from agentloom.cli.checks.flow.program import Program
from agentloom.cli.checks.flow.walk import analyse

__all__ = ["CHECKS", "found_in"]

CHECKS: dict[str, Check] = {aliases.NAME: aliases.check}
"""The rules that need one file alone, by the name of what they find."""

_STACK = 20_000
"""Frames of this interpreter: a long chain of ``elif`` is a deep tree."""


def found_in(
    sources: Sequence[Source], *, entry: int = 1, name: str | None = None, wanted: Container[str] = RULES
) -> list[Finding]:
    """Findings in the order of files and lines; comments that accept some are not looked at here.

    ``entry``: how many of ``sources`` the target names itself, the rest is imported by them; ``name``: the agent that
    it names; ``wanted``: names of findings to look for.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _STACK))
    try:
        return _found_in(sources, entry, name, wanted)
    finally:
        sys.setrecursionlimit(before)


def _found_in(
    sources: Sequence[Source], entry: int, name: str | None, wanted: Container[str]
) -> list[Finding]:
    program = Program(sources, entry, name)
    found = [finding for source in sources for check in CHECKS.values() for finding in check(source)]
    found = [one for finding in found if (one := _within(program, finding)) is not None]
    found += analyse(program)
    found += [_unread(source) for source in sources if source.problem]
    kept = (finding for finding in found if finding.check in wanted)
    return sorted(kept, key=lambda one: (one.file, one.line, one.column, one.check))


def _within(program: Program, finding: Finding) -> Finding | None:
    """``finding`` with the function that its line is in; None where that is no part of the one agent looked at."""
    holding = [
        function
        for function in program.functions
        if function.file.source.shown == finding.file
        and function.node.lineno <= finding.line <= (function.node.end_lineno or 0)
    ]
    inner = max(holding, key=lambda one: one.node.lineno, default=None)
    if inner is not None and program.chosen and inner.role == "outside":
        return None
    return replace(finding, function=inner.name) if inner is not None else finding


def _unread(source: Source) -> Finding:
    rule = RULES["unread"]
    return Finding("unread", "note", source.shown, 0, 0, source.shown, source.problem, rule.reason, rule.fix)
