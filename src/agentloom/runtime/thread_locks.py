"""Locks and queues between threads of a run: where a strand would wait, it hands the baton over instead.

Everything in ``threading``, ``queue`` and ``concurrent.futures`` that waits comes down to three built-in types: locks,
reentrant locks and ``SimpleQueue``. Their methods are replaced in the types themselves while a run has threads, so that
locks from before the run, and those that libraries hold, hand over too. For every other thread of the process they do
what they did.
"""

from __future__ import annotations

import _queue
import _thread
import concurrent.futures._base
import queue
import threading
import time
from collections.abc import Callable
from threading import get_ident
from types import ModuleType
from typing import Any, cast

from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.guard_types import changed, names_of
from agentloom.runtime.parking import REAL_ACQUIRE, REAL_RELEASE, Mutex
from agentloom.runtime.strands import STRANDS, WAITING, Strand, holder

__all__ = ["after_fork", "install", "is_free", "uninstall", "woken_by"]

_LOCK: Any = _thread.LockType
_RLOCK: Any = _thread.RLock
_QUEUE: Any = _queue.SimpleQueue
_R_ACQUIRE, _R_RELEASE = _RLOCK.__dict__["acquire"], _RLOCK.__dict__["release"]
_R_OWNED = _RLOCK.__dict__["_is_owned"]
_R_SAVE, _R_RESTORE = _RLOCK.__dict__["_release_save"], _RLOCK.__dict__["_acquire_restore"]
_Q_GET, _Q_PUT = _QUEUE.__dict__["get"], _QUEUE.__dict__["put"]

_GRACE = 0.2
"""Seconds for which a lock is waited for in place that no strand is known to hold: a thread outside of the run holds
it, for a moment, and when it lets go must move nothing in the run."""

_held: set[int] = set()
"""Identities of locks that strands have taken. One that was freed while it was held may stay: then its number stands
for a lock that some strand is only thought to hold."""


# -- waiting -----------------------------------------------------------------------------------------------------------


def _wait(strand: Strand, lock: Any, take: Callable[[], bool], timeout: float) -> bool:
    """Hand the baton over until ``take`` succeeds (True) or ``timeout`` seconds of virtual time are over (False)."""
    baton = strand.baton
    deadline = None if timeout < 0 else baton.deadline(timeout)
    while True:
        in_time = baton.block(strand, lock, deadline, unsure=id(lock) not in _held)
        if strand.free:
            return False
        if take():
            return True
        if not in_time:
            return False


def _acquired(lock: Any, real: Any, blocking: Any, timeout: Any) -> bool:
    """``lock.acquire(blocking, timeout)``."""
    strand = STRANDS.get(get_ident())
    if strand is None or strand.baton.owner is not strand:
        return cast(bool, real(lock, blocking, timeout))
    if timeout != -1 and (not blocking or timeout < 0):
        return cast(bool, real(lock, blocking, timeout))  # an error, which it raises
    if real(lock, False):
        _held.add(id(lock))
        return True
    if not blocking or timeout == 0:
        return False
    if strand.baton.session.engine.writing:
        return cast(bool, real(lock, blocking, timeout))  # in the middle of an entry nobody else may go on
    if id(lock) not in _held:
        patience = _GRACE if timeout < 0 else min(_GRACE, timeout)
        if real(lock, True, patience):
            _held.add(id(lock))
            return True

    def take() -> bool:
        if real(lock, False):
            _held.add(id(lock))
            return True
        return False

    if _wait(strand, lock, take, timeout):
        return True
    return cast(bool, real(lock, True, timeout)) if strand.free else False


def is_free(key: Any) -> bool:
    """Whether what is waited for is to be had: a lock that is not held, a queue that holds something."""
    if isinstance(key, _QUEUE):
        return not key.empty()
    if isinstance(key, _LOCK):
        return not key.locked()
    if _R_ACQUIRE(key, False):
        _R_RELEASE(key)
        return True
    return False


def woken_by(key: object) -> None:
    """What ``key`` stands for came free, or came in: who waits for it may look again."""
    strand = holder()
    for waiting in WAITING.get(id(key), ())[:]:
        if strand is not None and waiting.baton is strand.baton:
            waiting.baton.wake(waiting)
            return
        waiting.baton.wake_from_outside(waiting)


def _released(lock: Any) -> None:
    _held.discard(id(lock))
    if id(lock) in WAITING:
        woken_by(lock)


# -- stand-ins ---------------------------------------------------------------------------------------------------------


def _acquire(self: Any, blocking: Any = True, timeout: Any = -1) -> bool:
    return _acquired(self, REAL_ACQUIRE, blocking, timeout)


def _release(self: Any) -> None:
    REAL_RELEASE(self)
    _released(self)


