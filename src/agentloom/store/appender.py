"""The one writer of one run in a local store."""

from __future__ import annotations

import contextlib
import os
import warnings
import weakref
from collections.abc import Callable
from typing import Literal, NoReturn, cast, get_args

from agentloom.errors import StoreFailed
from agentloom.store.lease import Lease
from agentloom.store.osfile import Os, failed, write_all

__all__ = ["Durability", "LocalAppender", "checked_durability"]

Durability = Literal["process", "power"]
"""What survives: the death of the process (one write), or of the machine too (one fdatasync more for each entry)."""


def checked_durability(word: str) -> Durability:
    """``word`` when it is a `Durability`; `StoreFailed` otherwise."""
    if word in get_args(Durability):
        return cast("Durability", word)
    raise StoreFailed(f"there is no durability {word!r}", hint="choose 'process' or 'power'", durability=word)


class LocalAppender:
    """Appends entries to an open, leased trace file.

    ``fd`` is open for appending; ``end`` is the length of what was acknowledged, in bytes. ``cut``: bytes that
    `LocalStore.reopen` cut off before. After one `StoreFailed` every further entry is refused: the writer's chain would
    go on from an entry that is not there. Reopening goes on from the last acknowledged one.
    """

    __slots__ = (
        "__weakref__",
        "_end",
        "_fd",
        "_lease",
        "_path",
        "_pending",
        "_power",
        "_system",
        "_write",
        "cut",
        "run",
    )

    def __init__(
        self,
        system: Os,
        path: str,
        run: str,
        fd: int,
        end: int,
        lease: Lease,
        durability: Durability,
        cut: int = 0,
    ) -> None:
        self.run = run
        self.cut = cut
        self._system = system
        self._path = path
        self._fd = fd
        self._end = end
        self._lease: Lease | None = lease
        self._power = durability == "power"
        self._pending: bytes | None = None
        self._write: Callable[[int, bytes], int] = system.write
        _open.add(self)

    def append(self, data: bytes) -> None:
        """Write one entry with its blobs, see `agentloom.store.base.Appender.append`."""
        if self._pending is not None:
            self._settle()
        if data[-1:] != b"\n":
            raise ValueError("an entry is whole lines: the last byte must be a newline")
        self._pending = data
        try:
            done = self._write(self._fd, data)
            if done != len(data):
                write_all(self._system, self._fd, data[done:])
            if self._power:
                self._system.fdatasync(self._fd)
        except OSError as error:
            raise self._undo(error) from error
        end = self._end + len(data)
        # No call between these two stores: signal handlers run at calls, and must not see one without the other.
        self._end, self._pending = end, None

    def close(self) -> None:
        """Release the lease. A run without a single entry leaves no file."""
        if self._lease is None:
            return
        try:
            if self._pending is not None:
                self._settle()
        finally:
            self._release()

    def _settle(self) -> None:
        # A signal handler raised out of the previous append. Its entry is already part of the writer's chain, so it
        # must end up in the file whole, whatever the write had reached.
        data = self._pending
        if data is None:
            return
        try:
            done = self._system.fstat(self._fd).st_size - self._end
            if not 0 <= done <= len(data):
                self._die(f"{self._path} was changed by somebody else while it was being written")
            if done < len(data):
                write_all(self._system, self._fd, data[done:])
            if self._power:
                self._system.fdatasync(self._fd)
        except OSError as error:
            raise self._undo(error) from error
        end = self._end + len(data)
        self._end, self._pending = end, None

    def _undo(self, error: OSError) -> StoreFailed:
        """Cut the file back to the last acknowledged entry; the error to raise."""
        self._pending, self._write = None, self._refuse
        failure = failed("write", self._path, error, run=self.run, acknowledged=self._end)
        try:
            self._system.ftruncate(self._fd, self._end)
        except OSError as worse:
            failure.add_note(
                f"the half-written entry could not be cut off ({worse.strerror}); reopening the run cuts it off"
            )
        return failure

    def _die(self, message: str) -> NoReturn:
        self._write, self._pending = self._refuse, None
        raise StoreFailed(
            message, hint="verify the trace, then reopen the run", path=self._path, run=self.run
        )

    def _refuse(self, fd: int, data: bytes) -> NoReturn:
        self._pending = None
        if self._lease is None:
            raise StoreFailed(
                f"this writer of run {self.run} is closed, or belongs to the process that this one was forked from",
                hint="reopen the run",
                path=self._path,
                run=self.run,
            )
        raise StoreFailed(
            f"writing run {self.run} failed before: nothing more is written to {self._path}",
            hint="close the run; mend the cause that the first error named, then resume it",
            path=self._path,
            run=self.run,
        )

    def _release(self) -> None:
        lease, self._lease = self._lease, None
        fd, self._fd = self._fd, -1
        self._write = self._refuse
        _open.discard(self)
        if lease is None:
            return
        if self._end == 0:
            with contextlib.suppress(OSError):  # an empty file holds nothing; it is listed as crashed
                self._system.unlink(self._path)
        lease.release()
        try:
            self._system.close(fd)
        except OSError as error:
            raise failed("close", self._path, error, run=self.run) from error

    def _disown(self) -> None:
        """In a forked child: the run stays the parent's. Closing this copy of the descriptor keeps its lock."""
        if self._lease is not None:
            self._lease = None
            self._write = self._refuse
            fd, self._fd = self._fd, -1
            with contextlib.suppress(OSError):
                self._system.close(fd)

    def __del__(self) -> None:
        if getattr(self, "_lease", None) is not None:
            warnings.warn(f"the writer of run {self.run} was never closed", ResourceWarning, stacklevel=2)
            with contextlib.suppress(StoreFailed):
                self._release()


_open: weakref.WeakSet[LocalAppender] = weakref.WeakSet()


def _after_fork() -> None:
    for appender in list(_open):
        appender._disown()  # pyright: ignore[reportPrivateUsage] - this module's own class
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
