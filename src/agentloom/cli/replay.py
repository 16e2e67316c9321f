"""``agentloom replay RUN``: run a recorded run again, offline; nothing is ever performed."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import click

from agentloom.cli.options import Settings, common
from agentloom.cli.runs import Found, find
from agentloom.cli.script_facts import replay_environment
from agentloom.cli.script_parent import Child, child_environment, start
from agentloom.cli.targets import parse_target
from agentloom.errors import LoomError, NotSupported, TargetError
from agentloom.format.journal import Journal
from agentloom.format.lines import ENTRY_START
from agentloom.format.values import Tree
from agentloom.replay.recording import Recording
from agentloom.runtime.homes import from_home

if TYPE_CHECKING:
    from agentloom.cli.render import Screen

__all__ = [
    "Place",
    "beginning",
    "command",
    "entry_of",
    "place_of",
    "recorded_settings",
    "replay_found",
    "replay_job",
]


@click.command(short_help="Run a recorded run again, offline; nothing is ever performed.")
@click.argument("run")
@click.option(
    "--at", metavar="REV", help="Run the code of a git revision, or 'recorded' for the sources in the trace."
)
@click.option("--until", metavar="CALL", help="End behind a call of an agent: its number, or its path.")
@click.option("--strict-noted", is_flag=True, help="Exit 3 also when fields differ that are only noted.")
@click.option(
    "--target", metavar="FILE", help="The script (or FILE:NAME) to run, when it is not where it was."
)
@common
def command(
    settings: Settings, run: str, *, at: str | None, until: str | None, strict_noted: bool, target: str | None
) -> int:
    """Run the program of RUN again from the top; every host call is answered from the trace.

    \b
    agentloom replay last
    agentloom replay 7f3a --at HEAD~1
    agentloom replay run.loom --target agent.py

    It happens in a process of its own, without a network, and needs no key. Exit code 0: identical; 3: it diverged,
    and the report says where and why.
    """
    found = find(settings, run)
    return replay_found(settings, found, at=at, until=until, strict_noted=strict_noted, target=target)


def replay_found(
    settings: Settings,
    found: Found,
    *,
    at: str | None = None,
    until: str | None = None,
    strict_noted: bool = False,
    target: str | None = None,
) -> int:
    """Replay a trace, show the report, and return the exit code; see ``command`` for the options."""
    recording = beginning(found)
    entry = entry_of(recording)
    _refuse_unknown_call(recording, entry, target)
    screen = settings.screen()
    with ExitStack() as stack:
        place = place_of(recording, entry, target, at, stack)
        if place.note:
            screen.note(("dim", f"   {place.note}"))
        job, environ = replay_job(found, recording, place)
        job["until"] = None if until is None else _last_call(found, entry, until)
        job |= {"json": settings.json, "strict_noted": strict_noted, "width": screen.width}
        child = start(job, environ, found.data)
    return _report(screen, child)


def _last_call(found: Found, entry: dict[str, Any], until: str) -> int:
    """The number of the call with which a replay is to end. ``TargetError`` where there is none, or where the program
    cannot be stopped there."""
    if entry.get("kind") in ("script", "call", "block"):
        raise NotSupported(
            f"--until ends the replay of an agent, and {found.full_name} was recorded as {entry['kind']}",
            hint="replay all of it",
        )
    recording = Recording.from_journal(found.journal())
    call = recording.by_id.get(until)
    number = call.index if call is not None else int(until) if until.isdecimal() else 0
    if not 0 < number <= len(recording.calls):
        raise TargetError(
            f"{found.full_name} has no call {until}",
            hint=f"give a number from 1 to {len(recording.calls)}, or a path as agentloom show says it",
        )
    return number


def replay_job(found: Found, recording: Recording, place: Place) -> tuple[dict[str, Any], dict[str, str]]:
    """What the child process is told, and its environment: the recorded hash seed, time zone and settings."""
    entry = entry_of(recording)
    job: dict[str, Any] = {
        "mode": "replay",
        "path": place.path,
        "module": place.module,
        "object": None if entry.get("kind") == "script" else place.name or str(entry.get("qualname")),
        "recorded": entry if entry.get("kind") in ("function", "call") else None,
        "name": found.full_name,
    }
    environ = replay_environment(cast("dict[str, Any]", entry.get("environment") or {}), os.environ)
    seed, pinned = recorded_settings(recording)
    return job, child_environment(seed, {**environ, **pinned})


def recorded_settings(recording: Recording) -> tuple[str, dict[str, str]]:
    """The hash seed of the process that recorded, and what else its interpreter started with that code can see."""
    env = recording.payload("env")
    seed = str(env.get("hash_seed") or "") if isinstance(env, dict) else ""
    if recording.guard != "off" and isinstance(zone := _member(env, "zone", "key"), str):
        return seed, {"TZ": zone}  # what no guard sees: time.tzname, local time in C
    return seed, {}


def _refuse_unknown_call(recording: Recording, entry: dict[str, Any], target: str | None) -> None:
    """Raise ``TargetError`` for a run that only its program can make again, unless ``target`` names what does."""
    if entry.get("kind") == "block":
        raise TargetError(
            f"run {recording.run} is of a block of code, record({recording.agent!r})",
            hint=f"run its program with AGENTLOOM=replay AGENTLOOM_TRACE={recording.run}, or trace.replay(call=...)",
        )
    if entry.get("kind") == "call" and (target is None or parse_target(target).name is None):
        raise TargetError(
            f"run {recording.run} does not say how {recording.agent} was called: {entry.get('missing')}",
            hint="--target FILE:NAME with a function without arguments that makes that call,"
            " or the program itself under AGENTLOOM=replay",
        )


def _member(tree: Tree, *names: str) -> Tree:
    """What stands under ``names`` in a tree of mappings, or None."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def beginning(found: Found) -> Recording:
    """The recording as far as its start entry, which says what to run: the child reads, and checks, all of it."""
    end = found.data.find(b"\n" + ENTRY_START)
    if end > 0:
        try:
            recording = Recording.from_journal(Journal.parse(found.data[: end + 1]))
            for name in ("code", "env"):
                recording.payload(name)
            return recording
        except LoomError:  # what is wrong is better said by one who read all of it
            pass
    recording = Recording.from_journal(found.journal())
    recording.replayable()
    return recording


