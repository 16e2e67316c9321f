"""Calls made one after the other, in another order than when recorded: one finding, not a missing call.

When the first call comes that was recorded only later, nobody knows yet whether those before it will follow. So it is
answered from its own place in the recording, and the program goes on until all of them came (``reordered``), or until
something else does: then what was found first stands. Nothing is performed meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agentloom.replay.mismatch import Judge, identity, identity_recorded
from agentloom.replay.recording import RecordedCall, Recording
from agentloom.replay.report import Finding
from agentloom.runtime.calls import Call

__all__ = ["Shuffle"]

_MOST = 64
"""Recorded calls that are looked at."""


@dataclass(slots=True)
class Shuffle:
    """``first``: what was found where the order broke; ``ahead``: the recorded calls from there, each of which ended
    before the next began."""

    recording: Recording
    at: int
    first: Finding
    ahead: list[RecordedCall]
    made: list[Call] = field(default_factory=list[Call])
    taken: set[int] = field(default_factory=set[int])

    @classmethod
    def begin(cls, recording: Recording, at: int, odd: Call, *, quiescent: bool) -> Shuffle | None:
        """A shuffle that may start with ``odd`` at step ``at``; None where it was not recorded shortly after."""
        ahead = _one_by_one(recording, at)
        this = identity(recording, odd)
        if not any(identity_recorded(recording, call) == this for call in ahead[1:]):
            return None
        return cls(recording, at, Judge(recording, at, [odd], quiescent).finding(), ahead)

    def take(self, call: Call) -> RecordedCall | None:
        """The recorded call that answers ``call``; None where there is none left: the shuffle is over."""
        this = identity(self.recording, call)
        for number, recorded in enumerate(self.ahead):
            if number not in self.taken and identity_recorded(self.recording, recorded) == this:
                self.taken.add(number)
                self.made.append(call)
                return recorded
        return None

    def given_up(self) -> Finding:
        """What was found, now that the calls in another order are over: those still missing, where some are."""
        holes = [n for n in range(max(self.taken, default=0)) if n not in self.taken]
        if self.first.cls != "missing" or not holes:
            return self.first
        judge = Judge(self.recording, self.at, self.made[:1], quiescent=False)
        return judge.missing(self.ahead[holes[0]], len(holes))

    def finding(self) -> Finding | None:
        """``reordered`` once every recorded call up to the last one taken was made; None before."""
        count = len(self.taken)
        if max(self.taken) != count - 1:
            return None
        return Judge(self.recording, self.at, self.made, quiescent=True).reordered(self.ahead[:count])


def _one_by_one(recording: Recording, at: int) -> list[RecordedCall]:
    """The calls recorded from step ``at`` that were made and answered one after the other."""
    found: list[RecordedCall] = []
    steps = recording.steps
    while at + 1 < len(steps) and len(found) < _MOST:
        asked, answered = steps[at], steps[at + 1]
        call = asked.call
        if asked.kind != "request" or answered.kind != "outcome" or call is None or answered.call is not call:
            break
        found.append(call)
        at += 2
    return found
