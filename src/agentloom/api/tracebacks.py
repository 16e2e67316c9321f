"""Tracebacks of the errors that a run raises: the user's frames, without those of the loops between them.

Between the line that starts a run and the agent's own line there are a dozen frames of event loops, drivers and
recorders, and a few more for each workflow: they say nothing about the error. They stay where agentloom itself fails:
an error that it did not raise on purpose keeps the frames of agentloom at its end. ``AGENTLOOM_TRACEBACK=full`` keeps
all of them.
"""

from __future__ import annotations

import asyncio
import os
from types import TracebackType

from agentloom.errors import LoomError

__all__ = ["UserFrames", "user_frames"]

_BETWEEN = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    os.path.dirname(os.path.abspath(asyncio.__file__)) + os.sep,
)


class UserFrames:
    """A block whose errors leave it with the user's frames alone."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and os.environ.get("AGENTLOOM_TRACEBACK") != "full":
            error.__traceback__ = user_frames(error)


def user_frames(error: BaseException) -> TracebackType | None:
    """The traceback of ``error`` without the frames of agentloom and of asyncio; see the module's text for the end."""
    entries: list[TracebackType] = []
    at = error.__traceback__
    while at is not None:
        entries.append(at)
        at = at.tb_next
    kept: TracebackType | None = None
    end = not isinstance(error, LoomError)
    for entry in reversed(entries):
        if not entry.tb_frame.f_code.co_filename.startswith(_BETWEEN):
            end = False
        elif not end:
            continue
        # A frame that a signal handler interrupted between two lines is in none: None, whatever the types say.
        kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno or 0)
    return kept
