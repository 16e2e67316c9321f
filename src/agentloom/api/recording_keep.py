"""Which runs of a service are recorded (``rate``), and which recordings are kept (``keep``).

What may be dropped is held beside the store: in memory, in an unnamed temporary file beyond 4 MiB (it went through the
redactor like everything that is written). At its end the run is added to the store whole, or gone.
"""

from __future__ import annotations

import hashlib
import logging
import random
import tempfile
from collections.abc import Callable
from typing import Any, Literal, cast

from agentloom.api.trace import Trace
from agentloom.errors import RunNotFound, StoreFailed
from agentloom.store import Appender, Store, open_store
from agentloom.store.in_front import InFront

__all__ = ["Held", "Keep", "checked_keep", "checked_rate", "held", "sampled", "settled"]

Keep = Literal["all", "failed", "flagged"] | Callable[[Trace], object]
"""``all``; ``failed``: the runs that failed or were cancelled; ``flagged``: those with a flag; or who decides."""

_WORDS = ("all", "failed", "flagged")
_IN_MEMORY = 4 << 20
_own = random.Random()
"""Draws for requests without an id. No run ever sees it."""
_log = logging.getLogger("agentloom.recording")


def checked_rate(rate: float) -> float:
    """``rate`` as it is. ``ValueError`` for what is no share of runs."""
    if isinstance(rate, bool) or not isinstance(cast("object", rate), int | float) or not 0 <= rate <= 1:
        raise ValueError(f"rate={rate!r}: it is the share of runs to record, from 0 to 1")
    return rate


def checked_keep(keep: Keep) -> Keep:
    """``keep`` as it is. ``ValueError`` for what decides nothing."""
    if keep not in _WORDS and not callable(keep):
        raise ValueError(f"keep={keep!r}: one of {', '.join(_WORDS)}, or a function of the trace")
    return keep


def sampled(rate: float, key: str | None) -> bool:
    """Whether a run is recorded: the same for the same ``key`` (the id of a request) everywhere; drawn without one."""
    if rate >= 1:
        return True
    if rate <= 0:
        return False
    if key is None:
        return _own.random() < rate
    digest = hashlib.sha256(b"agentloom sample/1\n" + key.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < rate * 2**64


def held(store: Store | None, keep: Keep) -> Store:
    """``store`` (None: the default one), or what holds a run until it is known whether it is kept."""
    chosen = store if store is not None else open_store()
    return chosen if keep == "all" else Held(chosen, keep)


def settled(store: Store, *, failed: bool = False) -> bool:
    """The run that was written to ``store`` has ended: whether it stays. ``failed``: it did, whatever its end says."""
    return store.settle(failed=failed) if isinstance(store, Held) else True


class _Appender:
    """Takes the entries of one run."""

    def __init__(self) -> None:
        self.cut = 0
        self.file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed by the holder
        self.open = True

    def append(self, data: bytes) -> None:
        """Write whole lines."""
        try:
            self.file.write(data)
        except OSError as error:
            raise StoreFailed(
                f"a run that is held until its end could not be written: {error}",
                hint='free space in the folder of temporary files, or keep="all"',
            ) from error

    def close(self) -> None:
        """Nothing more is written."""
        self.open = False

    def data(self) -> bytes:
        """All of it."""
        self.file.seek(0)
        return self.file.read()


class Held(InFront):
    """One run, held until ``settle``. Otherwise the store behind it."""

    durability = "none"
    """Until it is settled it is nowhere but here."""

    def __init__(self, store: Store, keep: Keep) -> None:
        super().__init__(store)
        self._keep = keep
        self._run: str | None = None
        self._appender: _Appender | None = None
        self.why: str | None = None
        """Once the run has ended: why it is gone, where it is."""

    def create(self, run: str) -> Appender:
        """Hold the run ``run``."""
        self._run, self._appender = run, _Appender()
        return self._appender

    def read(self, run: str) -> bytes:
        """The run that is held, or one of the store. ``RunNotFound`` for one that was dropped."""
        if run != self._run or self._appender is None:
            if run == self._run:
                raise RunNotFound(
                    f"run {run} {self.why or 'has not ended'}",
                    hint="keep it with agentloom.flag(reason)",
                    run=run,
                )
            return self._store.read(run)
        return self._appender.data()

    def settle(self, *, failed: bool = False) -> bool:
        """The run has ended: add it to the store or drop it; whether it was kept. ``failed``: it did, whatever its end
        says. A store that cannot take it is told in the log: the program's own result stands."""
        appender, self._appender = self._appender, None
        if appender is None:
            return False
        data = appender.data()
        appender.file.close()
        kept = self._wanted(Trace(data), failed=failed)
        if kept:
            try:
                self._store.add(data)
            except StoreFailed as error:
                _log.error("run %s could not be kept: %s", self._run, error)
                self.why = f"could not be kept: {error.message}"
                return False
            self._run = None
        else:
            self.why = f"was not kept (keep={_named(self._keep)})"
        return kept

    def _wanted(self, trace: Trace, *, failed: bool) -> bool:
        if self._keep == "failed":
            return failed or trace.status != "completed"
        if self._keep == "flagged":
            return any(entry["kind"] == "flag" for entry in trace.journal.entries)
        try:
            return bool(cast("Callable[[Trace], Any]", self._keep)(trace))
        except Exception:  # noqa: BLE001 - who decides is no part of the service, which goes on
            _log.exception("keep= raised; run %s is kept", trace.run_id)
            return True


def _named(keep: object) -> str:
    return (
        repr(keep) if isinstance(keep, str) else str(getattr(keep, "__qualname__", type(keep).__qualname__))
    )
