"""The verdict of a replay on its way to the parent process: whatever the program does, it gets there."""

from __future__ import annotations

import _thread
import contextlib
import os
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from agentloom.cli.exits import describe, exit_code
from agentloom.cli.script_child import leave
from agentloom.errors import LoomError
from agentloom.replay.cause import CodeFacts
from agentloom.replay.refusal import Refusing
from agentloom.replay.replayer import conclude
from agentloom.replay.report import CallRef, Finding
from agentloom.replay.source import ReplaySource
from agentloom.runtime.guard_start import REAL_CLOCKS

if TYPE_CHECKING:
    from agentloom.cli.script_child import Results

__all__ = ["Reporter"]

_GRACE = 1.0
"""Seconds that a program gets to end after a verdict; one that catches everything and goes on is stopped then."""
_TICK = 0.1
_monotonic = REAL_CLOCKS["monotonic"]  # a verdict may be sent from inside the run, whose clock is its own


class Reporter:
    """Sends the report of ``source`` once: when the first finding is made, else when the program has ended.

    ``compared`` names what was compared besides calls; ``code_now`` is what the code was before it ran. ``alone``: the
    operating system keeps the network away.
    """

    def __init__(
        self,
        job: dict[str, Any],
        results: Results,
        source: ReplaySource,
        refusing: Refusing,
        compared: Callable[[], tuple[str, ...]],
        *,
        alone: bool,
    ) -> None:
        self.code_now: CodeFacts | None = None
        self._job = job
        self._results = results
        self._source = source
        self._refusing = refusing
        self._compared = compared
        self._alone = alone
        self._began = _monotonic()
        self._sent: int | None = None

    @contextlib.contextmanager
    def watching(self) -> Generator[None]:
        """While the program runs: a finding is reported at once, and neither ``os._exit`` nor a program that catches
        everything and goes on keeps it back."""
        source = self._source
        source.on_finding = self._found
        _thread.start_new_thread(self._watch, ())
        before = os._exit
        os._exit = self._exit  # type: ignore[assignment]
        try:
            yield
        finally:
            os._exit = before

    def send(self) -> int:
        """Send the report, unless it is sent already; its exit code. Raises what makes the trace unusable."""
        if self._sent is not None:
            return self._sent
        source = self._source
        if source.unusable is not None:
            raise source.unusable
        report = conclude(
            source,
            self.code_now if self.code_now is not None else source.recording.code_facts(),
            seconds=_monotonic() - self._began,
            compared=self._compared(),
        )
        code = report.exit_code(strict_noted=bool(self._job.get("strict_noted")))
        lines = report.render(int(self._job.get("width") or 100))
        facts = {
            "network": "os" if self._alone else "python",
            "reads": [str(effect) for effect in self._refusing.reads],
        }
        self._results.send(done={"report": report.to_json() | facts, "lines": lines, "exit": code})
        self._sent = code
        return code

    def _found(self) -> None:
        # Where there is no report to be had now (a payload is missing, the stack is full), there is one at the end.
        with contextlib.suppress(LoomError, RecursionError):
            self.send()

    def _watch(self) -> None:
        source = self._source
        while source.finding is None and source.unusable is None:
            time.sleep(_TICK)
        time.sleep(_GRACE)
        self._leave()

    def _leave(self) -> None:
        try:
            leave(self.send())
        except LoomError as error:
            self._results.send(error=describe(error))
            leave(int(exit_code(error)))

    def _exit(self, status: int) -> None:
        """In the place of ``os._exit``: the program ends its process, where the trace says something else."""
        if not self._results.ours:
            leave(status)
        source = self._source
        if not source.complete and source.finding is None and source.unusable is None:
            self._source.refuse(_ended_process(self._source, status))
        self._leave()


def _ended_process(source: ReplaySource, status: int) -> Finding:
    if not source.recording.closed:
        return source.recording_ends()
    message = f"The program ends its process here (os._exit({status})); when recorded it went on to its end."
    return Finding("ended early", CallRef("", "effect", "process"), message, reason="agent ends")
