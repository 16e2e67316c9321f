"""What a call waits for that no process does: a person's answer, a named message, a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["PATIENCE", "Outside"]

PATIENCE = 60_000_000_000
"""Nanoseconds for which a run that waits for a time keeps its process; for longer it is left."""


@dataclass(frozen=True, slots=True)
class Outside:
    """``name``: of a signal. ``facts``: what the trace keeps of the question, plain data. ``due``: when it goes on
    without an answer, nanoseconds since 1970 by the run's own clock, so that a replay finds the same; then ``default``
    makes its value, and without one it fails with ``Expired``. ``read`` makes of what was said the value of the call;
    what it raises is the error of the call."""

    kind: Literal["answer", "signal", "time"]
    name: str = ""
    facts: Mapping[str, object] = field(default_factory=dict[str, object])
    due: int | None = None
    default: Callable[[], object] | None = None
    read: Callable[[object], object] | None = None