def _enter(self: Any) -> bool:
    return _acquired(self, REAL_ACQUIRE, True, -1)


def _exit(self: Any, *_: object) -> None:
    REAL_RELEASE(self)
    _released(self)


def _acquire_again(self: Any, blocking: Any = True, timeout: Any = -1) -> bool:
    return _acquired(self, _R_ACQUIRE, blocking, timeout)


def _release_again(self: Any) -> None:
    _R_RELEASE(self)
    if not _R_OWNED(self):
        _released(self)


def _enter_again(self: Any) -> bool:
    return _acquired(self, _R_ACQUIRE, True, -1)


def _exit_again(self: Any, *_: object) -> None:
    _R_RELEASE(self)
    if not _R_OWNED(self):
        _released(self)


def _release_save(self: Any) -> Any:
    saved = _R_SAVE(self)
    _released(self)
    return saved


def _acquire_restore(self: Any, saved: Any) -> None:
    if holder() is not None:
        _acquired(self, _R_ACQUIRE, True, -1)
        _R_RELEASE(self)
    _R_RESTORE(self, saved)


def _get(self: Any, block: Any = True, timeout: Any = None) -> Any:
    strand = holder()
    if strand is None or not block or (timeout is not None and timeout < 0):
        return _Q_GET(self, block, timeout)
    found: list[Any] = []

    def take() -> bool:
        try:
            found.append(_Q_GET(self, False))
        except queue.Empty:
            return False
        return True

    if take() or _wait(strand, self, take, -1 if timeout is None else timeout):
        return found[0]
    if strand.free:
        return _Q_GET(self, block, timeout)
    raise queue.Empty


def _put(self: Any, item: Any, block: Any = True, timeout: Any = None) -> None:
    _Q_PUT(self, item, block, timeout)
    if id(self) in WAITING:
        woken_by(self)


def _put_nowait(self: Any, item: Any) -> None:
    _put(self, item)


_STANDS_IN: tuple[tuple[Any, dict[str, Any]], ...] = (
    (
        _LOCK,
        {
            "acquire": _acquire, "release": _release, "__enter__": _enter, "__exit__": _exit,
            "locked": _LOCK.__dict__["locked"],
        },
    ),
    (
        _RLOCK,
        {
            "acquire": _acquire_again, "release": _release_again, "__enter__": _enter_again, "__exit__": _exit_again,
            "_release_save": _release_save, "_acquire_restore": _acquire_restore,
        },
    ),
    (_QUEUE, {"get": _get, "put": _put, "put_nowait": _put_nowait}),
)  # fmt: skip

_mutex = Mutex()
_users = 0
_before: list[tuple[Any, dict[str, Any]]] = []
_real_wait = threading.Condition.wait


def _condition_wait(self: Any, timeout: float | None = None) -> bool:
    """Conditions keep bound methods of their lock from the moment when they were made: take those of now."""
    if holder() is not None:
        lock = self._lock
        for name in ("acquire", "release", "_release_save", "_acquire_restore"):
            if name in self.__dict__:
                setattr(self, name, getattr(lock, name))
    return _real_wait(self, timeout)


def install() -> None:
    """Put the stand-ins in place; counted, ``uninstall`` takes the last one away."""
    global _users
    with _mutex:
        _users += 1
        if _users > 1:
            return
        for owner, made in _STANDS_IN:
            names = names_of(owner)
            _before.append((owner, {name: names[name] for name in made}))
            names.update(made)
            changed(owner)
        cast(Any, threading.Condition).wait = _condition_wait
        _virtual_waits()


def uninstall() -> None:
    """The counterpart of ``install``."""
    global _users
    with _mutex:
        _users -= 1
        if _users:
            return
        for owner, names in _before:
            names_of(owner).update(names)
            changed(owner)
        _before.clear()
        cast(Any, threading.Condition).wait = _real_wait
        _held.clear()


def after_fork() -> None:
    """In a forked child no strand holds anything."""
    _held.clear()


# -- how long was waited -----------------------------------------------------------------------------------------------

_monotonic: Callable[[], float] = REAL_CLOCKS["monotonic"]


def _waited() -> float:
    """The clock by which the standard library measures how long it has waited: virtual in a strand."""
    strand = holder()
    return _monotonic() if strand is None else strand.baton.session.engine.vt / 1e9


def _virtual_waits() -> None:
    """Done once; outside of strands the clocks are what they were."""
    for module, name in ((threading, "_time"), (queue, "time")):
        if getattr(module, name) is not _waited:
            setattr(module, name, _waited)
    base: Any = concurrent.futures._base
    if getattr(base.time, "monotonic", None) is not _waited:
        clocks = ModuleType("time", time.__doc__)
        clocks.__dict__.update(vars(time), **REAL_CLOCKS)
        cast(Any, clocks).monotonic = _waited
        base.time = clocks
