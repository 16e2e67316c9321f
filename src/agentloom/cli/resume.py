"""``agentloom resume RUN``: go on with a run that waits, or whose process died, in the same trace."""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

import click

from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.replay import Place, beginning, entry_of, place_of, recorded_settings
from agentloom.cli.runs import RUN, Found, looks_like_a_file, short
from agentloom.cli.script_parent import Child, Surroundings, child_environment, start
from agentloom.cli.suspended import facts_of, show_suspended
from agentloom.errors import NotSupported, TargetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentloom.cli.render import Screen, Span
    from agentloom.replay.recording import Recording
    from agentloom.store import Store

__all__ = ["command", "failed", "report", "resume_job", "resumed"]

_NO_AGENT = ("script", "call", "block")


@click.command(short_help="Go on with a run that waits, or whose process died.")
@click.argument("run", type=RUN)
@click.option(
    "--retry-failed", is_flag=True, help="Of a run that failed: try its last failed call again, and go on."
)
@click.option(
    "--at", metavar="REV", help="Run the code of a git revision, or 'recorded' for the sources in the trace."
)
@click.option("--target", metavar="FILE:NAME", help="The agent to run, when it is not where it was.")
@common
def command(settings: Settings, run: str, *, retry_failed: bool, at: str | None, target: str | None) -> int:
    """Go on with RUN in a process of its own: what was recorded is replayed, then it is live, in the same trace.

    \b
    agentloom resume 7f3a
    agentloom resume 7f3a --at recorded       the code as it was when the run began
    agentloom resume 7f3a --retry-failed      once more from the call that failed

    Exit code 0: it ended; 1: it failed; 3: the code no longer fits what was recorded, and the run is left as it was;
    75: it waits (again), and the command says for what.
    """
    if looks_like_a_file(run):
        raise TargetError(
            f"{run} is a file, and a run goes on where it is kept",
            hint=f"agentloom import {run}, then resume it",
        )
    store = settings.open_store()
    run = store.resolve(run)
    screen = settings.screen()
    began = time.monotonic()
    before = _calls(store, run)
    child = resumed(
        settings,
        store,
        run,
        at=at,
        target=target,
        retry_failed=retry_failed,
        note=lambda text: screen.note(("dim", text)),
    )
    settings.ended_by = (child.done or {}).pop("signal", None) or child.signal
    return report(settings, run, child, before, time.monotonic() - began)


def resumed(
    settings: Settings,
    store: Store,
    run: str,
    *,
    at: str | None = None,
    target: str | None = None,
    retry_failed: bool = False,
    steady: bool = False,
    told: Callable[[int], bool] | None = None,
    note: Callable[[str], None] | None = None,
) -> Child:
    """Resume ``run`` in a child process, and wait for it. ``steady``: it is not ended by signals, asks nobody, and
    what it prints goes to stderr; ``told``: as of ``script_parent.start``."""
    found = Found(store.read(run), run, None)
    recording = beginning(found)
    entry = entry_of(recording)
    if entry.get("kind") in _NO_AGENT and target is None:
        raise NotSupported(
            f"run {run} was recorded as {entry['kind']}, which another process cannot go on with",
            hint="make the code an @agent and start it with run(), arun() or `agentloom run FILE:AGENT`",
            run=run,
        )
    with ExitStack() as stack:
        place = place_of(recording, entry, target, at, stack)
        if place.note and note is not None:
            note(f"   {place.note}")
        job = resume_job(settings, recording, entry, place) | {
            "retry_failed": retry_failed, "steady": steady, "json": settings.json or steady,
        }  # fmt: skip
        seed, pinned = recorded_settings(recording)
        environ = child_environment(seed, {**os.environ, **pinned})
        return start(job, environ, None, Surroundings(apart=steady), told=told)


def resume_job(
    settings: Settings, recording: Recording, entry: dict[str, Any], place: Place
) -> dict[str, Any]:
    """What the child process is told that goes on with a run."""
    return {
        "mode": "resume",
        "run": recording.run,
        "store": settings.store,
        "path": place.path,
        "module": place.module,
        "object": place.name or str(entry.get("qualname")),
        "recorded": entry if entry.get("kind") == "function" else None,
        "width": settings.screen().width,
    }


def _calls(store: Store, run: str) -> int:
    from agentloom.cli.run import calls_of

    return sum(calls_of(store, run).values())


# -- what came of it -------------------------------------------------------------------------------------------------


def report(settings: Settings, run: str, child: Child, before: int, seconds: float) -> int:
    """Say what came of a resumption, and return the exit code. ``before``: the calls that the run had made."""
    screen, store = settings.screen(), settings.open_store()
    if child.error is not None:
        return failed(screen, child.error)
    calls = _calls(store, run)
    done = child.done or {"status": "crashed", "exit": child.code}
    code = int(done["exit"]) if child.done is not None else child.code
    if screen.json:
        facts = {"run": run, "calls": calls, "new": calls - before, "seconds": round(seconds, 3)}
        done.pop("lines", None)
        screen.data(facts | done | (facts_of(store, run) if done["status"] == "suspended" else {}))
        return code
    if done["status"] == "diverged":
        screen.lines(
            [(str(style), str(text)) for style, text in line] for line in cast("list[Any]", done["lines"])
        )
        name = short(run)
        screen.note(("warn", "not resumed: "), f"run {name} is as it was, and nothing was done")
        if (
            cast("dict[str, Any]", done["report"]).get("class") != "leak"
        ):  # there the code is the recorded one
            screen.note(
                f"   agentloom resume {name} --at recorded      the code as it was when the run began"
            )
        return Exit.DIVERGENCE
    _summary(screen, run, done, calls, before, seconds)
    if done["status"] == "suspended":
        show_suspended(screen, store, run)
    elif done["status"] == "crashed":
        screen.note(
            f"   its process ended with exit code {child.code}; resume it again, or see agentloom show {short(run)}"
        )
    return code


def _summary(screen: Screen, run: str, done: dict[str, Any], calls: int, before: int, seconds: float) -> None:
    status = str(done["status"])
    style = {"completed": "good", "suspended": "warn"}.get(status, "bad")
    new = calls - before
    words = f"{calls} call{'' if calls == 1 else 's'}, {new} of them new"
    tail: list[Span] = [] if status == "completed" else [(style, f"  {status}")]
    screen.note((style, "-- resumed "), ("name", short(run)), f"  {words}  {seconds:.1f} s", *tail)


def failed(screen: Screen, error: dict[str, Any]) -> int:
    """Say why the process could not do what it was asked to; the exit code."""
    if screen.json:
        screen.error_text(json.dumps({"error": error}))
    else:
        screen.problem(str(error.get("message")), error.get("next") or error.get("hint"))
    return int(error.get("exit") or 1)
