"""The seams with the lowest and the newest tested release of each SDK, each in a folder beside this environment.

``python -m tests.environments.sdk_releases [lowest|newest] [openai ...]``: installs what `agentloom.adapters.releases`
names from the package registry, runs the table of seams with it, and prints a line each; exit code 1 if one is wrong.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agentloom.adapters.releases import RANGES

ROOT = Path(__file__).resolve().parents[2]

# What each folder holds beside the SDK where its own dependencies leave a choice, and the seams that are run with it.
LOWEST: dict[str, tuple[list[str], list[str]]] = {
    "openai": (["openai", "httpx"], ["openai"]),
    "anthropic": (["anthropic", "httpx"], ["anthropic"]),
    "google": (["google.genai", "aiohttp"], ["google"]),
    "litellm": (["litellm"], ["litellm"]),
    "http": (["aiohttp", "urllib3", "requests", "httpx2", "httpx"], ["httpx", "aiohttp", "urllib"]),
}
NEWEST: dict[str, tuple[list[str], list[str]]] = {
    "openai": (["openai"], ["openai"]),
    "anthropic": (["anthropic"], ["anthropic"]),
    "google": (["google.genai", "aiohttp"], ["google"]),
    "litellm": (["litellm"], ["litellm"]),
    "http": (["aiohttp", "urllib3", "requests", "httpx2", "httpx"], ["httpx", "aiohttp", "urllib"]),
}


def run(which: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Name of each folder and what came of it: the last line of the table, or why it was not run."""
    for name, (modules, seams) in (LOWEST if which == "lowest" else NEWEST).items():
        if names and name not in names:
            continue
        wanted = [f"{RANGES[one].package}=={getattr(RANGES[one], which)}" for one in modules]
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "site-packages"
            made = subprocess.run(
                [sys.executable, "-m", "pip", "install", "-q", "--target", str(place), *wanted],
                capture_output=True,
                text=True,
                check=False,
            )
            if made.returncode:
                yield f"{which} {name}", f"cannot be installed: {made.stderr.strip()[-300:]}"
                continue
            done = subprocess.run(
                [sys.executable, "-m", "tests.adapters.sdk_table", *seams],
                cwd=ROOT,
                env=os.environ | {"PYTHONPATH": f"{place}{os.pathsep}{ROOT}"},
                capture_output=True,
                text=True,
                check=False,
            )
            said = [line for line in done.stdout.splitlines() if line.startswith(("wrong:", "  "))]
            yield f"{which} {', '.join(wanted)}", "; ".join(said) or done.stderr.strip()[-300:]


def main(arguments: list[str]) -> int:
    chosen = [word for word in arguments if word in ("lowest", "newest")] or ["lowest", "newest"]
    names = [word for word in arguments if word not in ("lowest", "newest")]
    bad = 0
    for which in chosen:
        for name, said in run(which, names):
            bad += said != "wrong: 0"
            print(f"{name}: {said}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
