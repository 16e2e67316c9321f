"""``agentloom rollback RUN``: take back what a run has done."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import click

from agentloom.cli.options import Settings, common
from agentloom.cli.replay import beginning, entry_of, place_of, recorded_settings
from agentloom.cli.resume import failed, resume_job
from agentloom.cli.runs import RUN, Found, short
from agentloom.cli.script_parent import Child, child_environment, start
from agentloom.cli.suspended import show_suspended

if TYPE_CHECKING:
    from agentloom.cli.render import Screen
    from agentloom.store import Store

__all__ = ["command"]


@click.command(short_help="Take back what a run has done, newest first.")
@click.argument("run", type=RUN)
@click.option("--dry-run", is_flag=True, help="Say what would be taken back, and what cannot be; do nothing.")
@click.option(
    "--target", metavar="FILE:NAME", help="Where the tools are declared, when it is not where they were."
)
@common
def command(settings: Settings, run: str, *, dry_run: bool, target: str | None) -> int:
    """Call the undo of each tool call of RUN that wrote something and ended well, newest first, each once. That is a
    run of its own; called again it goes on where it stopped.

    \b
    agentloom rollback 7f3a --dry-run
    agentloom rollback 7f3a

    Exit code 0: done, or done before; 1: there is nothing, or an undo failed (call it again); 75: the process died in
    an undo, and somebody has to say whether it happened.
    """
    store = settings.open_store()
    run = store.resolve(run)
    found = Found(store.read(run), run, None)
    recording = beginning(found)
    entry = entry_of(recording)
    with ExitStack() as stack:
        place = place_of(recording, entry, target, None, stack)
        job = resume_job(settings, recording, entry, place) | {
            "rollback": "plan" if dry_run else "do", "json": settings.json,
        }  # fmt: skip
        seed, pinned = recorded_settings(recording)
        child = start(job, child_environment(seed, {**os.environ, **pinned}), None)
    settings.ended_by = (child.done or {}).pop("signal", None) or child.signal
    return _report(settings.screen(), store, run, child)


def _report(screen: Screen, store: Store, run: str, child: Child) -> int:
    if child.error is not None:
        return failed(screen, child.error)
    done = child.done or {"status": "crashed", "exit": child.code}
    code = int(done["exit"]) if child.done is not None else child.code
    if screen.json:
        screen.data({"run": run} | done)
        return code
    if done["status"] == "planned":
        _show_plan(screen, run, done)
        return code
    by = str(done.get("by") or "")
    count = len(done.get("undone") or [])
    words = f"{count} call{'' if count == 1 else 's'} of run {short(run)} taken back"
    style = {"completed": "good", "suspended": "warn"}.get(str(done["status"]), "bad")
    if done["status"] == "completed":
        screen.note((style, "-- "), words, ("dim", f"  by run {short(by)}"))
    else:
        screen.note((style, f"-- {done['status']}"), f"  not all of run {short(run)} is taken back")
        screen.note(f"   agentloom rollback {short(run)}      goes on with it")
    if done["status"] == "suspended" and by:
        show_suspended(screen, store, by)
    return code


def _show_plan(screen: Screen, run: str, done: dict[str, Any]) -> None:
    can, cannot = done["can"], done["cannot"]
    screen.line(("name", short(run)), f"  {len(can)} to take back, in this order; nothing was done")
    for one in can:
        screen.line(f" {one['number']:>2} {one['tool']}  ", ("dim", f"-> {one['undo']}({one['given']})"))
    for one in cannot:
        screen.line(f" {one['number']:>2} {one['tool']}  ", ("warn", "cannot be taken back: it has no undo"))
