"""Runs the command line as a user does, on bytes and with nothing of the test machine in the environment."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

from tests.cli.scripts import Folder

SECONDS = 60
"""Far more than anything here takes: a run that hangs fails its test."""
AGENT = "from agentloom import agent, tool, sync\nimport os, sys, threading, asyncio, contextlib\n"


@dataclass
class Done:
    """What a command left behind."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode("utf-8", "backslashreplace")

    @property
    def all(self) -> str:
        return self.out + self.err


class Room(Folder):
    """A folder with programs and a store, and the commands as bytes."""

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-m", "agentloom", "--store", str(self.store), *args]

    def call(self, *args: str, given: bytes = b"", **env: str) -> Done:
        done = subprocess.run(
            self.command(*args), input=given, capture_output=True, timeout=SECONDS, check=False,
            cwd=self.folder, env=environment() | env,
        )  # fmt: skip
        return Done(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        """A command that goes on while the test does; alone in its session, as far as signals are concerned."""
        return subprocess.Popen(
            self.command(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            cwd=self.folder, env=environment(), start_new_session=True,
        )  # fmt: skip

    def files(self) -> dict[str, bytes]:
        """Every file outside of the store and of Python's caches."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not {"store", "__pycache__"} & set(path.parts)
        }


def environment() -> dict[str, str]:
    dropped = ("AGENTLOOM_", "OPENAI_", "ANTHROPIC_", "PYTHON", "COLUMNS", "NO_COLOR", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    return kept | {"PYTHONDONTWRITEBYTECODE": "1"}
