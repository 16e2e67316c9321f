"""Marks host work: code that performs a host call for real, as opposed to the agent's own code.

What host work prints, writes or opens belongs to its call. Whoever watches output and effects (the script runner)
asks here whose doing it was. The mark is a context variable, so it follows tasks and ``asyncio.to_thread``.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from agentloom.runtime.contexts import put

__all__ = ["Work", "doing", "mark", "under_way"]


@dataclass(slots=True)
class Work:
    """One piece of host work. ``keep``: what it prints is kept here (``printed``: stream name and text, in order, and
    ``places``: where each came among what else was printed); otherwise it is shown and forgotten."""

    what: str
    keep: bool = False
    printed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


_work: contextvars.ContextVar[Work | None] = contextvars.ContextVar("agentloom.work", default=None)


@contextmanager
def doing(work: Work) -> Generator[Work]:
    """Mark the block as host work."""
    token = put(_work, work)
    try:
        yield work
    finally:
        _work.reset(token)


mark: Callable[[Work], object] = _work.set
"""Marks all that runs in the current context from now on as host work."""


def under_way() -> Work | None:
    """The host work that the current code is part of, or None: it is the agent's own code."""
    return _work.get()
