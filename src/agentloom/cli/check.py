"""``agentloom check``: what in a target's source, or in a recorded run, will not be the same next time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from agentloom.cli.checks import aliases
from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.render import Span
from agentloom.cli.runs import find, looks_like_a_file

if TYPE_CHECKING:
    from agentloom.cli.checks.findings import Check, Finding, Source

__all__ = ["CHECKS", "command"]

CHECKS: dict[str, Check] = {aliases.NAME: aliases.check}
"""The checks of source by the name of what they find."""


@click.command(short_help="Find what will not be the same next time.")
@click.argument("target")
@common
def command(settings: Settings, target: str) -> int:
    """Look at the source of TARGET (a file, file.py:name, module:name, or a folder), or at a recorded run.

    Nothing of the target is run. Found so far: model names behind which the provider may put another model. Of a run
    the answers also say which model each name stood for.
    """
    found, looked, unit = _of_source(target) if _is_source(target) else _of_run(settings, target)
    warnings = sum(finding.level == "warning" for finding in found)
    screen = settings.screen()
    if screen.json:
        facts = {
            "findings": [finding.to_json() for finding in found],
            "warnings": warnings,
            "looked_at": looked,
        }
        screen.data({"target": target, **facts, "exit": int(Exit.ERROR if warnings else Exit.OK)})
    else:
        screen.lines(_lines(found, f"{len(looked):,} {unit}{'' if len(looked) == 1 else 's'}"))
    return Exit.ERROR if warnings else Exit.OK


def _is_source(target: str) -> bool:
    """A run is named by its id, ``last``, a tag or a trace file; a target by a path, or by a module and a name."""
    path = target.rpartition(":")[0] or target
    if target.endswith((".loom", ".loom.zst")):
        return False
    return os.path.isdir(target) or path.endswith(".py") or ":" in target or looks_like_a_file(path)


def _of_source(target: str) -> tuple[list[Finding], list[str], str]:
    from agentloom.cli.checks.sources import sources_of

    sources = sources_of(target)
    found = [finding for source in sources for check in CHECKS.values() for finding in check(source)]
    found += [_unread(source) for source in sources if source.problem]
    return (
        sorted(found, key=lambda one: (one.file, one.line, one.column)),
        [one.shown for one in sources],
        "file",
    )


def _unread(source: Source) -> Finding:
    from agentloom.cli.checks.findings import Finding

    reason = "a file that is not looked at may hold anything"
    return Finding("unread", "note", source.shown, 0, 0, source.shown, source.problem, reason)


def _of_run(settings: Settings, target: str) -> tuple[list[Finding], list[str], str]:
    from agentloom.cli.checks.resolved import resolved_findings
    from agentloom.replay.recording import Recording

    trace = find(settings, target)
    recording = Recording.from_journal(trace.journal())
    return resolved_findings(recording, trace.name), [trace.full_name], "run"


def _lines(found: Sequence[Finding], looked: str) -> Iterator[list[Span]]:
    for finding in found:
        place = f"{finding.file}:{finding.line}" if finding.line else finding.file
        yield [
            ("name", place),
            "  ",
            ("warn" if finding.level == "warning" else "dim", finding.level),
            f"  {finding.said}",
        ]
        yield [("label", "  why   "), finding.reason]
        if finding.fix:
            yield [("label", "  next  "), finding.fix]
    counts = {level: sum(finding.level == level for finding in found) for level in ("warning", "note")}
    parts = [f"{count} {level}{'' if count == 1 else 's'}" for level, count in counts.items() if count]
    yield [("bad" if counts["warning"] else "good", ", ".join(parts) or "nothing found"), f"  in {looked}"]
