"""A store that lives in the process: for tests and for runs that nobody wants to keep."""

from __future__ import annotations

import os
import time

from agentloom.errors import StoreFailed
from agentloom.store.base import Query, RunRow, check_run_name
from agentloom.store.find import fits, missing, resolve
from agentloom.store.lease import Owner, refused
from agentloom.store.lines import checked, recovered, whole_lines
from agentloom.store.mail import Mail, checked_mail, read_mail, taken, written_mail
from agentloom.store.scan import Source, scan_bytes, sort_key
from agentloom.store.searching import TextSearch

__all__ = ["MemoryStore"]

_WHERE = "the memory store of this process"


class _Appender:
    """The writer of one run in memory."""

    def __init__(self, store: MemoryStore, run: str, cut: int) -> None:
        self.run = run
        self.cut = cut
        self._store = store
        self._open = True

    def append(self, data: bytes) -> None:
        if data[-1:] != b"\n":
            raise ValueError("an entry is whole lines: the last byte must be a newline")
        if not self._open:
            raise StoreFailed(f"the writer of run {self.run} is closed", hint="reopen the run", run=self.run)
        self._store._traces[self.run] += data  # pyright: ignore[reportPrivateUsage] - the two are one thing

    def close(self) -> None:
        if self._open:
            self._open = False
            self._store._released(self.run)  # pyright: ignore[reportPrivateUsage]


class MemoryStore:
    """Keeps traces in memory under the same contract as the local store."""

    durability = "none"
    """It dies with its process."""

    def __init__(self) -> None:
        self._traces: dict[str, bytearray] = {}
        self._owners: dict[str, Owner] = {}
        self._mail: dict[str, dict[tuple[str, str], Mail]] = {}

    def __repr__(self) -> str:
        return f"MemoryStore({len(self._traces)} runs)"

    def create(self, run: str) -> _Appender:
        check_run_name(run)
        self._free(run)
        if run in self._traces:
            raise StoreFailed(
                f"run {run} exists already in {_WHERE}", hint="reopen it, or use a new run id", run=run
            )
        self._traces[run] = bytearray()
        return self._take(run, 0)

    def reopen(self, run: str) -> _Appender:
        data = self._trace(run)
        self._free(run)
        end = recovered(bytes(data), run)
        cut = len(data) - end
        del data[end:]
        return self._take(run, cut)

    def read(self, run: str) -> bytes:
        return whole_lines(bytes(self._trace(run)))

    def runs(self, query: Query | None = None) -> list[RunRow]:
        query = query or Query()
        sought = TextSearch(query.text) if query.text is not None else None
        found: list[RunRow] = []
        for run in self._names():
            if query.limit is not None and len(found) >= query.limit:
                break
            row = self._row(run)
            if fits(row, query) and (sought is None or sought.found(Source.of(bytes(self._traces[run])))):
                found.append(row)
        return found

    def resolve(self, ref: str) -> str:
        return resolve(
            ref,
            self._names(),
            lambda names: [self._row(name) for name in names],
            lambda tag: self.runs(Query(tag=tag)),
            lambda: [tag for row in self.runs() for tag in row.tags],
            _WHERE,
        )

    def add(self, data: bytes) -> str:
        run, data = checked(data)
        there = self._traces.get(run)
        if there is None:
            self._traces[run] = bytearray(data)
        elif run in self._owners or bytes(there) != data:
            raise different(run, _WHERE)
        return run

    def remove(self, run: str) -> None:
        self._trace(run)
        self._free(run)
        del self._traces[run]
        self._mail.pop(run, None)

    def post(self, run: str, mail: Mail) -> None:
        kept = read_mail(checked_mail(mail), _WHERE)  # a value of its own
        self._trace(run)
        # One step, whatever thread comes between: of several who post the same, one finds its own.
        there = self._mail.setdefault(run, {}).setdefault((mail.kind, mail.key), kept)
        if there is not kept:
            raise taken(run, there)

    def mail(self, run: str) -> list[Mail]:
        self._trace(run)
        return [read_mail(written_mail(one), _WHERE) for one in [*self._mail.get(run, {}).values()]]

    def _names(self) -> list[str]:
        return sorted(self._traces, key=sort_key, reverse=True)

    def _row(self, run: str) -> RunRow:
        return scan_bytes(bytes(self._traces[run]), run, running=run in self._owners)

    def _trace(self, run: str) -> bytearray:
        try:
            return self._traces[run]
        except KeyError:
            raise missing(run, _WHERE, self._names()) from None

    def _free(self, run: str) -> None:
        if run in self._owners:
            raise refused(run, self._owners[run])

    def _take(self, run: str, cut: int) -> _Appender:
        self._owners[run] = Owner(os.getpid(), "this process", time.time_ns())
        return _Appender(self, run, cut)

    def _released(self, run: str) -> None:
        del self._owners[run]
        if not self._traces[run]:
            del self._traces[run]


def different(run: str, where: str) -> StoreFailed:
    """The error for a trace whose id is taken by another one."""
    return StoreFailed(
        f"run {run} is in {where} already, with other content",
        hint="compare the two with `agentloom diff`; remove the old one, or import into another store",
        run=run,
    )
