"""Workload W through agentloom and through floor A, in one process: processor time a call, and ratios with spread.

Processor time, because what else the machine does would fall on whoever runs at that moment. The contestants take turns
in each round. A ratio is that of the least times, or the median of the rounds' ratios where that is lower: what else
runs only ever adds to a time, but not always to the same one. The range is over the rounds.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import floor
from benchmarks.agent import workload
from benchmarks.agent.agents import async_agent, sync_agent
from benchmarks.bounds import beside

__all__ = ["Ratios", "measure"]


OURS = ("sync ", "async ")
"""How the names of what is ours begin."""


@dataclass(slots=True)
class Ratios:
    """Seconds of each contestant, one number a round, for runs of ``turns`` turns (two calls each)."""

    turns: int
    slower: float = 0.0
    """A planted slowdown, to see that the bounds find one: so much of what agentloom takes it takes once more."""
    seconds: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        """Run ``work`` once for ``name``; its result."""
        gc.collect()  # what others left behind is not this one's; what it leaves to the collector itself, is
        begun = time.process_time()
        result = work()
        taken = time.process_time() - begun
        if self.slower and name.startswith(OURS):
            _burn(taken * self.slower)
            taken = time.process_time() - begun
        self.seconds.setdefault(name, []).append(taken)
        return result

    def floor_of(self, name: str) -> list[float]:
        """The seconds that ``name`` is compared with: floor A doing the same."""
        return self.seconds[f"floor {name.rpartition(' ')[2]}"]

    def found(self) -> dict[str, float]:
        """The ratio of each contestant, by its name and the number of turns."""
        return {
            f"{name} at N={self.turns}": self.ratio(name) for name in self.seconds if name.startswith(OURS)
        }

    def each(self, name: str) -> list[float]:
        """The ratio of each round."""
        return [a / b for a, b in zip(self.seconds[name], self.floor_of(name), strict=True)]

    def ratio(self, name: str) -> float:
        """What is printed and bounded (see above)."""
        least = min(self.seconds[name]) / min(self.floor_of(name))
        return min(least, statistics.median(self.each(name)))

    def rows(self) -> dict[str, dict[str, Any]]:
        """Microseconds a call and ratios, for a machine to read."""
        calls = self.turns * 2
        made: dict[str, dict[str, Any]] = {}
        for name, seconds in self.seconds.items():
            row: dict[str, Any] = {
                "least": min(seconds) / calls * 1e6,
                "median": statistics.median(seconds) / calls * 1e6,
                "most": max(seconds) / calls * 1e6,
            }
            if name.startswith(OURS):
                each = self.each(name)
                row["times_floor"] = self.ratio(name)
                row["times_floor_range"] = [min(each), max(each)]
            made[name] = row
        return made

    def lines(self) -> list[str]:
        """The same as a table."""
        lines = [
            f"workload W, {self.turns} turns, {self.turns * 2} calls: microseconds of processor time a call"
        ]
        lines.append(f"{'':14} {'least':>8} {'median':>8} {'most':>8}   x floor A (range over the rounds)")
        for name, row in self.rows().items():
            line = f"{name:14} {row['least']:8.1f} {row['median']:8.1f} {row['most']:8.1f}"
            if "times_floor" in row:
                low, high = row["times_floor_range"]
                line += f"   {row['times_floor']:5.2f} ({low:.2f} - {high:.2f}) {beside(f'{name} at N={self.turns}')}"
            lines.append(line.rstrip())
        return lines


def _burn(seconds: float) -> None:
    """Use processor time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def measure(
    turns: int, rounds: int, folder: Path, more: Ratios | None = None, *, slower: float = 0.0
) -> Ratios:
    """Run every contestant ``rounds`` times, or as many more of ``more``. Ends the program when a replay
    performs a call or does not match."""
    ratios = Ratios(turns, slower) if more is None else more
    done = len(ratios.seconds.get("bare loop", ()))
    for index in range(done, done + rounds):
        ratios.time("bare loop", lambda: workload.loop(workload.model, workload.tool, turns))
        path = folder / f"floor{turns}-{index}.jsonl"
        ratios.time("floor record", lambda path=path: floor.record(path, turns))  # type: ignore[misc]
        ratios.time("floor replay", lambda path=path: floor.replay(path, turns))  # type: ignore[misc]
        for name, contestant in (("sync", sync_agent), ("async", async_agent)):
            store = folder / f"{name}{turns}-{index}"
            trace = ratios.time(f"{name} record", lambda c=contestant, s=store: c.run(turns, store=s))  # type: ignore[misc]
            before = dict(workload.PERFORMED)
            report = ratios.time(f"{name} replay", trace.replay)
            if workload.PERFORMED != before or report.verdict != "identical":
                raise SystemExit(f"a replay performed calls, or did not match: {report}")
    return ratios
