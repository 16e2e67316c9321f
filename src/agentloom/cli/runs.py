"""How commands name a run: an id, its start or end, ``last``, a tag, or a trace file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentloom.store import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentloom.cli.options import Settings

__all__ = ["Found", "find", "looks_like_a_file", "short"]

_SHORTEST = 4


@dataclass(frozen=True, slots=True)
class Found:
    """The bytes of a trace and where they come from: a ``run`` of the store, or a file at ``path``."""

    data: bytes
    run: str | None
    path: str | None

    @property
    def name(self) -> str:
        """What to call it in a message."""
        return self.path or short(self.run or "?")


def looks_like_a_file(ref: str) -> bool:
    """Whether ``ref`` is meant as a path: it has a folder or a trace's suffix, or is an existing file."""
    return os.sep in ref or ref.endswith((".loom", ".loom.zst", ".zst")) or os.path.isfile(ref)


def find(settings: Settings, ref: str) -> Found:
    """The trace that ``ref`` names. Raises ``RunNotFound``, ``AmbiguousRun``, ``StoreError``, ``FormatError``."""
    if looks_like_a_file(ref):
        return Found(read_file(ref), None, ref)
    store = settings.open_store()
    run = store.resolve(ref)
    return Found(store.read(run), run, None)


def short(run: str, among: Iterable[str] = ()) -> str:
    """The shortest end of ``run`` (four characters or more) that ends none of the others ``among``.

    Ids begin with the time, so it is their end that tells runs apart; every command takes it for the run.
    """
    others = [other for other in among if other != run]
    for length in range(_SHORTEST, len(run)):
        if not any(other.endswith(run[-length:]) for other in others):
            return run[-length:]
    return run
