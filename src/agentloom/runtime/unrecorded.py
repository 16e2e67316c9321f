"""Methods of wrapped objects that are no runs: what they call belongs to no run, is told by their name, and on a replay
is refused. A replay never becomes a live run.
"""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Generator
from contextlib import contextmanager

from agentloom.errors import Diverged
from agentloom.runtime.contexts import put

__all__ = ["Unrecorded", "entered_unrecorded", "refuse_unrecorded"]

_log = logging.getLogger("agentloom.recording")
_told: set[tuple[str, str]] = set()


class Unrecorded:
    """One call of such a method, ``what`` (``bot.iter()``); ``refuses``: nothing may be called in it; ``instead``: what
    to do."""

    __slots__ = ("instead", "refuses", "what")

    def __init__(self, what: str, instead: str, *, refuses: bool) -> None:
        self.what = what
        self.instead = instead
        self.refuses = refuses


_here: contextvars.ContextVar[Unrecorded | None] = contextvars.ContextVar(
    "agentloom.unrecorded", default=None
)


@contextmanager
def entered_unrecorded(which: Unrecorded) -> Generator[None]:
    """What the block calls outside of a run is that method's."""
    token = put(_here, which)
    try:
        yield
    finally:
        _here.reset(token)


def refuse_unrecorded(what: str) -> bool:
    """Of a call outside of every run, ``what`` (``a call of httpx.Client to example.com``): raise ``Diverged`` where a
    method of a wrapped object makes it on a replay; else tell it once for each method. False: none makes it."""
    found = _here.get()
    if found is None:
        return False
    if found.refuses:
        raise Diverged(
            f"{what} was refused: it was made by {found.what}, which is not recorded, so a replay has no answer to it."
            f" To change it: {found.instead}"
        )
    if (found.what, what) not in _told:
        _told.add((found.what, what))
        _log.warning(
            "%s belongs to no run: %s is not recorded (told once). To change it: %s",
            what,
            found.what,
            found.instead,
        )
    return True
