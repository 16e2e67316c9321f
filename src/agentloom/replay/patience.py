"""Real time in a replay: how long a program may wait for what was not recorded, and how its clock goes on without."""

from __future__ import annotations

from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.source import TICK

__all__ = ["RealTime"]

_SECOND = 1_000_000_000
_PATIENCE = 30 * _SECOND
"""How long a program may really wait for a time that was not recorded, where less than ``TICK`` went by then."""
_monotonic_ns = REAL_CLOCKS["monotonic_ns"]


class RealTime:
    """What a replay knows of the time that really goes by. All times in nanoseconds."""

    def __init__(self) -> None:
        self.strayed: int | None = None
        """What to take off the real clock for that of a program that goes on without its recording; None: none does."""
        self._looked: tuple[tuple[int, int], int, int, int] | None = None
        """Place, and what the clock showed there first; when it was read last, and how long was waited in all."""

    def lost_patience(self, place: tuple[int, int], shown: int) -> bool:
        """The clock is read again at ``place`` of the recording, where nothing moves it, and shows ``shown``. Whether
        the program really waits for longer than when recorded."""
        now: int = _monotonic_ns()
        before = self._looked
        if before is None or before[0] != place:
            self._looked = place, shown, now, 0
            return False
        waited = before[3] + min(now - before[2], 2 * _SECOND)  # somebody may look at it in a debugger
        self._looked = place, before[1], now, waited
        return waited > _PATIENCE + 1000 * (shown - before[1])

    def astray(self, shown: int) -> int | None:
        """What the clock of a program that goes on without its recording is to show in the place of ``shown``; None:
        that. Its time goes by itself, or a wait would not end."""
        now: int = _monotonic_ns()
        if self.strayed is None:
            self.strayed = now - shown
        vt = now - self.strayed
        return vt if vt - shown > TICK else None
