"""Which runs of a store can go on, and when one that could not is tried again: what ``agentloom work`` goes by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from agentloom.api.answering import waiting
from agentloom.errors import LoomError, RunNotFound
from agentloom.format.digests import entry_digest
from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording
from agentloom.replay.resuming import last_stop
from agentloom.store import RunRow, Store
from agentloom.store.mail import Mail

__all__ = ["Backoff", "Ready", "ready_runs", "state_of", "still_ready"]

_FIRST_PAUSE = 60.0
_LONGEST_PAUSE = 3600.0


@dataclass(frozen=True, slots=True)
class Ready:
    """A run that can go on, and ``why``. ``state``: of its trace and its mail; while that is the same, so is what would
    come of resuming it."""

    run: str
    why: str
    state: tuple[str | None, int]


def ready_runs(store: Store, now: int, problems: list[tuple[str, LoomError]] | None = None) -> list[Ready]:
    """Runs that were answered, sent a message or asked to stop, or are due at ``now`` (nanoseconds since 1970), and
    those whose process died while they were resumed; the oldest first. ``problems`` gets runs that cannot be read."""
    found: list[Ready] = []
    for row in reversed(store.runs()):
        if row.status != "suspended" and not (row.status == "crashed" and (row.asks or row.epoch > 1)):
            continue
        try:
            letters = store.mail(row.run)
            why = _why(store, row, letters, now)
        except RunNotFound:
            continue  # it was removed meanwhile
        except LoomError as error:
            if problems is not None:
                problems.append((row.run, error))
            continue
        if why is not None:
            found.append(Ready(row.run, why, (row.head, len(letters))))
    return found


def _why(store: Store, row: RunRow, letters: Iterable[Mail], now: int) -> str | None:
    letters = list(letters)
    kinds = {letter.kind for letter in letters}
    answered = {letter.key for letter in letters if letter.kind == "answer"}
    stop = max((letter.at for letter in letters if letter.kind == "cancel"), default=0)
    if stop and stop > last_stop(Recording.from_journal(Journal.parse(store.read(row.run)))):
        return "asked to stop"
    if answered & set(row.asks):
        return "answered"
    if row.due is not None and row.due <= now:
        return "due"
    if row.status == "crashed" and row.epoch > 1:
        return "left by a process that died"
    # Which messages a run has taken stands in its trace alone.
    if "signal" in kinds and any(one.answered is not None for one in waiting(store, row.run)):
        return "sent a message"
    return None


def still_ready(store: Store, ready: Ready) -> bool:
    """Whether nobody has gone on with the run since it was found: its last entry is the same. `RunNotFound`."""
    return _head(store.read(ready.run)) == ready.state[0]


def state_of(store: Store, run: str) -> tuple[str | None, int]:
    """The ``state`` of a run as it is now. `RunNotFound`, `FormatError` (damaged mail)."""
    return _head(store.read(run)), len(store.mail(run))


def _head(data: bytes) -> str | None:
    """The digest of the last entry of a trace; None where there is none."""
    end = len(data) - 1
    while end > 0:
        begin = data.rfind(b"\n", 0, end) + 1
        if data.startswith(b'{"seq":', begin):
            return entry_digest(data[begin:end])
        end = begin - 1
    return None


@dataclass(slots=True)
class _Trouble:
    state: tuple[str | None, int]
    times: int
    until: float


@dataclass(slots=True)
class Backoff:
    """Runs that could not go on are left alone for a minute, then for two, four, up to an hour; until something about
    them changes. Times are seconds of one clock."""

    troubles: dict[str, _Trouble] = field(default_factory=dict[str, _Trouble])

    def free(self, ready: Ready, now: float) -> bool:
        """Whether the run may be tried at ``now``."""
        trouble = self.troubles.get(ready.run)
        return trouble is None or trouble.state != ready.state or now >= trouble.until

    def failed(self, ready: Ready, now: float, state: tuple[str | None, int] | None = None) -> float:
        """The run could not go on, and is in ``state`` since (None: as it was); the seconds after which it is tried
        again. What the attempt itself has left in the trace is no reason to try sooner."""
        before = self.troubles.get(ready.run)
        times = before.times + 1 if before is not None and before.state == ready.state else 1
        pause: float = min(_LONGEST_PAUSE, _FIRST_PAUSE * float(1 << min(times - 1, 10)))
        self.troubles[ready.run] = _Trouble(state or ready.state, times, now + pause)
        return pause

    def went_on(self, ready: Ready) -> None:
        """The run went on."""
        self.troubles.pop(ready.run, None)
