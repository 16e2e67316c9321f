"""Effects that a program attempts outside every host call: found by one audit hook and a few wrappers.

Python raises audit events for opening files, changing the file system, databases, sockets, processes and ``id()``; what
raises none and can be reached by name is wrapped. An event inside a run that has ``Session.effects`` goes to these, by
the rules of the run's guard (``guard_effects``); any other one, that does not come from host work, to the ``Watch``
that is armed in this process, if one is. What raises no event in C code is not seen here; the operating system has to
refuse that.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import get_ident  # before the guard watches who asks for it by its name
from types import FrameType
from typing import Any, cast

from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.effects import RUNS_ONLY, TABLE, WRAPPED, Effect, Effects, Found, Kind
from agentloom.runtime.finding import attributed, is_probe, known_library
from agentloom.runtime.guard_effects import of_run, of_session
from agentloom.runtime.guard_names import called_as
from agentloom.runtime.places import Places
from agentloom.runtime.scope import in_context
from agentloom.runtime.strays import started_in_context
from agentloom.runtime.work import under_way

__all__ = ["Effect", "Effects", "Kind", "Watch", "see", "stand"]

_ID = "builtins.id"


class _Busy(threading.local):
    now = False


_busy = _Busy()


class Watch:
    """Sees the effects of one program that are not part of a run. ``places`` tells its own code from libraries.

    ``everything``: also effects without any of the program's own code on the stack (a library's thread); a recorder
    leaves those out, because host work on other threads looks the same.
    """

    def __init__(self, effects: Effects, places: Places, *, everything: bool) -> None:
        self.effects = effects
        self.places = places
        self.everything = everything

    def arm(self) -> None:
        """Watch from now on, to the end of the process. One watch at a time in a process."""
        global _armed
        if _armed is not None:
            raise RuntimeError("another watch is armed in this process")
        stand()
        _armed = self

    @contextmanager
    def armed(self) -> Generator[None]:
        """Watch while the block runs."""
        global _armed
        self.arm()
        try:
            yield
        finally:
            _armed = None

    @contextmanager
    def aside(self) -> Generator[None]:
        """While the block runs, what this thread does is agentloom's own work and not the program's."""
        before = _busy.now
        _busy.now = True
        try:
            yield
        finally:
            _busy.now = before

    def judge(self, found: tuple[Kind, str], frame: FrameType | None) -> None:
        """One event that is not part of a run; may raise what ``Effects.attempt`` raises."""
        if found[0] in RUNS_ONLY:
            return
        effect, _ = attributed(found, frame, self.places, everything=self.everything)
        if effect is not None:
            self.effects.attempt(effect)


_armed: Watch | None = None
_standing = False


def see(found: Found, frame: FrameType | None) -> None:
    """Judge one event whose innermost frame is ``frame``. Raises what refuses it."""
    if found is None or _busy.now or under_way() is not None or is_probe(frame):
        return
    _busy.now = True
    try:
        session = of_run()
        if session is not None:
            of_session(session, found, frame, everything=_armed is not None and _armed.everything)
        elif _armed is not None:
            _armed.judge(found, frame)
    finally:
        _busy.now = False


_judged = TABLE.get


def _hook(event: str, args: tuple[Any, ...]) -> None:
    # Called for every event of the process: what is none of a run, and of no watch, leaves at once.
    find = _judged(event)
    if find is None or (
        _armed is None
        and (
            (COLLECTING and get_ident() in COLLECTING)
            or (in_context() is None and started_in_context() is None)
        )
    ):
        return
    if event == _ID:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        if not known_library(frame) and of_run() is not None:
            see(find(args), frame)
    elif _armed is not None or of_run() is not None:
        see(find(args), sys._getframe(1))  # pyright: ignore[reportPrivateUsage]


def stand() -> None:
    """See effects from now on. Done once in a process, before its first run that has a guard."""
    global _standing
    if _standing:
        return
    _standing = True
    sys.addaudithook(_hook)
    for module_name, name, kind, verb in WRAPPED:
        try:
            module: Any = sys.modules.get(module_name) or __import__(module_name)
        except ImportError:
            continue  # this Python was built without it
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _wrapper(original, (kind, verb)))
    _watch_attaching()


def _wrapper(original: Callable[..., Any], found: tuple[Kind, str]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if _armed is not None or of_run() is not None:
            see(found, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        return original(*args, **kwargs)

    called_as(wrapped, original)
    return wrapped


# -- databases in memory that reach a file -----------------------------------------------------------------------------

_SQLITE_ATTACH = 24


def _authorizer(action: int, name: str | None, *_: object) -> int:
    """Sees what no audit event tells: a database in memory that attaches a file, or is copied into one.

    Called by SQLite when it compiles a statement; ``name`` is None where the file is no literal. 0 allows it; an
    exception denies it.
    """
    if action == _SQLITE_ATTACH and name not in ("", ":memory:"):
        found: Found = ("database", f"attaches database {name or '(a computed name)'}")
        see(found, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
    return 0


def _watch_attaching() -> None:
    try:
        import _sqlite3
        import sqlite3
        import sqlite3.dbapi2
    except ImportError:
        return  # this Python was built without it
    connect = sqlite3.connect

    @functools.wraps(connect)
    def connected(*args: Any, **kwargs: Any) -> Any:
        connection = connect(*args, **kwargs)
        if under_way() is None and (_armed is not None or of_run() is not None):
            connection.set_authorizer(_authorizer)
        return connection

    for module in cast("tuple[Any, ...]", (_sqlite3, sqlite3, sqlite3.dbapi2)):
        module.connect = connected
