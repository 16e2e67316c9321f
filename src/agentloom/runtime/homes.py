"""Paths without the home folder, which names a person: ``~/project/agent.py``."""

from __future__ import annotations

import os

__all__ = ["below_home", "from_home"]


def below_home(path: str) -> str:
    """An absolute path as it is written: below the home folder from there, any other as it is."""
    home = os.path.expanduser("~")
    for folder in (home, os.path.realpath(home)):
        prefix = os.path.join(folder, "")
        if len(prefix) > 1 and path.startswith(prefix):
            return os.path.join("~", path[len(prefix) :])
    return path


def from_home(path: str) -> str:
    """Where that is here, for whoever asks."""
    return os.path.expanduser(path) if path.startswith(os.path.join("~", "")) else path
