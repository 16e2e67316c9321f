"""Paths without the home folder, which names a person: ``~/project/agent.py``."""

from __future__ import annotations

import functools
import os

__all__ = ["below_home", "from_home"]


def below_home(path: str) -> str:
    """An absolute path as it is written: below the home folder from there, any other as it is."""
    for prefix in _beginnings(os.path.expanduser("~")):
        if path.startswith(prefix):
            return os.path.join("~", path[len(prefix) :])
    return path


@functools.lru_cache(maxsize=8)
def _beginnings(home: str) -> tuple[str, ...]:
    """With what a path below the home folder begins, as it is named and where it really is."""
    prefixes = [os.path.join(folder, "") for folder in (home, os.path.realpath(home))]
    return tuple(prefix for prefix in prefixes if len(prefix) > 1)


def from_home(path: str) -> str:
    """Where that is here, for whoever asks."""
    return os.path.expanduser(path) if path.startswith(os.path.join("~", "")) else path
