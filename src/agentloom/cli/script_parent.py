"""Starts the child process in which a program runs, passes signals on, and collects what the child reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from agentloom.errors import NotSupported

__all__ = ["HASH_SEED", "Child", "child_environment", "start"]

HASH_SEED = "0"
"""The hash seed of recorded programs, unless the environment pins another."""


@dataclass(slots=True)
class Child:
    """What a child process left behind. ``code`` is its exit code as a shell would see it (128 + signal)."""

    code: int
    run: str | None = None
    done: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    lines: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def child_environment(hash_seed: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """``environ`` with the hash seed pinned: ``hash_seed``, else the one that is set, else ``HASH_SEED``."""
    chosen = hash_seed or environ.get("PYTHONHASHSEED") or HASH_SEED
    if not chosen.isdigit():
        chosen = HASH_SEED
    return {**environ, "PYTHONHASHSEED": chosen}


def start(job: Mapping[str, Any], environ: Mapping[str, str], pass_fds: tuple[int, ...] = ()) -> Child:
    """Run the child to its end. Ctrl-C and SIGTERM go to the child; this process waits for it in any case."""
    if os.name != "posix":
        raise NotSupported(
            "running programs in a recorded child process works on Linux and macOS only in this version",
            hint="record an @agent function from your own code: my_agent.run(...)",
        )
    read, write = os.pipe()
    command = [sys.executable, "-P", "-m", "agentloom.cli.script_child", str(write), json.dumps(job)]
    try:
        process = subprocess.Popen(command, env=dict(environ), pass_fds=(write, *pass_fds))
    finally:
        os.close(write)
    received: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(read, received), daemon=True)
    reader.start()
    code = _wait(process)
    reader.join()
    return _child(128 - code if code < 0 else code, b"".join(received))


def _read_all(fd: int, into: list[bytes]) -> None:
    with os.fdopen(fd, "rb") as pipe:
        into.append(pipe.read())


def _wait(process: subprocess.Popen[bytes]) -> int:
    def forward(number: int, _frame: FrameType | None) -> None:
        if process.poll() is None:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _child(code: int, data: bytes) -> Child:
    child = Child(code)
    for line in data.splitlines():
        facts: dict[str, Any] = json.loads(line)
        child.run = facts.get("run", child.run)
        child.done = facts.get("done", child.done)
        child.error = facts.get("error", child.error)
        child.lines.append(facts)
    return child
