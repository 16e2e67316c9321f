"""An operating system that fails when told to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agentloom.store.osfile import REAL, Os


class FaultyOs:
    """Passes everything to the real operating system, but fails the operation number ``at`` (from 1).

    ``kind``: an errno, or ``short``: a write that takes only half of its bytes, after which every write fails with
    ENOSPC until `heal`. ``sticky``: every operation of that name fails from then on. ``only``: the names that count.
    ``done`` counts the operations so far; ``failed`` names the one that failed.
    """

    def __init__(
        self,
        at: int | None = None,
        kind: int | str = errno.EIO,
        *,
        sticky: bool = False,
        only: frozenset[str] | None = None,
    ) -> None:
        self.at = at
        self.kind = kind
        self.sticky = sticky
        self.only = only
        self.done = 0
        self.read_bytes = 0
        self.failed: str | None = None
        self.names: list[str] = []
        self._full = False

    def _due(self, name: str) -> bool:
        self.names.append(name)
        if self.only is not None and name not in self.only:
            return False
        self.done += 1
        if self.failed is not None and self.sticky and name == self.failed:
            return True
        return self.done == self.at

    def _do(self, name: str, real: Callable[..., Any], *args: Any, **named: Any) -> Any:
        if self._due(name) and (self.kind != "short" or name == "write"):
            self.failed = name
            if self.kind == "short":
                self._full = True
                fd, data = args
                return real(fd, bytes(data)[: len(data) // 2])
            assert isinstance(self.kind, int)
            raise OSError(self.kind, os.strerror(self.kind))
        if name == "write" and self._full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*args, **named)

    def open(self, path: str, flags: int, mode: int = 0o600) -> int:
        return self._do("open", REAL.open, path, flags, mode)  # type: ignore[no-any-return]

    def read(self, fd: int, count: int) -> bytes:
        data: bytes = self._do("read", REAL.read, fd, count)
        self.read_bytes += len(data)
        return data

    def write(self, fd: int, data: bytes | memoryview) -> int:
        return self._do("write", REAL.write, fd, data)  # type: ignore[no-any-return]

    def seek(self, fd: int, offset: int) -> int:
        return self._do("seek", REAL.seek, fd, offset)  # type: ignore[no-any-return]

    def close(self, fd: int) -> None:
        # A close that fails has closed all the same: so on Linux, and otherwise the test would leak.
        try:
            self._do("close", lambda _: None, fd)
        finally:
            REAL.close(fd)

    def fstat(self, fd: int) -> os.stat_result:
        return self._do("fstat", REAL.fstat, fd)  # type: ignore[no-any-return]

    def stat(self, path: str) -> os.stat_result:
        return self._do("stat", REAL.stat, path)  # type: ignore[no-any-return]

    def ftruncate(self, fd: int, length: int) -> None:
        self._do("ftruncate", REAL.ftruncate, fd, length)

    def fsync(self, fd: int) -> None:
        self._do("fsync", lambda _: None, fd)  # what a healthy sync does shows only in a power cut

    def fdatasync(self, fd: int) -> None:
        self._do("fdatasync", lambda _: None, fd)

    def mkdir(self, path: str, mode: int = 0o700) -> None:
        self._do("mkdir", REAL.mkdir, path, mode)

    def replace(self, source: str, target: str) -> None:
        self._do("replace", REAL.replace, source, target)

    def link(self, source: str, target: str) -> None:
        self._do("link", REAL.link, source, target)

    def unlink(self, path: str) -> None:
        self._do("unlink", REAL.unlink, path)

    def rmdir(self, path: str) -> None:
        self._do("rmdir", REAL.rmdir, path)

    def chmod(self, path: str, mode: int) -> None:
        self._do("chmod", REAL.chmod, path, mode)

    def listdir(self, path: str) -> Sequence[str]:
        return self._do("listdir", REAL.listdir, path)  # type: ignore[no-any-return]

    def flock(self, fd: int, *, shared: bool = False) -> bool:
        return self._do("flock", REAL.flock, fd, shared=shared)  # type: ignore[no-any-return]


_: Os = FaultyOs()


@pytest.fixture
def faulty() -> type[FaultyOs]:
    return FaultyOs
