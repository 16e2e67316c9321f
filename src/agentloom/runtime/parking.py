"""Where threads of a run really wait: on locks of the system, past everything that stands in for them.

Kept apart from the code that decides who goes on: a Ctrl-C interrupts what waits here at once, and nothing there.
"""

from __future__ import annotations

import _thread
from typing import Any

from agentloom.runtime.locks import free_in_children

__all__ = ["REAL_ACQUIRE", "REAL_RELEASE", "Gate", "Mutex"]

_LOCK: Any = _thread.LockType
REAL_ACQUIRE: Any = _LOCK.__dict__["acquire"]
REAL_RELEASE: Any = _LOCK.__dict__["release"]
_LONGEST = 1e6
"""Seconds; a wait on a lock takes no more than ``_thread.TIMEOUT_MAX``."""


class Mutex:
    """A lock of the system for a few steps of bookkeeping, whatever stands in the place of its methods."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = free_in_children(_thread.allocate_lock())

    def __enter__(self) -> None:
        REAL_ACQUIRE(self._lock)

    def __exit__(self, *exc: object) -> None:
        REAL_RELEASE(self._lock)


class Gate:
    """What one thread waits at until another opens it. Opened before, the next wait is over at once."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        REAL_ACQUIRE(self._lock)

    def open(self) -> None:
        """Let the one that waits, or will wait, go on."""
        try:
            REAL_RELEASE(self._lock)
        except RuntimeError:
            return  # it is open

    def wait(self, seconds: float | None = None) -> str:
        """Wait until it is opened (``open``), ``seconds`` are over (``late``) or Ctrl-C was pressed (``pressed``)."""
        try:
            if seconds is None:
                REAL_ACQUIRE(self._lock)
                return "open"
            return "open" if REAL_ACQUIRE(self._lock, True, min(max(seconds, 0.0), _LONGEST)) else "late"
        except KeyboardInterrupt:
            return "pressed"
