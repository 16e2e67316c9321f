"""``agentloom check-deploy``: would the suspended runs of a store go on with the code as it is now?"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import click

from agentloom.cli.exits import Exit, describe
from agentloom.cli.options import Settings, common
from agentloom.cli.render import shorten
from agentloom.cli.replay import Place, beginning, entry_of, place_of, replay_job
from agentloom.cli.runs import Found, short
from agentloom.cli.script_parent import Surroundings, start
from agentloom.cli.targets import Target, parse_target
from agentloom.errors import LoomError, RunNotFound, TargetError

if TYPE_CHECKING:
    from agentloom.cli.render import Screen
    from agentloom.replay.recording import Recording
    from agentloom.store import RunRow, Store

__all__ = ["command"]

_SHOWN = 8


@click.command("check-deploy", short_help="Would the suspended runs go on with the code as it is now?")
@click.argument("target", required=False)
@common
def command(settings: Settings, target: str | None) -> int:
    """Replay every suspended run of the store against the code as it is now, before it goes out: nothing is performed,
    and no run is changed.

    \b
    agentloom check-deploy                        the code where it was when they were recorded
    agentloom check-deploy ../release-42          the same files below another folder
    agentloom check-deploy support.py:support     the runs of that agent, with that code

    Runs that would not go on are grouped by why. Exit code 0: all would; 3: one would not.
    """
    store = settings.open_store()
    screen = settings.screen()
    if target is not None and not os.path.isdir(target):
        parse_target(target)  # wrong for every run
    tally = _Tally()
    rows = [row for row in reversed(store.runs()) if row.status == "suspended"]
    for number, row in enumerate(rows):
        if number and number % 100 == 0:
            screen.note(("dim", f"{number} of {len(rows)} replayed"))
        try:
            _check(settings, store, row, target, tally)
        except RunNotFound:
            continue  # it was removed meanwhile
        except LoomError as error:
            tally.cannot(row.run, describe(error))
    if screen.json:
        screen.data(tally.facts())
    else:
        _show(screen, tally)
    return Exit.DIVERGENCE if tally.groups else Exit.OK


@dataclass(slots=True)
class _Group:
    """Runs that would not go on for one reason: ``facts`` of the first."""

    facts: dict[str, Any]
    runs: list[str] = field(default_factory=list[str])


@dataclass(slots=True)
class _Tally:
    compatible: list[str] = field(default_factory=list[str])
    others: int = 0
    groups: dict[tuple[str, ...], _Group] = field(default_factory=dict[tuple[str, ...], _Group])

    def told(self, run: str, report: dict[str, Any]) -> None:
        """Sort a report of a replay in."""
        if report["verdict"] != "diverged":
            self.compatible.append(run)
            return
        call = _members(report, "call")
        where = str(call.get("src") or call.get("src_recorded") or "")
        items = _items(_members(report, "differences"), "items")
        paths = ",".join(str(item.get("path")) for item in items[:3])
        key = (str(report.get("class")), str(call.get("kind")), str(call.get("name")), where, paths)
        self._group(key, report).runs.append(run)

    def cannot(self, run: str, error: dict[str, Any]) -> None:
        """A run that could not even be replayed."""
        words = str(error.get("message")).replace(run, "RUN")
        self._group(("cannot be run", words), {"class": "cannot be run", "error": error}).runs.append(run)

    def _group(self, key: tuple[str, ...], facts: dict[str, Any]) -> _Group:
        return self.groups.setdefault(key, _Group(facts))

    def facts(self) -> dict[str, Any]:
        """The JSON document."""
        groups = sorted(self.groups.values(), key=lambda group: -len(group.runs))
        return {
            "checked": len(self.compatible) + sum(len(group.runs) for group in groups),
            "compatible": self.compatible,
            "other_targets": self.others,
            "groups": [{"runs": group.runs, "first": group.facts} for group in groups],
        }


def _check(settings: Settings, store: Store, row: RunRow, target: str | None, tally: _Tally) -> None:
    found = Found(store.read(row.run), row.run, None)
    recording = beginning(found)
    entry = entry_of(recording)
    folder = target is not None and os.path.isdir(target)
    if target is not None and not folder and not _is_of(parse_target(target), recording, entry):
        tally.others += 1
        return
    with ExitStack() as stack:
        if target is not None and folder:
            place = _below(target, entry)
        else:
            place = place_of(recording, entry, target, None, stack)
        job, environ = replay_job(found, recording, place)
        job |= {"json": True, "strict_noted": False, "width": settings.screen().width}
        child = start(job, environ, found.data, Surroundings(quiet=True))
    if child.done is not None:
        tally.told(row.run, child.done["report"])
    else:
        died = {"message": f"its process ended with exit code {child.code} before there was a verdict"}
        tally.cannot(row.run, child.error or died)


def _is_of(target: Target, recording: Recording, entry: dict[str, Any]) -> bool:
    """Whether the run is of the program that is named."""
    if target.name is not None:
        return target.name in (entry.get("qualname"), recording.agent)
    return os.path.basename(str(target.path)) == os.path.basename(str(entry.get("file")))


def _below(folder: str, entry: dict[str, Any]) -> Place:
    path = os.path.abspath(os.path.join(folder, str(entry.get("file"))))
    if not os.path.isfile(path):
        raise TargetError(
            f"{folder} has no {entry.get('file')}",
            hint="name the folder that the program lies in, or FILE:NAME",
        )
    module = None if entry.get("kind") == "script" else str(entry.get("module"))
    return Place(path, module)


def _show(screen: Screen, tally: _Tally) -> None:
    facts = tally.facts()
    bad = sum(len(group["runs"]) for group in facts["groups"])
    checked = facts["checked"]
    if not checked:
        screen.note("no suspended run" + (" of that target" if tally.others else ""))
        return
    head = f"{checked} suspended run{'' if checked == 1 else 's'}: {len(tally.compatible)} would go on"
    screen.line(
        ("good", "COMPATIBLE  ") if not bad else ("bad", "NOT COMPATIBLE  "),
        head,
        f", {bad} would not" if bad else "",
    )
    for group in facts["groups"][:_SHOWN]:
        _show_group(screen, group)
    if len(facts["groups"]) > _SHOWN:
        screen.line(("dim", f"and {len(facts['groups']) - _SHOWN} more reasons: --json"))
    if bad:
        screen.note("those runs are as they were")
    if any(group["first"].get("class") not in ("leak", "cannot be run") for group in facts["groups"]):
        screen.note("they go on with the code that they know: agentloom resume RUN --at recorded")


def _show_group(screen: Screen, group: dict[str, Any]) -> None:
    runs: list[str] = group["runs"]
    first: dict[str, Any] = group["first"]
    names = ", ".join(short(run, runs) for run in runs[:4]) + (
        f" and {len(runs) - 4} more" if len(runs) > 4 else ""
    )
    call = _members(first, "call")
    where = (
        f"  call {call.get('index')} {call.get('kind')} {call.get('name')}  {call.get('src') or ''}"
        if call
        else ""
    )
    screen.line(f"{len(runs)} ", ("bad", str(first.get("class"))), where.rstrip())
    error = _members(first, "error")
    message = str(error.get("message") or first.get("message") or "")
    room = screen.width - 6
    if message:
        screen.line("   ", shorten(message, room))
    for item in _items(_members(first, "differences"), "items")[:2]:
        screen.line(
            "   ",
            ("path", str(item.get("path"))),
            f"  {_cut(item.get('recorded'), room // 3)} -> {_cut(item.get('now'), room // 3)}",
        )
    changes = _items(_members(first, "cause"), "changes")
    if changes:
        one = changes[0]
        more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
        screen.line(
            "   cause  ", f"code changed: {one.get('name')} ({one.get('file')}:{one.get('line')}){more}"
        )
    screen.line("   runs   ", ("name", names), ("dim", f"   agentloom replay {short(runs[0])} says more"))


def _members(facts: dict[str, Any], name: str) -> dict[str, Any]:
    return cast("dict[str, Any]", facts.get(name) or {})


def _items(facts: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", facts.get(name) or [])


def _cut(value: object, room: int) -> str:
    import json

    return shorten(json.dumps(value, ensure_ascii=False, default=repr), room)
