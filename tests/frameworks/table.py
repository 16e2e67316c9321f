"""Agents of frameworks, none written for agentloom: each recorded with one line, and replayed offline.

``python -m tests.frameworks.table [50] [PROGRAM ...]``: so many runs of each, in a cold process, with shuffled timing;
each replayed in a fresh process under another hash seed. What does not go together with the other packages
(LlamaIndex) is installed from the package registry, in a folder beside. Exit code 1 if a run was not equal.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.frameworks.proving import LLAMA_INDEX, PROGRAMS, ROOT, missing, prove


def installed(folder: Path) -> Path | None:
    """The folder with LlamaIndex in it; None where it cannot be installed."""
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), *LLAMA_INDEX]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"LlamaIndex cannot be installed: {done.stderr.strip()[-300:]}")
    return None if done.returncode else folder


def _tests(folder: Path) -> int:
    """What pytest says of LlamaIndex's own tests, with the packages of the folder."""
    path = os.pathsep.join((str(folder), str(ROOT)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/adapters/test_llama_index.py",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    print(f"tests/adapters/test_llama_index.py: {done.stdout.strip().splitlines()[-1]}")
    return done.returncode


def main(arguments: list[str]) -> int:
    runs = next((int(word) for word in arguments if word.isdecimal()), 50)
    chosen = [word for word in arguments if word in PROGRAMS] or list(PROGRAMS)
    bad = 0
    print("| framework | shows | program | equal |\n| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as place:
        for name in chosen:
            at, folder = Path(place) / name, None
            at.mkdir()
            if missing(name):
                folder = (
                    Path(os.environ.get("LLAMA_INDEX_FOLDER", ""))
                    if "LLAMA_INDEX_FOLDER" in os.environ
                    else None
                )
                folder = folder or installed(
                    Path(place) / "site-packages"
                )  # what is there counts as installed
            if missing(name, folder):
                print(f"| {PROGRAMS[name].framework} | | {name} | not installed |")
                bad += 1
                continue
            try:
                equal, first = prove(name, runs, at, folder)
            except AssertionError as failed:  # a process of it failed
                equal, first = 0, str(failed)
            bad += equal != runs
            print(
                f"| {PROGRAMS[name].framework} | {PROGRAMS[name].shows} | {name} | {equal}/{runs} |",
                flush=True,
            )
            if first:
                print(first)
            if folder is not None:
                bad += _tests(folder)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
