"""Starts the child process in which a program runs, passes signals on, and collects what the child reports."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any, cast

from agentloom.cli.script_wait import holding, wait_for
from agentloom.errors import NotSupported

__all__ = ["HASH_SEED", "Child", "Surroundings", "child_environment", "start"]

HASH_SEED = "0"
"""The hash seed of recorded programs, unless the environment pins another."""
_CHUNK = 65536
_LAST_WORDS = 5.0
"""Seconds to wait for the end of what a child that has ended had to say; it was all written before."""


@dataclass(slots=True)
class Child:
    """What a child process left behind. ``code`` is its exit code as a shell would see it (128 + signal); ``signal``
    what it died of, if it did."""

    code: int
    signal: int | None = None
    run: str | None = None
    done: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a child process runs: working folder, umask, more arguments; ``quiet``: what it prints is thrown away;
    ``apart``: in a session of its own, which the terminal's signals do not reach."""

    folder: str | None = None
    umask: int = -1
    arguments: tuple[str, ...] = ()
    quiet: bool = False
    apart: bool = False


_HERE = Surroundings()


def child_environment(hash_seed: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` with the hash seed pinned: ``hash_seed``, else the one that is set, else ``HASH_SEED``; without
    ``AGENTLOOM``: the command says what is done."""
    chosen = hash_seed or environ.get("PYTHONHASHSEED") or HASH_SEED
    if not chosen.isdigit():
        chosen = HASH_SEED
    kept = {name: value for name, value in environ.items() if name != "AGENTLOOM"}
    return {**kept, "PYTHONHASHSEED": chosen}


def start(
    job: Mapping[str, Any],
    environ: Mapping[str, str],
    trace: bytes | None = None,
    around: Surroundings = _HERE,
    *,
    told: Callable[[int], bool] | None = None,
) -> Child:
    """Run the child to its end, in the surroundings ``around``; ``trace`` is what it replays.

    Signals that ask a process to end go to a child that records, and this process waits for it in any case. A child
    that replays performs nothing, so that nothing is lost with it: it is ended, and ``KeyboardInterrupt`` raised. No
    child outlives this process. ``told`` gets signals first: it says whether the child is to be killed for it, and
    then none is passed on.
    """
    if os.name != "posix":
        raise NotSupported(
            "running programs in a recorded child process works on Linux and macOS only in this version",
            hint="record an @agent function from your own code: my_agent.run(...)",
        )
    read, write = os.pipe()
    alive, lifeline = os.pipe()
    received: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(read, received), daemon=True)
    try:
        with holding() as blocked:
            process = _started({**job, "blocked": blocked}, environ, trace, around, write, alive)
            reader.start()  # here, so that it gets none of the signals that are passed on
            code = wait_for(process, expendable=trace is not None, held=blocked is not None, told=told)
    finally:
        os.close(lifeline)
    reader.join(_LAST_WORDS)  # a process that the program left behind may hold the pipe open for ever
    child = Child(128 - code, -code) if code < 0 else Child(code)
    return _told(child, b"".join(received))


def _started(
    job: dict[str, Any],
    environ: Mapping[str, str],
    trace: bytes | None,
    around: Surroundings,
    write: int,
    alive: int,
) -> subprocess.Popen[bytes]:
    """The process, started; ``write`` and ``alive``, its ends of the pipes, are closed here."""
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, write)
        stack.callback(os.close, alive)
        given = [stack.enter_context(_holding(trace))] if trace is not None else []
        if given:
            job["trace_fd"] = given[0].fileno()
        # Not as an argument: the system allows 128 KiB for one, and JSON of a program's arguments may be longer.
        given.append(stack.enter_context(_holding(json.dumps(job).encode())))
        fds = [write, alive, *(file.fileno() for file in given)]
        words = [str(write), str(fds[-1]), str(alive)]
        command = [sys.executable, "-P", "-m", "agentloom.cli.script_child", *words]
        return subprocess.Popen(
            [*command, *around.arguments],
            env=dict(environ),
            pass_fds=fds,
            cwd=around.folder,
            umask=around.umask,
            start_new_session=around.apart,
            stdout=subprocess.DEVNULL if around.quiet else None,
            stderr=subprocess.DEVNULL if around.quiet else None,
        )


def _holding(data: bytes) -> IO[bytes]:
    """A file without a name that holds ``data``; in memory where the system has such files: that needs no disk."""
    memory = getattr(os, "memfd_create", None)
    file = os.fdopen(memory("agentloom"), "w+b") if memory is not None else tempfile.TemporaryFile()  # noqa: SIM115
    file.write(data)
    file.seek(0)
    return cast("IO[bytes]", file)


def _read_all(fd: int, into: list[bytes]) -> None:
    with os.fdopen(fd, "rb", buffering=0) as pipe:
        while data := pipe.read(_CHUNK):
            into.append(data)


def _told(child: Child, data: bytes) -> Child:
    for line in data.split(b"\n"):
        try:
            facts: dict[str, Any] = json.loads(line or b"{}")
        except ValueError:
            continue  # broken off in the middle, by the death of the child or a second Ctrl-C
        child.run = facts.get("run", child.run)
        child.done = facts.get("done", child.done)
        child.error = facts.get("error", child.error)
        child.lines.append(facts)
    return child
