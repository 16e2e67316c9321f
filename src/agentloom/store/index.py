"""The SQLite index of a local store: what was read from which version of which file.

The index is a cache that trusts nothing. A row counts only while the file has the size, times and inode that the row
was made from, and while the row's own checksum holds; otherwise the file is read again. So a deleted, stale, foreign,
damaged or locked index costs time and never an answer. It holds no text of users but tags and conversation ids.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from agentloom.store.base import RunRow
from agentloom.store.osfile import CLOEXEC

__all__ = ["Index", "Version"]

_SCHEMA = 3
_BUSY = 2.0  # seconds that a call waits for another process's transaction before it goes on without the index
# A change within this time of the reading may share the file's time stamps with it (kernels stamp in steps of up to
# 10 ms, some file systems coarser): such a row is read again once.
_SETTLED = 100_000_000  # nanoseconds

# Not damage: another process, a read-only folder, a full disk. The index is left as it is.
_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_NOMEM,
}

_CREATE = (
    "CREATE TABLE IF NOT EXISTS run ("
    "name TEXT PRIMARY KEY, size INTEGER, mtime INTEGER, ctime INTEGER, inode INTEGER, seen INTEGER, "
    "body BLOB, sum INTEGER) WITHOUT ROWID"
)


@dataclass(frozen=True, slots=True)
class Version:
    """Which state of a file a row was made from: size in bytes, times in nanoseconds, inode."""

    size: int
    mtime: int
    ctime: int
    inode: int

    @classmethod
    def of(cls, found: os.stat_result) -> Version:
        # SQLite integers are signed 64 bits; inode numbers are not.
        return cls(found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino & 0x7FFF_FFFF_FFFF_FFFF)

    def settled(self, seen: int) -> bool:
        """Whether a later change of the file is sure to show in its times; ``seen``: when it was read."""
        return seen - max(self.mtime, self.ctime) > _SETTLED


def _sum(values: Sequence[object]) -> int:
    return zlib.crc32(repr(tuple(values)).encode("utf-8", "backslashreplace"))


def _load(body: bytes) -> RunRow:
    fields: dict[str, Any] = orjson.loads(body)
    for name in ("tags", "asks"):
        fields[name] = tuple(fields[name])
    return RunRow(**fields)


class Index:
    """The index file at ``path``. Every method answers without it when it cannot be used."""

    def __init__(self, path: str) -> None:
        self.path = path

    def get(self, wanted: dict[str, Version]) -> dict[str, RunRow]:
        """The rows of those files (by name) that are still as they were when their row was made."""
        if not wanted or not os.path.exists(self.path):
            return {}
        found: dict[str, RunRow] = {}
        names = list(wanted)
        marks = ",".join("?" * len(names))
        try:
            with self._connect() as db:
                for values in db.execute(
                    f"SELECT name, size, mtime, ctime, inode, seen, body, sum FROM run WHERE name IN ({marks})",  # noqa: S608 - marks only
                    names,
                ):
                    *fields, check = values
                    name, size, mtime, ctime, inode, seen, body = fields
                    if _sum(fields) != check:
                        continue
                    version = Version(size, mtime, ctime, inode)
                    if version == wanted[name] and version.settled(seen):
                        found[name] = _load(body)
        except sqlite3.Error as error:
            self._mend(error)
            return {}
        return found

    def put(self, rows: Iterable[tuple[str, Version, int, RunRow]]) -> None:
        """Keep what was read: file name, its version before the reading, when (nanoseconds), and the row."""
        values: list[tuple[object, ...]] = []
        for name, version, seen, row in rows:
            if not version.settled(seen):
                continue
            body = orjson.dumps(row)
            fields = (name, version.size, version.mtime, version.ctime, version.inode, seen, body)
            values.append((*fields, _sum(fields)))
        if values:
            self._write("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)

    def keep_only(self, names: set[str]) -> None:
        """Forget the files that are gone: their tags must not outlive them."""
        if not os.path.exists(self.path):
            return
        try:
            with self._connect() as db:
                gone = [(name,) for (name,) in db.execute("SELECT name FROM run") if name not in names]
        except sqlite3.Error as error:
            self._mend(error)
            return
        if gone:
            self._write("DELETE FROM run WHERE name = ?", gone)

    def forget(self, names: Sequence[str]) -> None:
        if os.path.exists(self.path):
            self._write("DELETE FROM run WHERE name = ?", [(name,) for name in names])

    def _write(self, statement: str, values: list[tuple[Any, ...]]) -> None:
        for _ in range(2):  # the second time on a fresh file, when the first one was damaged
            try:
                with contextlib.suppress(OSError):
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | CLOEXEC, 0o600))
                with self._connect() as db:
                    db.execute("BEGIN IMMEDIATE")
                    version = db.execute("PRAGMA user_version").fetchone()[0]
                    if version != _SCHEMA:
                        db.execute("DROP TABLE IF EXISTS run")
                        db.execute(f"PRAGMA user_version = {_SCHEMA}")
                    db.execute(_CREATE)
                    db.executemany(statement, values)
                    db.execute("COMMIT")
                return
            except sqlite3.Error as error:
                if not self._mend(error):
                    return

    @contextlib.contextmanager
    def _connect(self) -> Any:
        db = sqlite3.connect(self.path, timeout=_BUSY, isolation_level=None)
        try:
            # Nothing here needs to survive a power cut; erased tags must not linger in free pages.
            db.execute("PRAGMA synchronous = OFF")
            db.execute("PRAGMA secure_delete = ON")
            yield db
        finally:
            db.close()

    def _mend(self, error: sqlite3.Error) -> bool:
        """Delete a damaged index; whether trying again makes sense."""
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        if code in _PASSING:
            return False
        for name in (self.path, f"{self.path}-journal", f"{self.path}-wal", f"{self.path}-shm"):
            with contextlib.suppress(OSError):
                os.unlink(name)
        return True
