"""An environment for each peer, made once under a cache folder, with the versions of the table below."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["PINS", "Unusable", "cache_folder", "interpreter"]

_FLOOR = "orjson==3.13.0"
PINS: Mapping[str, tuple[str, ...]] = {
    "agentos-platform": ("agentos-platform==0.4.0",),
    "ai-agent-vcr": ("ai-agent-vcr==1.5.4",),
    "agentcassette": ("agentcassette==0.2.0",),
    "agent-rewind": ("agent-rewind==0.8.0",),
    "langgraph": ("langgraph==1.2.24", "langgraph-checkpoint==4.3.2", "langgraph-checkpoint-sqlite==3.1.2"),
    "dbos": ("dbos==3.4.0",),
    "temporalio": ("temporalio==1.35.0",),
    "vcrpy": ("vcrpy==9.4.2", "openai==3.57.0", "httpx2==2.16.2"),
}
"""What is installed in each environment, beside orjson for floor A. What these need in turn is not pinned."""

_SECONDS = 300


class Unusable(Exception):
    """No environment could be made. The message is the reason, in one line."""


def cache_folder() -> Path:
    """Where environments are kept: the user's cache, never the repository."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentloom-benchmarks"


def _done(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        raise Unusable(f"does not install: {said[-1] if said else error}") from error
    except subprocess.TimeoutExpired as error:
        raise Unusable(f"does not install within {_SECONDS} seconds") from error


def interpreter(name: str, cache: Path) -> Path:
    """The Python of the environment of ``name`` in ``PINS``; made when it is not there. Raises `Unusable`.

    The folder's name says what is in it, so that other versions or another Python get another folder.
    """
    wanted = [*PINS[name], _FLOOR]
    digest = hashlib.sha256("\n".join([sys.version, *wanted]).encode()).hexdigest()[:12]
    folder = cache / f"{name}-{digest}"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if (folder / "installed").exists():
        return python
    shutil.rmtree(folder, ignore_errors=True)
    cache.mkdir(parents=True, exist_ok=True)
    uv = shutil.which("uv")
    if uv:
        _done([uv, "venv", "--quiet", "--python", sys.executable, str(folder)])
        _done([uv, "pip", "install", "--quiet", "--python", str(python), *wanted])
    else:
        _done([sys.executable, "-m", "venv", str(folder)])
        _done([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
    (folder / "installed").touch()
    return python