def entry_of(recording: Recording) -> dict[str, Any]:
    code = recording.payload("code")
    entry = code.get("entry") if isinstance(code, dict) else None
    if not isinstance(entry, dict):
        raise NotSupported(
            f"run {recording.run} does not say which program made it, so it cannot be run again",
            hint=f"agentloom show {recording.run}",
        )
    return cast("dict[str, Any]", entry)


def _report(screen: Screen, child: Child) -> int:
    if child.done is None:
        error = child.error or {
            "type": "NoVerdict",
            "message": f"the process of the program ended with exit code {child.code} before there was a verdict",
            "next": "it was killed, or a package of it crashed; run the program by itself: it should end by itself",
            "exit": 1,
        }
        if screen.json:
            import json

            screen.error_text(json.dumps({"error": error}))
        else:
            screen.problem(str(error.get("message")), error.get("next") or error.get("hint"))
        return int(error.get("exit") or 1)
    if screen.json:
        screen.data(child.done["report"])
    else:
        lines = [[(str(style), str(text)) for style, text in line] for line in child.done["lines"]]
        for number, line in enumerate(lines):
            screen.line(*([("good", "-- "), *line] if number == 0 and child.done["exit"] == 0 else line))
        _safety(screen, child.done["report"])
    return int(child.done["exit"])


def _safety(screen: Screen, facts: dict[str, Any]) -> None:
    """What was not done, and who saw to it."""
    by = "the operating system" if facts["network"] == "os" else "Python alone"
    done = "" if facts["verdict"] == "diverged" else "0 model calls, 0 tools run, 0 files written, "
    screen.line(("dim", f"   {done}network refused by {by}"))
    reads: list[str] = facts["reads"]
    if reads:
        more = f" and {len(reads) - 3} more" if len(reads) > 3 else ""
        screen.line(("dim", f"   not recorded, read as it is now: {', '.join(reads[:3])}{more}"))


