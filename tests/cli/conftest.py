"""What the command line's tests share: running it in this process and as a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from agentloom.cli.main import main
from tests.cli.scripts import Scripts


@dataclass
class Result:
    """What a command line gave back."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON document on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The error that ``--json`` wrote on stderr."""
        found: dict[str, Any] = json.loads(self.err)["error"]
        return found


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No store, colours or width of the machine; the current folder is a scratch folder."""
    for name in ("AGENTLOOM_STORE", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "_AGENTLOOM_COMPLETE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    """Scripts of the test's own folder."""
    return Scripts(tmp_path)


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run ``agentloom ARGS`` in this process."""

    def call(*args: str) -> Result:
        capsys.readouterr()
        code = main(args)
        out, err = capsys.readouterr()
        return Result(code, out, err)

    return call


@pytest.fixture
def process() -> Callable[..., Result]:
    """Run ``agentloom ARGS`` as a process."""

    def call(*args: str, **env: str) -> Result:
        done = subprocess.run(
            [sys.executable, "-m", "agentloom", *args],
            capture_output=True, text=True, timeout=60, check=False, env=os.environ | env,
        )  # fmt: skip
        return Result(done.returncode, done.stdout, done.stderr)

    return call
