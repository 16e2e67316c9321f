"""What the caller holds of a recorded run: its id, its trace, the report of a replay."""

from __future__ import annotations

from agentloom.api.recording_keep import Keep
from agentloom.api.recording_target import Target
from agentloom.api.trace import Trace
from agentloom.errors import TargetError
from agentloom.replay.report import Report
from agentloom.runtime.recorder import RunOptions
from agentloom.store import Store

__all__ = ["Handle"]


class Handle:
    """``_state`` says why there is no trace (yet); "" once the run has ended."""

    _to_end = ""
    """How the caller ends the run, for reports."""

    def __init__(self, target: Target, options: RunOptions, store: Store | None, keep: Keep) -> None:
        self._target = target
        self._options = options
        self._store = store
        self._keep: Keep = keep
        self._run: str | None = None
        self._where: Store | None = None
        self._state = "has not ended"
        self.report: Report | None = None

    @property
    def run_id(self) -> str | None:
        """The id of the run, from its beginning on; None where nothing is recorded."""
        return self._run

    @property
    def trace(self) -> Trace:
        """The record. ``TargetError`` before the run has ended, and where there is none (``AGENTLOOM=off``)."""
        if self._run is None or self._where is None or self._state:
            raise TargetError(
                f"there is no trace of {self._target.name}: it {self._state}",
                hint=self._to_end if "ended" in self._state else None,
            )
        return Trace.of_run(self._run, self._where, self._target.again())
