"""One writer a run: the lease.

The lease is an exclusive ``flock`` on the trace file itself: the kernel gives it back when the process dies, however it
dies. Beside it lies ``leases/RUN.json`` with who holds it, for the message only; it decides nothing.

Where ``flock`` does not exist (Windows, some network file systems) a lock file is used instead, with a warning: it
stays behind when a process is killed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
import time
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import cast

import orjson

from agentloom.errors import LeaseHeld
from agentloom.store.osfile import CLOEXEC, Os, failed, read_span, shut, write_small

__all__ = ["Lease", "Owner", "acquire", "claim", "held", "owner_path", "refused"]

# A reader that asks "is this run being written?" holds a shared lock for some microseconds; a writer waits that out.
_TRIES = 20
_PAUSE = 0.005  # seconds

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


@dataclass(frozen=True, slots=True)
class Owner:
    """Who writes a run. ``since``: nanoseconds since the Unix epoch."""

    pid: int
    host: str
    since: int

    @classmethod
    def here(cls) -> Owner:
        return cls(os.getpid(), socket.gethostname(), time.time_ns())

    @classmethod
    def load(cls, system: Os, path: str) -> Owner | None:
        """The owner that the file names, or None: it is missing or only partly written."""
        try:
            raw: object = orjson.loads(read_span(system, path, 0, 4096))
        except (OSError, orjson.JSONDecodeError):
            return None
        if not isinstance(raw, dict):
            return None
        pid, host, since = (cast("dict[str, object]", raw).get(name) for name in ("pid", "host", "since"))
        if isinstance(pid, int) and isinstance(host, str) and isinstance(since, int):
            return cls(pid, host, since)
        return None

    def dump(self) -> bytes:
        return orjson.dumps({"pid": self.pid, "host": self.host, "since": self.since})

    def __str__(self) -> str:
        since = datetime.fromtimestamp(self.since / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return f"process {self.pid} on {self.host}, since {since}"


@dataclass(slots=True)
class Lease:
    """A lease that is held. ``files``: what `release` deletes; the caller closes the trace file."""

    system: Os
    files: tuple[str, ...]

    def release(self) -> None:
        for path in self.files:
            with contextlib.suppress(OSError):  # a leftover owner file names nobody once the lock is free
                self.system.unlink(path)


def owner_path(leases: str, run: str) -> str:
    return os.path.join(leases, f"{run}.json")


def _lock_path(leases: str, run: str) -> str:
    return os.path.join(leases, f"{run}.lock")


def refused(run: str, owner: Owner | None) -> LeaseHeld:
    """The error for a run that somebody else writes."""
    who = str(owner) if owner else "another process"
    return LeaseHeld(
        f"run {run} is being written by {who}",
        hint="wait until it ends or stop it; reading the run needs no lease",
        run=run,
        owner=owner,
        pid=owner.pid if owner else None,
        host=owner.host if owner else None,
    )


def _flock(system: Os, fd: int, tries: int) -> bool:
    """True: locked; False: no such lock here. `BlockingIOError` when another writer holds it."""
    for left in range(tries - 1, -1, -1):
        try:
            return system.flock(fd)
        except BlockingIOError:
            if not left:
                raise
            time.sleep(_PAUSE)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return False
    raise AssertionError("unreachable")  # pragma: no cover


def _lock(system: Os, fd: int, run: str, path: str, leases: str, tries: int) -> bool:
    try:
        return _flock(system, fd, tries)
    except BlockingIOError as error:
        raise refused(run, Owner.load(system, owner_path(leases, run))) from error
    except OSError as error:
        raise failed("lock", path, error, run=run) from error


def claim(system: Os, fd: int, run: str, path: str, leases: str) -> None:
    """Hold the run, open as ``fd``, against writers until ``fd`` is closed; `LeaseHeld` when somebody writes it."""
    if not _lock(system, fd, run, path, leases, _TRIES) and held(system, run, path, leases):
        raise refused(run, Owner.load(system, _lock_path(leases, run)))


def acquire(system: Os, fd: int, run: str, path: str, leases: str, *, tries: int = _TRIES) -> Lease:
    """Take the lease of ``run``, whose trace file is open as ``fd``; `LeaseHeld`, `StoreFailed`."""
    owner_file = owner_path(leases, run)
    locked = _lock(system, fd, run, path, leases, tries)
    if not locked:
        return _acquire_by_file(system, run, path, leases)
    try:
        write_small(system, owner_file, Owner.here().dump())
    except OSError as error:
        raise failed("write", owner_file, error, run=run) from error
    return Lease(system, (owner_file,))


def _acquire_by_file(system: Os, run: str, path: str, leases: str) -> Lease:
    lock = _lock_path(leases, run)
    warnings.warn(
        f"no file locks here (flock) for {path}: the lease is the file {lock}; "
        "when a process is killed it stays behind and must be deleted by hand",
        RuntimeWarning,
        stacklevel=4,
    )
    for _ in range(2):
        try:
            write_small(system, lock, Owner.here().dump(), fresh=True)
        except FileExistsError as error:
            owner = Owner.load(system, lock)
            if owner is None or not _dead(owner):
                refusal = refused(run, owner)
                refusal.hint = f"if no process writes this run any more, delete {lock}"
                raise refusal from error
            with contextlib.suppress(OSError):
                system.unlink(lock)
            continue
        except OSError as error:
            raise failed("write", lock, error, run=run) from error
        return Lease(system, (lock,))
    raise refused(run, Owner.load(system, lock))


def _dead(owner: Owner) -> bool:
    """True only when it is certain that the owner is gone: same host, no such process."""
    if (
        owner.host != socket.gethostname() or sys.platform == "win32"
    ):  # os.kill(pid, 0) is not a question there
        return False
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def held(system: Os, run: str, path: str, leases: str) -> bool:
    """Whether some process writes the run now. Asks without waiting and without writing anything."""
    try:
        system.stat(_lock_path(leases, run))
    except OSError:
        pass
    else:
        owner = Owner.load(system, _lock_path(leases, run))
        return owner is None or not _dead(owner)
    try:
        system.stat(owner_path(leases, run))
    except OSError:
        return False  # a writer puts it there before its first entry, and takes it away when it closes
    try:
        fd = system.open(path, os.O_RDONLY | CLOEXEC)
    except OSError:
        return False
    try:
        system.flock(fd, shared=True)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        shut(system, fd)
    return False
