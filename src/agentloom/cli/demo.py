"""``agentloom demo``: an agent deletes the wrong accounts, on a real local model; then what a trace is good for."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentloom.cli.options import Settings, common
from agentloom.cli.render import Screen
from agentloom.errors import LoomError

if TYPE_CHECKING:
    from agentloom.cli.demo_acts import Outcome
    from agentloom.cli.demo_show import Started

__all__ = ["command"]

FOLDER = "agentloom-demo"
TIMES = 10
"""Reruns, replays, and runs of the edited agent."""
SEARCH_SECONDS = 100.0
"""How long to look for a run that hits production. One run takes half a second and one in ten hits."""


@click.command(short_help="An agent deletes the wrong accounts, on a real local model.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--script", "script", type=click.Path(path_type=Path), metavar="FILE",
              help="Try your own agent instead (script.py or file.py:name); ARGS go to it.")  # fmt: skip
@click.option("--dir", "folder", type=click.Path(path_type=Path), metavar="DIR",
              help=f"Where agent, database and traces stay (default: {FOLDER}, or its next free number).")  # fmt: skip
@click.option("--sampler", is_flag=True, help="No model: a seeded sampler draws the answers.")
@click.option("--seed", type=int, default=904, show_default=True, help="Seed of the sampler.")
@click.option("--yes", is_flag=True, help="Install what the local model needs, if it is missing.")
@common
def command(
    settings: Settings,
    *,
    args: tuple[str, ...],
    script: Path | None,
    folder: Path | None,
    sampler: bool,
    seed: int,
    yes: bool,
) -> int | None:
    """Record a clean-up agent on a local model of 135 million parameters until it deletes the wrong accounts, then
    replay that run, edit its prompt, compare it with a good run, and try to falsify its record.

    It takes about a minute, needs no key and no network, and leaves everything in one folder.
    """
    screen = settings.screen()
    if script is not None:
        from agentloom.cli.demo_script import try_script

        return try_script(settings, str(script), args)
    if args:
        raise click.UsageError("arguments go with --script FILE")
    place = folder if folder is not None else _free_folder()
    if folder is not None and folder.exists():
        raise click.BadParameter(f"{folder} exists; name a new folder", param_hint="--dir")
    with _answering(screen, sampler=sampler, seed=seed, yes=yes) as started:
        return _play(settings, screen, place, started)


def _free_folder() -> Path:
    """``agentloom-demo``, or the next number that is free: what a reader edited is never overwritten."""
    number = 1
    while (place := Path(FOLDER if number == 1 else f"{FOLDER}-{number}")).exists():
        number += 1
    return place


@contextmanager
def _answering(screen: Screen, *, sampler: bool, seed: int, yes: bool) -> Generator[Started]:
    """Start what answers the agent; whatever happens, nothing of it runs afterwards."""
    from agentloom.adapters import local
    from agentloom.cli.demo_sampler import SAMPLER, SeededSampler
    from agentloom.cli.demo_show import Started
    from agentloom.runtime.models import set_backend

    if not sampler and _model_ready(screen, yes=yes):
        try:
            server = local.shared("smollm2")
            yield Started(server.title, server.port, server.pid, server.load_seconds, None)
        finally:
            local.stop_shared()
        return
    before = set_backend(SeededSampler(seed))
    try:
        yield Started(SAMPLER, None, None, 0.0, seed)
    finally:
        set_backend(before)


def _model_ready(screen: Screen, *, yes: bool) -> bool:
    """Whether the local model can run; says what is missing and how to install it, and with ``yes`` installs it."""
    from agentloom.adapters import local

    for attempt in (1, 2):
        commands = _missing_commands()
        if not commands:
            return True
        if not yes or attempt == 2:
            screen.error_text("The local model is not installed. To install it:")
            for words in commands:
                screen.error_text(f"  {' '.join(words)}")
            screen.error_text("or: agentloom demo --yes. Going on with a seeded sampler, which is no model.")
            return False
        for words in commands:
            screen.note(("dim", f"$ {' '.join(words)}"))
            sys.stderr.flush()  # the installer writes there itself
            if subprocess.run(words, stdout=2, check=False).returncode:
                screen.error_text(f"that failed: {' '.join(words)}")
        importlib.invalidate_caches()
    return not local.missing()


def _missing_commands() -> list[list[str]]:
    """The commands that install what the local model needs and is not there."""
    from agentloom.adapters import local

    names = [str(error.fields["missing"]) for error in local.missing()]
    commands: list[list[str]] = []
    engine = [name for name in ("xllamacpp",) if name in names]
    if importlib.util.find_spec("openai") is None:
        engine.append("openai")
    if engine:
        commands.append(local.install_command(*engine, dependencies=True))
    if local.SMOLLM2.distribution in names:
        commands.append(local.install_command(local.SMOLLM2.distribution))
    return commands


def _play(settings: Settings, screen: Screen, folder: Path, started: Started) -> int:
    """All acts in order. Returns 0; raises LoomError when no run hit production in the time there is."""
    from agentloom.adapters import local
    from agentloom.api.trace import Trace
    from agentloom.cli import demo_acts, demo_forge, demo_show
    from agentloom.cli.demo_story import Story
    from agentloom.cli.runs import short
    from agentloom.store import open_store

    began = time.monotonic()
    story = Story.make(folder, model=None if started.real else started.name)
    place = settings.store or os.environ.get("AGENTLOOM_STORE") or None
    store = open_store(place or folder / ".agentloom")
    page = demo_show.Page(screen, started, str(folder))
    ticker = _Ticker(screen)
    with story.imported() as (agent, accounts):
        page.opening(accounts.count(story.database))
        found = demo_acts.incident(story, agent.cleanup, store, seconds=SEARCH_SECONDS, progress=ticker.show)
        ticker.clear()
        page.incident(found)
        if found.bad is None or found.good is None:
            raise LoomError(
                f"none of {len(found.runs)} runs hit production in {SEARCH_SECONDS:.0f} s, which happens by chance",
                hint="agentloom demo (once more), or agentloom demo --sampler",
            )
        bad, good = (Trace.open(run.run, store) for run in (found.bad, found.good))
        head = bad.head
        (folder / "incident.head").write_text(head + "\n", "ascii")
        again: list[Outcome] = []
        for _ in range(TIMES):
            again.append(demo_acts.rerun(story, agent.cleanup, store, "rerun"))
            ticker.show(again)
        ticker.clear()
        page.rerun(again, found.bad)
        local.stop_shared()
        done = demo_acts.replays(story, agent.cleanup, accounts, bad, TIMES)
        names = [run.run for run in store.runs()]
        name = short(bad.run_id, names)
        page.replays(done, name, started.port, started.port is not None and demo_acts.port_open(started.port))
    edit = demo_acts.try_edit(story.edited(), bad, store, TIMES if started.real else 0, ticker.show)
    ticker.clear()
    page.edit(edit, found.bad)
    page.diff(good.diff(bad), short(good.run_id, names), name)
    page.verify(demo_forge.check_record(store.read(bad.run_id), head, found.bad.deleted, folder), head)
    page.closing(time.monotonic() - began, _next(folder, place, name))
    return 0


def _next(folder: Path, place: str | None, name: str) -> list[tuple[str, str]]:
    """Commands to try, each with what it is for; ``place`` is a store that is not the folder's own."""
    call = "agentloom" if place is None else f"agentloom --store {shlex.quote(os.path.abspath(place))}"
    return [
        (f"cd {shlex.quote(str(folder))} && {call} show {name}", "that run, call by call"),
        (f"{call} replay {name}", "again; then change SYSTEM in agent.py, and again"),
        (f"{call} verify rewritten.loom --head $(cat incident.head)", "it notices"),
        ("agentloom demo --script your_agent.py", "the same questions to an agent of yours"),
    ]


class _Ticker:
    """One changing line on a terminal while runs are recorded; nothing in a pipe."""

    def __init__(self, screen: Screen) -> None:
        self._on = sys.stderr.isatty() and not screen.json and not screen.settings.quiet

    def show(self, runs: list[Outcome]) -> None:
        """One mark for each run: ``.`` staging, ``!`` production, ``x`` failed."""
        if self._on:
            marks = "".join({"staging": ".", "production": "!"}.get(run.target or "", "x") for run in runs)
            sys.stderr.write(f"\r   recording {marks[-60:]}")
            sys.stderr.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._on:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
