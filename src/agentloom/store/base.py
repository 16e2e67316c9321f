"""What every store promises: the protocols, the question asked of a store, and one line of its answer.

A third-party store is held to these promises by `agentloom.testing.store_contract`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from agentloom.errors import StoreError
from agentloom.store.mail import Mail

__all__ = [
    "MIN_PREFIX",
    "STATUSES",
    "Appender",
    "Query",
    "RunRow",
    "Store",
    "check_run_name",
    "durability_of",
]

MIN_PREFIX = 4
"""The fewest characters of a run id that `Store.resolve` takes for one."""

STATUSES = ("running", "suspended", "completed", "failed", "cancelled", "crashed", "damaged")
"""``suspended``: it waits for an answer, a message or a time, and for nothing else; nobody writes it. ``crashed``: no
end entry, nobody writes it, and it does not only wait. ``damaged``: the file is not a readable trace."""

_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}\Z")


def durability_of(store: object) -> str:
    """What the entries that ``store`` acknowledges outlive: ``process``, ``power`` (a power cut too), ``none``. A store
    that does not say keeps to what is promised of all (``process``)."""
    behind: object = getattr(store, "behind", None)
    while behind is not None and not hasattr(store, "durability"):
        store, behind = behind, getattr(behind, "behind", None)
    return str(getattr(store, "durability", "process"))


def check_run_name(run: str) -> str:
    """``run`` itself when it is safe as a file name; `StoreError` otherwise (no path can be made of it)."""
    if not _RUN_NAME.match(run):
        raise StoreError(
            f"{run[:80]!r} cannot be a run id: letters, digits, '-' and '_' only, at most 128",
            hint="use the id that the trace's start entry holds",
            run=run,
        )
    return run


@dataclass(frozen=True, slots=True)
class Query:
    """Which runs to list. Every field given must fit; None and False ask nothing.

    ``tag``: a whole tag (``ticket=812``), or a tag's value (``812``); of several, all. ``since``: nanoseconds since
    the Unix epoch, compared with the start. ``failed``: status failed or crashed. ``tool``: the run called a tool
    of that name. ``text``: the input, a prompt, an answer, a tool's result or the output holds this text (ASCII
    letters in either case); each trace that fits otherwise is read whole. ``agent``: the agent's name.
    ``conversation``: the conversation's id. ``limit``: at most so many, the newest.
    """

    tag: str | tuple[str, ...] | None = None
    since: int | None = None
    failed: bool = False
    tool: str | None = None
    text: str | None = None
    limit: int | None = None
    agent: str | None = None
    conversation: str | None = None


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run as `Store.runs` lists it. Times are wall clock, nanoseconds since the Unix epoch.

    ``calls`` counts request entries by call type (``{"model": 3, "tool": 2}``), ``tools`` and ``models`` by name.
    ``partial``: the trace is large and only its start and end were read; then ``calls`` is what the end entry
    says in total (under ``""``), ``tools`` and ``models`` are empty, ``flags`` and ``tags`` those of start and end.
    ``problem``: why the run is listed as damaged, else None. ``guard``: the policy of its guard, ``off`` also from
    before there was one; None where the trace does not say it any more. ``asks``: ids of the questions (messages,
    times) that a run without an end waits for; ``due``: when it goes on without an answer. ``epoch``: the writers that
    it had; 1 where it was never resumed.
    """

    run: str
    status: str
    agent: str = ""
    started: int = 0
    ended: int | None = None
    tags: tuple[str, ...] = ()
    conversation: str | None = None
    flags: int = 0
    calls: dict[str, int] = field(default_factory=dict[str, int])
    tools: dict[str, int] = field(default_factory=dict[str, int])
    models: dict[str, int] = field(default_factory=dict[str, int])
    size: int = 0
    head: str | None = None
    parent: str | None = None
    partial: bool = False
    problem: str | None = None
    guard: str | None = None
    asks: tuple[str, ...] = ()
    due: int | None = None
    epoch: int = 1

    @property
    def total(self) -> int:
        """All calls of the run."""
        return sum(self.calls.values())


class Appender(Protocol):
    """The one writer of one run. Not for several threads at a time."""

    @property
    def cut(self) -> int:
        """Bytes that `Store.reopen` cut off the end of the trace because no entry stood behind them; else 0."""
        ...

    def append(self, data: bytes) -> None:
        """Write one entry with its blobs: whole lines, the last ending in a newline.

        Durable against process death when it returns. Raises `StoreFailed` when it cannot be written; then nothing
        of ``data`` stays in the trace and this writer takes nothing more (its chain would go on from an entry that is
        not there): reopen the run. When a signal handler raises out of it (Ctrl-C), the next `append` or `close`
        first finishes what was begun.
        """
        ...

    def close(self) -> None:
        """Release the lease. Closing twice is harmless."""
        ...


@runtime_checkable
class Store(Protocol):
    """Where traces are kept. Readers never wait for a writer and never see half a line."""

    def create(self, run: str) -> Appender:
        """The writer of a new run. `LeaseHeld` when it is being written, `StoreFailed` when it exists already."""
        ...

    def reopen(self, run: str) -> Appender:
        """The writer of a run that exists, after its last whole entry: what a crash left behind is cut off.

        `LeaseHeld`, `RunNotFound`; any other damage: `FormatError` or `IntegrityError` with line and offset.
        """
        ...

    def read(self, run: str) -> bytes:
        """The whole trace, uncompressed, up to its last whole line. `RunNotFound`."""
        ...

    def runs(self, query: Query = ...) -> list[RunRow]:
        """The runs that fit, newest first. A damaged trace is listed as such and hides no other."""
        ...

    def resolve(self, ref: str) -> str:
        """The run id that ``ref`` means: an id, the start or the end of one (at least four characters), ``last``,
        or a tag. `RunNotFound`, `AmbiguousRun`."""
        ...

    def add(self, data: bytes) -> str:
        """Keep a whole trace from elsewhere, checked first; its run id.

        The same trace again changes nothing; another trace of the same id is refused with `StoreFailed`.
        """
        ...

    def remove(self, run: str) -> None:
        """Delete the run and its mail. `RunNotFound`, `LeaseHeld`."""
        ...

    def post(self, run: str, mail: Mail) -> None:
        """Keep what was said to the run, which may be being written or not: this needs no lease.

        Durable when it returns. `MailTaken` with the mail that is there where that kind and key was posted before: of
        several at once exactly one wins. `RunNotFound`, `StoreFailed` (then it may be there: post it again to know).
        """
        ...

    def mail(self, run: str) -> list[Mail]:
        """All mail of the run, in the order in which it was posted; none is lost, changed, or seen half.

        `RunNotFound`, `StoreFailed`, `FormatError` (damaged).
        """
        ...
