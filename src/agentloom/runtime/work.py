"""Marks host work: code that performs a host call for real, as opposed to the agent's own code.

What host work prints, writes or opens belongs to its call. Whoever watches output and effects (the script runner)
asks here whose doing it was. The mark is a context variable, so it follows tasks and ``asyncio.to_thread``.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agentloom.runtime.contexts import put

if TYPE_CHECKING:
    import random
    import threading

__all__ = ["Sharing", "Work", "doing", "in_work", "mark", "under_way"]


class Sharing(Protocol):
    """What host work shares with the run that asked for it."""

    def generator(self, name: str) -> random.Random | None:
        """The generator on which the function ``name`` of ``random`` acts. None: that of the process."""
        ...

    def set_variable(self, name: str, value: str | None) -> None:
        """The work has set a variable of the process's environment, or deleted it (None)."""
        ...

    def started(self, thread: threading.Thread) -> None:
        """The work has started a thread."""
        ...


@dataclass(slots=True)
class Work:
    """One piece of host work. ``keep``: what it prints is kept here (``printed``: stream name and text, in order, and
    ``places``: where each came among what else was printed); otherwise it is shown and forgotten. ``shares``: what it
    has in common with the run that asked for it, as any code of a process has; None: nothing."""

    what: str
    keep: bool = False
    printed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    places: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    shares: Sharing | None = None


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


in_work = _work.get
"""As ``under_way``, for those who must be quick."""


def under_way() -> Work | None:
    """The host work that the current code is part of, or None: it is the agent's own code."""
    return _work.get()
