"""Puts one bug at a time into a copy of the product and runs proofs against the copy until one finds it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.seeded_bugs.bugs import PROOFS, Bug

__all__ = ["Found", "hunt", "planted"]

ROOT = Path(__file__).resolve().parents[2]
LONGEST = 120
"""Seconds that one proof may take; a proof that hangs has found something."""


@dataclass(frozen=True, slots=True)
class Found:
    """What became of a bug: which proof found it (None: none did), what it said, and how long it took."""

    bug: Bug
    proof: str | None
    said: str
    seconds: float


def planted(bug: Bug | None, folder: Path) -> Path:
    """A copy of the source in ``folder`` with the bug in it. Raises ``LookupError`` where its place is not there.

    Bytecode comes along, but for the file with the bug.
    """
    source = folder / "src"
    # Not what another process is writing: it is gone under that name before it can be copied.
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("*.pyc.*"))
    if bug is not None:
        path = source / "agentloom" / bug.file
        text = path.read_text(encoding="utf-8")
        if text.count(bug.old) != 1:
            raise LookupError(f"{bug.name}: {bug.file} holds its place {text.count(bug.old)} times, not once")
        path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            stale.unlink()
    return source


def hunt(bug: Bug, folder: Path, *, every: bool = False) -> Found:
    """Look for ``bug`` with its own proof, and (``every``) with all others until one finds it."""
    source = planted(bug, folder)
    began = time.monotonic()
    for proof in dict.fromkeys([bug.proof, *(PROOFS if every else ())]):
        said = failure_of(PROOFS[proof], source)
        if said is not None:
            return Found(bug, proof, said, time.monotonic() - began)
    return Found(bug, None, "", time.monotonic() - began)


def failure_of(arguments: tuple[str, ...], source: Path) -> str | None:
    """Run tests against the copy of the product in ``source``: the name of the first that fails, or None."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header"]
    command += [
        "--tb=native"
    ]  # the others parse the source, which fails deep in a stack (CPython: "AST constructor")
    # A folder of its own: pytest clears away the folders of earlier runs, which others may be using.
    command += [f"--basetemp={source.parent / 'tests'}", *arguments]
    # Plugins of other packages, of which no proof makes use, would take half of the time.
    env = os.environ | {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no end after {LONGEST} s"
    if done.returncode == 0:
        return None
    lines = done.stdout.splitlines()
    failed = [line for word in ("FAILED", "ERROR") for line in lines if line.startswith(word)]
    if not failed:
        raise RuntimeError(
            f"pytest ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return failed[0].partition(" - ")[0]
