"""Runs scripts through the command line, in the way that a user does: ``run`` and then ``replay``."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording
from agentloom.store import open_store


@dataclass
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


class Folder:
    """A folder with programs and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"

    def write(self, text: str, name: str = "agent.py") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path


class Scripts(Folder):
    """A folder with scripts, and the commands that run them."""

    def call(
        self,
        *args: str,
        given: str = "",
        terminal: int | None = None,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Done:
        """Run a command. Its standard input holds ``given``, or is the descriptor ``terminal``."""
        command = ["-m", "agentloom", "--store", str(self.store), *args]
        return self._python(
            command,
            cwd or self.folder,
            env,
            **({"input": given} if terminal is None else {"stdin": terminal}),
        )

    def bare(
        self, name: str = "agent.py", *args: str, given: str = "", env: Mapping[str, str] | None = None
    ) -> Done:
        """Run a script by itself, without agentloom."""
        return self._python([name, *args], self.folder, env, input=given)

    def _python(self, args: Sequence[str], cwd: Path, env: Mapping[str, str] | None, **given: Any) -> Done:
        done = subprocess.run(
            [sys.executable, *args],
            **given,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=cwd,
            env=clean() | dict(env or {}),
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def run(self, text: str, *args: str, given: str = "", env: Mapping[str, str] | None = None) -> Done:
        """Record a script given as text."""
        return self.call("run", str(self.write(text)), "--", *args, given=given, env=env)

    def replay(self, *args: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Done:
        return self.call("replay", "last", *args, cwd=cwd, env=env)

    def recording(self) -> Recording:
        store = open_store(self.store)
        return Recording.from_journal(Journal.parse(store.read(store.resolve("last"))))


def clean() -> dict[str, str]:
    """The environment without what other tests or the machine may have set."""
    dropped = ("AGENTLOOM_", "OPENAI_", "ANTHROPIC_", "PYTHONHASHSEED", "COLUMNS")
    return {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
