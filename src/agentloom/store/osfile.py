"""The few operations of the operating system that the store uses, behind one seam.

The store never calls ``os`` itself: it is handed an `Os`. Production uses `REAL`; fault tests hand in one that fails
the n-th operation. Every method raises `OSError` exactly as the function of the same name in ``os`` does.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from agentloom.errors import StoreFailed

if sys.platform != "win32":
    import fcntl

__all__ = [
    "CLOEXEC",
    "NOFOLLOW",
    "REAL",
    "Os",
    "RealOs",
    "failed",
    "read_span",
    "shut",
    "sync_folder",
    "write_all",
    "write_small",
]

CLOEXEC = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)

_READ = 1 << 20  # bytes a read() asks for at most


class Os(Protocol):
    """Operations on descriptors and paths. ``flock`` returns False where the platform has no such lock."""

    def open(self, path: str, flags: int, mode: int = 0o600, /) -> int: ...
    def read(self, fd: int, count: int, /) -> bytes: ...
    def write(self, fd: int, data: bytes | memoryview, /) -> int: ...
    def seek(self, fd: int, offset: int, /) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def fstat(self, fd: int, /) -> os.stat_result: ...
    def stat(self, path: str, /) -> os.stat_result: ...
    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def fsync(self, fd: int, /) -> None: ...
    def fdatasync(self, fd: int, /) -> None: ...
    def mkdir(self, path: str, mode: int = 0o700, /) -> None: ...
    def replace(self, source: str, target: str, /) -> None: ...
    def link(self, source: str, target: str, /) -> None: ...
    def unlink(self, path: str, /) -> None: ...
    def rmdir(self, path: str, /) -> None: ...
    def chmod(self, path: str, mode: int, /) -> None: ...
    def listdir(self, path: str, /) -> Sequence[str]: ...
    def flock(self, fd: int, /, *, shared: bool = False) -> bool: ...


class RealOs:
    """The operating system itself. The hot operations are the builtins, without a Python frame around them."""

    open = staticmethod(os.open)
    read = staticmethod(os.read)
    write = staticmethod(os.write)
    close = staticmethod(os.close)
    fstat = staticmethod(os.fstat)
    stat = staticmethod(os.stat)
    ftruncate = staticmethod(os.ftruncate)
    fsync = staticmethod(os.fsync)
    fdatasync = staticmethod(getattr(os, "fdatasync", os.fsync))
    mkdir = staticmethod(os.mkdir)
    replace = staticmethod(os.replace)
    link = staticmethod(os.link)
    unlink = staticmethod(os.unlink)
    rmdir = staticmethod(os.rmdir)
    chmod = staticmethod(os.chmod)
    listdir = staticmethod(os.listdir)

    def seek(self, fd: int, offset: int) -> int:
        return os.lseek(fd, offset, os.SEEK_SET)

    def flock(self, fd: int, *, shared: bool = False) -> bool:
        """Take a lock on the open file without waiting; `BlockingIOError` when another holds it."""
        if sys.platform == "win32":
            return False
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True


REAL: Os = RealOs()

_REMEDY = {
    errno.ENOSPC: (
        "no space left on the device",
        "free space, or record elsewhere with --store or AGENTLOOM_STORE",
    ),
    errno.EDQUOT: (
        "the disk quota is used up",
        "free space, or record elsewhere with --store or AGENTLOOM_STORE",
    ),
    errno.EROFS: ("the file system is read-only", "record elsewhere with --store or AGENTLOOM_STORE"),
    errno.EACCES: ("permission denied", "give this user the right to write there, or use another store"),
    errno.EPERM: ("not permitted", "give this user the right to write there, or use another store"),
    errno.EIO: (
        "the device reported an I/O error",
        "check the disk; copy the traces elsewhere before going on",
    ),
    errno.EMFILE: ("too many files are open in this process", "close files, or raise the limit (ulimit -n)"),
    errno.ENFILE: ("too many files are open on this machine", "close programs, or raise the system's limit"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "name another folder"),
    errno.EISDIR: ("it is a folder", "name a file"),
    errno.ENOENT: ("there is no such file or folder", "check the path"),
    errno.EFBIG: (
        "the file would pass the largest size allowed here",
        "raise the limit (ulimit -f), or move the store",
    ),
    errno.ELOOP: ("it is a symbolic link where a plain file is expected", "remove the link"),
    errno.ENAMETOOLONG: ("the path is too long for this file system", "use a shorter path"),
}


def failed(doing: str, path: str, error: OSError, **fields: object) -> StoreFailed:
    """The `StoreFailed` for ``error``: what was being done, where, why, and what to do next."""
    text = error.strerror or type(error).__name__
    reason, remedy = _REMEDY.get(error.errno or 0, (text, "check the folder and its disk, then try again"))
    code = errno.errorcode.get(error.errno or 0, "OSError")
    return StoreFailed(
        f"cannot {doing} {path}: {reason} [{code}]",
        hint=remedy,
        path=path,
        reason=reason,
        errno=error.errno,
        **fields,
    )


def write_all(system: Os, fd: int, data: bytes) -> None:
    """Write all of ``data``, however short the single writes are; `OSError` when one fails or makes no progress."""
    done = system.write(fd, data)
    while done < len(data):
        step = system.write(fd, memoryview(data)[done:])
        if step <= 0:
            raise OSError(errno.EIO, "write made no progress")
        done += step


def shut(system: Os, fd: int) -> None:
    """Close a descriptor that was only read, or on the way out with another error: its own failure says nothing."""
    with contextlib.suppress(OSError):
        system.close(fd)


def sync_folder(system: Os, path: str) -> None:
    """Have the names in a folder outlive a power cut; `OSError`."""
    if sys.platform == "win32":  # a folder cannot be opened there; its file system keeps the order by itself
        return
    fd = system.open(path, os.O_RDONLY | CLOEXEC)
    try:
        system.fsync(fd)
    finally:
        shut(system, fd)


def write_small(system: Os, path: str, data: bytes, *, fresh: bool = False) -> None:
    """Make a small private file; `OSError`, after which it is not there (``fresh``: `FileExistsError` when it was)."""
    flags = os.O_WRONLY | os.O_CREAT | CLOEXEC | NOFOLLOW | (os.O_EXCL if fresh else os.O_TRUNC)
    fd = system.open(path, flags, 0o600)
    try:
        try:
            write_all(system, fd, data)
        finally:
            system.close(fd)
    except OSError:
        with contextlib.suppress(OSError):
            system.unlink(path)
        raise


def read_span(system: Os, path: str, start: int = 0, count: int | None = None) -> bytes:
    """Bytes ``start .. start + count`` of the file (fewer at its end; None: all the rest)."""
    fd = system.open(path, os.O_RDONLY | CLOEXEC)
    try:
        if start:
            system.seek(fd, start)
        parts: list[bytes] = []
        left = count
        while left is None or left > 0:
            part = system.read(fd, _READ if left is None else min(left, _READ))
            if not part:
                break
            parts.append(part)
            if left is not None:
                left -= len(part)
        return b"".join(parts)
    finally:
        shut(system, fd)
