"""What the caller holds of a recorded run: its id, its trace, the report of a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentloom.api.recording_keep import Held, Keep, settled
from agentloom.api.recording_target import Target
from agentloom.api.trace import Trace, known_by
from agentloom.errors import NotRecorded, TargetError
from agentloom.runtime.left_out import LeftOut
from agentloom.runtime.recorder import RunOptions
from agentloom.store import Store

if TYPE_CHECKING:
    from agentloom.replay.report import Report

__all__ = ["Handle"]


class Handle:
    """``_ended`` is set once the run has ended; ``_why`` says why there is no trace, where there is none on purpose."""

    _to_end = ""
    """How the caller ends the run, for reports."""

    def __init__(self, target: Target, options: RunOptions, store: Store | None, keep: Keep) -> None:
        self._target = target
        self._options = options
        self._store = store
        self._keep: Keep = keep
        self._run: str | None = None
        self._where: Store | None = None
        self._ended = False
        self._replays: Trace | None = None
        self._why: str | None = None
        self.report: Report | None = None

    @property
    def run_id(self) -> str | None:
        """The id of the run, from its beginning on (under a replay that of the recorded one); None where nothing is
        recorded."""
        return self._run

    @property
    def recorded(self) -> bool:
        """Whether this is a run of its own that is recorded, or replayed: from its beginning on. False under
        ``AGENTLOOM=off``, in what sampling left out, in a run of somebody else, and once a run has ended that is not
        kept (``keep=``): then it has no trace."""
        return self._run is not None and self._why is None

    @property
    def trace(self) -> Trace:
        """The record; of a replay the one that was replayed. ``TargetError`` before the run has ended, ``NotRecorded``
        where there is none on purpose."""
        name = self._target.name
        if self._why is not None:
            raise NotRecorded(
                f"there is no trace of {name}: it {self._why}",
                hint="ask run.recorded first, where the same code may be left alone",
                why=self._why,
            )
        if self._run is None or not self._ended:
            raise TargetError(f"there is no trace of {name}: it has not ended", hint=self._to_end)
        if self._replays is not None:
            again = self._target.again()
            return self._replays if again is None else known_by(self._replays, again)
        if self._where is None:
            raise TargetError(f"there is no trace of {name}: it was never begun")
        return Trace.of_run(self._run, self._where, self._target.again())

    def _settle(self, store: Store, *, failed: bool = False) -> bool:
        """The run has ended that was written to ``store``: whether it stays."""
        kept = settled(store, failed=failed)
        if not kept and isinstance(store, Held):
            self._why = store.why
        return kept

    def _replay_of(self, trace: Trace) -> Trace:
        self._replays, self._run = trace, trace.run_id
        return trace

    def _left_out(self, which: LeftOut) -> None:
        self._why = f"was not recorded ({which.why})"

    def _part_of(self, run: str) -> None:
        self._why = f"is part of run {run}"
