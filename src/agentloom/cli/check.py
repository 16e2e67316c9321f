"""``agentloom check``: what in a target's source, or in a recorded run, will not be the same next time."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from agentloom.cli.checks.catalogue import RULES
from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.runs import RUN, find, looks_like_a_file
from agentloom.errors import NotSupported, TargetError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentloom.cli.checks.accepted import Accepted
    from agentloom.cli.checks.chosen import Chosen
    from agentloom.cli.checks.double import Difference, Doubled
    from agentloom.cli.checks.findings import Finding, Source

__all__ = ["command"]

_WORLDS = 4
"""Worlds of a double run: two elements of a set have the same order in all of them once in sixteen times."""


def _names(_ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> frozenset[str]:
    names = frozenset(part for text in given for part in text.split(",") if part)
    unknown = sorted(names - RULES.keys())
    if unknown:
        raise click.BadParameter(
            f"{unknown[0]!r} is no kind of finding; there are {', '.join(RULES)}",
            param_hint=f"--{param.name}",
        )
    return names


@dataclass(slots=True)
class _Check:
    """One check while it is made."""

    target: str
    sources: list[Source] = field(default_factory=list["Source"])
    found: list[Finding] = field(default_factory=list["Finding"])
    accepted: list[Accepted] = field(default_factory=list["Accepted"])
    looked: list[str] = field(default_factory=list[str])
    chosen: Chosen | None = None
    doubled: Doubled | None = None
    origins: list[list[Finding]] = field(default_factory=list["list[Finding]"])
    skipped: str | None = None

    def exit(self, *, strict: bool) -> int:
        """1 for warnings (``strict``: for notes too), 3 where the run is not of this code, else 0."""
        if any(strict or finding.level == "warning" for finding in self.found):
            return Exit.ERROR
        broken = self.broken
        if broken is not None and broken.report is None:
            return int((broken.error or {}).get("exit") or Exit.ERROR)
        return Exit.DIVERGENCE if broken is not None else Exit.OK

    @property
    def broken(self) -> Difference | None:
        """Why nothing can be said about worlds: the program does not replay in the recorded one, and it is no leak."""
        differences = self.doubled.differences if self.doubled is not None else []
        return next((one for one in differences if _is_broken(one)), None)


@click.command(short_help="Find what will not be the same next time.")
@click.argument("target")
@click.argument("run", required=False, type=RUN)
@click.option(
    "--record", is_flag=True, help="Record a run first, where it costs what a run costs, and replay that."
)
@click.option(
    "--input", "inputs", multiple=True, metavar="VALUE",
    help="An argument: of the run that --record makes, else of the newest run that has it. Repeatable.",
)  # fmt: skip
@click.option(
    "--only", multiple=True, metavar="NAME", callback=_names, help="Look for this alone. Repeatable."
)
@click.option(
    "--skip", multiple=True, metavar="NAME", callback=_names, help="Do not look for this. Repeatable."
)
@click.option("--worlds", type=click.IntRange(2, 100), default=_WORLDS, show_default=True, metavar="N",
              help="How many other worlds the run is replayed in.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Exit 1 for notes too.")
@common
def command(
    settings: Settings,
    target: str,
    run: str | None,
    *,
    record: bool,
    inputs: tuple[str, ...],
    only: frozenset[str],
    skip: frozenset[str],
    worlds: int,
    strict: bool,
) -> int:
    """Find non-determinism in TARGET: a file, file.py:name, module:name, a folder, or a recorded run.

    \b
    agentloom check agent.py:triage
    agentloom check agent.py:triage last
    agentloom check agent.py:triage --record --input "refund order 812"

    Its source is looked at, and a run of it (RUN, else the newest in the store) is replayed in several worlds: other
    hash seeds, time zones, locales, folders, environments. No model is called and no tool runs, but for --record.
    """
    if record and run is not None:
        raise click.UsageError("RUN and --record both say which run: give one")
    wanted = frozenset(only or RULES) - skip
    check = _Check(target)
    is_source = _is_source(target)
    if is_source:
        _look(check, wanted)
    else:
        run = _of_run(settings, check, target, wanted, run)
    if "double-run" in wanted:
        with ExitStack() as stack:
            _replay(settings, check, run, worlds, stack, record=record, inputs=inputs)
    _judge(check, wanted)
    return _show(settings, check, strict=strict)


def _is_source(target: str) -> bool:
    """A run is named by its id, ``last``, a tag or a trace file; a target by a path, or by a module and a name."""
    path = target.rpartition(":")[0] or target
    if target.endswith((".loom", ".loom.zst")):
        return False
    return os.path.isdir(target) or path.endswith(".py") or ":" in target or looks_like_a_file(path)


def _look(check: _Check, wanted: frozenset[str]) -> None:
    """The findings in the source of a target."""
    from agentloom.cli.checks.sources import sources_of
    from agentloom.cli.checks.static import found_in

    check.sources = sources_of(check.target)
    entry = len(check.sources) if os.path.isdir(check.target) else 1
    name = check.target.rpartition(":")[2] if ":" in check.target else None
    check.found = found_in(check.sources, entry=entry, name=name, wanted=wanted)
    check.looked = [one.shown for one in check.sources]


def _of_run(settings: Settings, check: _Check, target: str, wanted: frozenset[str], run: str | None) -> str:
    """The findings in a recorded run; what names it for the double run."""
    from agentloom.cli.checks.resolved import resolved_findings
    from agentloom.replay.recording import Recording

    if run is not None:
        raise click.UsageError(f"{target} names a run already, and {run} another: give one")
    trace = find(settings, target)
    recording = Recording.from_journal(trace.journal())
    found = resolved_findings(recording, trace.name)
    check.found = [finding for finding in found if finding.check in wanted]
    check.looked = [trace.full_name]
    return target


def _replay(
    settings: Settings,
    check: _Check,
    run: str | None,
    worlds: int,
    stack: ExitStack,
    *,
    record: bool,
    inputs: Sequence[str],
) -> None:
    """The double run, where there is a run."""
    from agentloom.cli.checks import chosen, origins
    from agentloom.cli.checks.double import double_run
    from agentloom.cli.replay import replay_job

    screen = settings.screen()
    if record:
        screen.note(("dim", f"   recording a run of {check.target}"))
        check.chosen = chosen.record_run(settings, check.target, inputs, stack)
    else:
        try:
            check.chosen = chosen.chosen_run(settings, check.target, run, inputs, stack)
        except (NotSupported, TargetError) as error:
            if run != check.target:
                raise
            check.skipped = error.message  # its answers are looked at all the same
            return
    if check.chosen is None:
        one = f"the store holds no run of {check.target}{' with that input' if inputs else ''}"
        folder = os.path.isdir(check.target)
        check.skipped = "a folder has no run of its own" if folder else f"{one}; --record makes one"
        return
    job, environ = replay_job(check.chosen.found, check.chosen.recording, check.chosen.place)
    told = screen.note if sys.stderr.isatty() or settings.verbosity else _silent
    check.doubled = double_run(
        job,
        environ,
        check.chosen.found.data,
        count=worlds,
        read=origins.variables_read(check.sources),
        first=origins.facets_of(check.found),
        told=lambda text: told(("dim", f"   {text}")),
    )


def _silent(*_spans: object) -> None:
    """Nobody watches."""


def _judge(check: _Check, wanted: frozenset[str]) -> None:
    """What differed becomes findings; what comments accept is set aside."""
    from agentloom.cli.checks.accepted import accept
    from agentloom.cli.checks.origins import finding_of, home_of, origins_of
    from agentloom.cli.replay import entry_of

    static = list(check.found)
    entry = entry_of(check.chosen.recording) if check.chosen is not None else {}
    home = home_of(check.sources, str(entry.get("qualname")))
    for difference in check.doubled.differences if check.doubled is not None else ():
        origins = origins_of(difference, static, _file(check))
        check.origins.append(origins)
        if not _is_broken(difference):
            check.found.append(finding_of(difference, origins, _file(check), home))
    left, check.accepted = accept(check.sources, check.found, wanted)
    kept = (finding for finding in left if finding.check in wanted)
    check.found = sorted(kept, key=lambda one: (one.file, one.line, one.column, one.check))


def _is_broken(difference: Difference) -> bool:
    return difference.by_code or (difference.report is None and difference.world == 0)


def _file(check: _Check) -> str:
    """The file of the target, as messages name it."""
    if check.sources:
        return check.sources[0].shown
    path = check.chosen.place.path if check.chosen is not None else None
    return os.path.relpath(path) if path else check.target


def _show(settings: Settings, check: _Check, *, strict: bool) -> int:
    from agentloom.cli.checks import shown

    code = check.exit(strict=strict)
    screen = settings.screen()
    if screen.json:
        screen.data({**_facts(check), "exit": int(code)})
        return code
    screen.lines(shown.finding_lines(check.found, all_reasons=settings.verbosity > 0))
    if check.doubled is not None and check.chosen is not None:
        name, doubled = check.chosen.name, check.doubled
        times = f"replayed {doubled.replays} times in {len(doubled.worlds)} worlds"
        screen.line(("label", "double run  "), f"{name}, {check.chosen.how}: {times}")
        for difference, origins in zip(doubled.differences, check.origins, strict=True):
            screen.line(
                (
                    "warn",
                    f"  differs with another {', '.join(difference.facets)}"
                    if difference.world
                    else "  differs in every replay",
                )
            )
            screen.lines(shown.difference_lines(difference, origins))
        if not doubled.differences:
            screen.line(("good", "  identical in all of them"))
    elif check.skipped:
        screen.note(("dim", f"   no double run: {check.skipped}"))
    screen.lines(shown.accepted_lines(check.accepted))
    unit = "file" if check.sources else "run"
    plural = "" if len(check.looked) == 1 else "s"
    screen.line(*shown.counted(check.found, check.accepted, f"{len(check.looked):,} {unit}{plural}"))
    _problem(settings, check)
    return code


def _problem(settings: Settings, check: _Check) -> None:
    """Why the double run says nothing about worlds."""
    broken = check.broken
    if broken is None:
        return
    error = broken.error or {
        "message": "the run was not recorded with this code: its replay differs in the recorded world",
        "next": "record a run of the code of now: agentloom check TARGET --record",
    }
    settings.screen().problem(str(error.get("message")), error.get("next") or error.get("hint"))


def _facts(check: _Check) -> dict[str, Any]:
    """The check as plain JSON: ``docs/check.md``."""
    facts: dict[str, Any] = {
        "target": check.target,
        "findings": [finding.to_json() for finding in check.found],
        "accepted": [one.to_json() for one in check.accepted],
        "warnings": sum(finding.level == "warning" for finding in check.found),
        "notes": sum(finding.level == "note" for finding in check.found),
        "looked_at": check.looked,
        "double_run": None,
        "no_double_run": check.skipped,
    }
    if check.doubled is not None and check.chosen is not None:
        facts["double_run"] = {
            "run": check.chosen.recording.run,
            "chosen": check.chosen.how,
            "replays": check.doubled.replays,
            "worlds": [world.to_json() for world in check.doubled.worlds],
            "differences": [
                {
                    "facets": list(difference.facets),
                    "world": difference.world,
                    "report": difference.report,
                    "error": difference.error,
                    "origins": [origin.to_json() for origin in origins],
                }
                for difference, origins in zip(check.doubled.differences, check.origins, strict=True)
            ],
        }
    return facts
