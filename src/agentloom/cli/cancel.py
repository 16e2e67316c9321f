"""``agentloom cancel RUN``: stop a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from agentloom.cli.answer import by_option, login_name
from agentloom.cli.exits import Exit
from agentloom.cli.options import Settings, common
from agentloom.cli.resume import resumed
from agentloom.cli.runs import RUN, short
from agentloom.errors import LeaseHeld, MailTaken, NotSupported
from agentloom.format.journal import Journal
from agentloom.runtime.asks import asks_of
from agentloom.store import Mail, Store

if TYPE_CHECKING:
    from agentloom.cli.script_parent import Child

__all__ = ["command"]


@click.command(short_help="Stop a run.")
@click.argument("run", type=RUN)
@by_option
@common
def command(settings: Settings, run: str, *, by: str | None) -> int:
    """Stop RUN. One that waits, or whose process died, goes on as if Ctrl-C had been pressed where it stands: it can
    clean up, and ends cancelled. One that is being run is told, and stops when it next waits for somebody.

    Exit code 0: it was stopped, or told; 1: its code went on, or no longer fits: then it is left as it was.
    """
    store = settings.open_store()
    run = store.resolve(run)
    asked = asks_of(Journal.parse(store.read(run)))
    if asked.ended is not None:
        raise NotSupported(
            f"run {run} has ended ({asked.ended}): there is nothing to stop",
            hint=f"agentloom show {short(run)}",
            run=run,
        )
    _post(store, run, by or login_name())
    if (writer := _written_by(store, run)) is not None:
        return _say(
            settings,
            run,
            "told",
            f"{writer}; it stops when it next waits for somebody, Ctrl-C stops it there",
        )
    child = resumed(settings, store, run, steady=True)
    status = _status(child)
    if child.error is not None and child.error.get("type") == "LeaseHeld":
        return _say(settings, run, "told", str(child.error.get("message")))
    if child.error is not None or status in ("diverged", "crashed"):
        why = (
            str(child.error.get("message"))
            if child.error
            else f"resuming it {status} (exit code {child.code})"
        )
        return _say(settings, run, "not stopped", f"{why}; agentloom resume {short(run)} says more")
    words = {"cancelled": "", "suspended": "its code caught that, and waits again"}
    return _say(settings, run, status, words.get(status, f"its code caught that, and ended: {status}"))


def _post(store: Store, run: str, by: str | None) -> None:
    """Tell the run. Told before: it is stopped again where that was not taken yet."""
    try:
        store.post(run, Mail("cancel", "cancel", who=by, at=time.time_ns(), via="cli"))
    except MailTaken:
        return


def _written_by(store: Store, run: str) -> str | None:
    """Who writes the run, in words."""
    if not any(row.run == run and row.status == "running" for row in store.runs()):
        return None
    try:
        store.reopen(run).close()
    except LeaseHeld as held:
        return held.message
    return None


def _status(child: Child) -> str:
    return "crashed" if child.done is None else str(child.done["status"])


def _say(settings: Settings, run: str, status: str, words: str) -> int:
    screen = settings.screen()
    code = Exit.OK if status in ("cancelled", "told") else Exit.ERROR
    if screen.json:
        screen.data({"run": run, "status": status, "why": words or None})
    else:
        screen.line(
            ("good" if code == Exit.OK else "bad", status), "  ", ("name", short(run)), f"  {words}".rstrip()
        )
    return code
