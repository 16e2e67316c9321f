"""Whether what a store keeps outlives the process and the machine: a run that waits for days must."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agentloom.store.base import Store
from agentloom.store.in_front import InFront
from agentloom.store.local import LocalStore
from agentloom.store.memory import MemoryStore

__all__ = ["dies_with", "file_system_of"]

_MOUNTS = "/proc/self/mountinfo"
_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_LAYERED = ("overlay", "aufs")
_HINT = "keep runs that wait elsewhere: --store DIR, or AGENTLOOM_STORE"


def dies_with(store: Store) -> str | None:
    """What would lose the runs of ``store``, in a sentence with what to do; None where nothing is known that would.

    Told are: a store in memory; a folder on a file system in memory; a folder in a container's own layer (Linux).
    """
    if isinstance(store, InFront):
        return dies_with(store.behind)
    if isinstance(store, MemoryStore):
        return f"this store is in memory: the run is gone when this process ends; {_HINT}"
    if not isinstance(store, LocalStore):
        return None
    kind = file_system_of(store.root)
    if kind in _IN_MEMORY:
        return f"the store lies in memory ({kind}): the run is gone when the machine stops; {_HINT}"
    if kind in _LAYERED:
        return (
            f"the store lies in a container's own layer ({kind}): the run is gone with the container; {_HINT}"
        )
    return None


def file_system_of(path: str, mounts: str | None = None) -> str | None:
    """The type of the file system that ``path`` lies on, as the kernel calls it; None where that cannot be told."""
    path = os.path.realpath(path)
    best, found = -1, None
    for point, kind in _mounts(_MOUNTS if mounts is None else mounts):
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:  # of two at one place the later one is on top
            best, found = len(point), kind
    return found


def _mounts(table: str) -> Iterator[tuple[str, str]]:
    """Mount points and their types. Fields as in proc(5): ``id parent dev root point options ... - type source``."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        front, dash, back = line.partition(" - ")
        fields, kind = front.split(), back.split()
        if dash and len(fields) > 4 and kind:
            yield _unescaped(fields[4]), kind[0]


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text