# -- which code ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    path: str | None
    module: str | None = None
    note: str | None = None
    name: str | None = None
    """The object in it, where another than the recorded one is asked for."""


def place_of(
    recording: Recording, entry: dict[str, Any], target: str | None, at: str | None, stack: ExitStack
) -> Place:
    """The program to run: given, of a revision, of the trace, or where it was when recorded."""
    if target is not None and at is not None:
        raise click.UsageError("--target and --at both say which code to run: give one")
    if at == "recorded":
        return _recorded(recording, entry, stack)
    if target is not None:
        chosen = parse_target(target)
        return Place(chosen.path, _module(entry) if chosen.path else chosen.module, name=chosen.name)
    here = _here(entry)
    if at is not None:
        return _revision(here, entry, at, stack)
    if here is not None:
        return Place(here, _module(entry))
    if entry.get("kind") == "script":
        name = str(entry.get("path") or entry.get("file"))
        raise TargetError(
            f"the script is no longer at {name}",
            hint="--target FILE names where it is now; --at recorded runs the sources kept in the trace",
        )
    return Place(None, str(entry.get("module")))


def _module(entry: dict[str, Any]) -> str | None:
    return None if entry.get("kind") == "script" else str(entry.get("module"))


def _here(entry: dict[str, Any]) -> str | None:
    """The recorded path, or the file below the working folder."""
    for name in (entry.get("path"), entry.get("file")):
        if isinstance(name, str) and os.path.isfile(found := from_home(name)):
            return os.path.abspath(found)
    return None


def _recorded(recording: Recording, entry: dict[str, Any], stack: ExitStack) -> Place:
    """The recorded sources, written into a temporary folder."""
    modules = cast("dict[str, Any]", cast("dict[str, Any]", recording.payload("code")).get("modules") or {})
    folder = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentloom-")))
    for name, module in modules.items():
        if not isinstance(module.get("source"), str):
            raise NotSupported(
                f"the trace does not hold the source of {name}, only its digest",
                hint="--at REV or --target FILE",
            )
        path = os.path.realpath(os.path.join(folder, str(module["file"])))
        if not path.startswith(folder + os.sep):
            raise TargetError(
                f"the trace names a source outside its folder: {module['file']}", hint="--target FILE"
            )
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(module["source"])
    return Place(
        os.path.join(folder, str(entry.get("file"))), _module(entry), "runs the sources kept in the trace"
    )


def _revision(here: str | None, entry: dict[str, Any], at: str, stack: ExitStack) -> Place:
    """The repository at a revision, unpacked into a temporary folder."""
    folder = os.path.dirname(here) if here else os.getcwd()
    top = _git(folder, "rev-parse", "--show-toplevel").strip()
    commit = _git(top, "rev-parse", "--verify", "--end-of-options", f"{at}^{{commit}}").strip()
    target = os.path.realpath(stack.enter_context(tempfile.TemporaryDirectory(prefix="agentloom-")))
    archive = os.path.join(target, ".agentloom-revision.tar")
    _git(top, "archive", "--format=tar", "-o", archive, commit)
    import tarfile

    with tarfile.open(archive) as tar:
        tar.extractall(target, filter="data")
    os.remove(archive)
    path = os.path.join(target, os.path.relpath(here or os.path.abspath(str(entry.get("file"))), top))
    if not os.path.isfile(path):
        raise TargetError(
            f"{at} has no {os.path.relpath(path, target)}", hint="--target FILE, or another revision"
        )
    return Place(path, _module(entry), f"runs {commit[:7]} ({at})")


def _git(folder: str, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            text=True,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise TargetError(
            "--at needs git, which is not installed", hint="--at recorded, or --target FILE"
        ) from error
    except subprocess.CalledProcessError as error:
        raise TargetError(
            f"git {' '.join(arguments[:2])} failed: {str(error.stderr).strip()}",
            hint="--at takes a revision of the repository that the program lies in",
        ) from error
    return done.stdout
