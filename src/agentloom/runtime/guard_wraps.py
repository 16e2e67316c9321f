"""What asks the system and raises no audit event, wrapped by name: files looked at, the numbers of this process, what
is ready, settings of the process."""

from __future__ import annotations

import _locale
import functools
import gc
import locale
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from agentloom.runtime.effects import Found, Kind, comes_with_packages
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_effects import of_run
from agentloom.runtime.guard_files import at_place, replace_readers, served, stat_of
from agentloom.runtime.guard_input import replace_input
from agentloom.runtime.guard_names import NAMES, stand_in
from agentloom.runtime.guard_waits import tell, watch_waiting
from agentloom.runtime.refuse import see, stand

__all__ = ["guard_process"]

_installed = False
_TOLD: tuple[tuple[str, str, Kind, str], ...] = (
    ("os", "access", "file read", "asks whether it may use a file"),
    ("os", "readlink", "file read", "reads a link"),
    ("os", "statvfs", "file read", "asks how full a disk is"),
    ("os", "getxattr", "file read", "reads attributes of a file"),
    ("os", "listxattr", "file read", "reads attributes of a file"),
    ("os", "getpid", "identity", "asks for the number of this process, os.getpid()"),
    ("os", "getppid", "identity", "asks for the number of the parent process, os.getppid()"),
    ("os", "getpgid", "identity", "asks for the number of a process group, os.getpgid()"),
    ("os", "getpgrp", "identity", "asks for the number of the process group, os.getpgrp()"),
    ("os", "getsid", "identity", "asks for the number of a session, os.getsid()"),
    ("os", "chdir", "setting", "changes the working folder, os.chdir()"),
    ("os", "fchdir", "setting", "changes the working folder, os.fchdir()"),
    ("os", "umask", "setting", "changes the mask of new files, os.umask()"),
    ("os", "nice", "setting", "changes the priority of this process, os.nice()"),
    ("threading", "get_ident", "identity", "asks for the number of a thread, threading.get_ident()"),
    ("threading", "get_native_id", "identity", "asks for the number of a thread, threading.get_native_id()"),
    ("_thread", "get_ident", "identity", "asks for the number of a thread, get_ident()"),
    ("_thread", "get_native_id", "identity", "asks for the number of a thread, get_native_id()"),
    ("gc", "get_count", "identity", "asks how many objects this process has made, gc.get_count()"),
    ("gc", "get_stats", "identity", "asks what the collector has done, gc.get_stats()"),
    ("gc", "get_objects", "identity", "asks for all objects of this process, gc.get_objects()"),
    ("gc", "get_referrers", "identity", "asks for objects of this process, gc.get_referrers()"),
    (
        "sys",
        "getallocatedblocks",
        "identity",
        "asks for the memory of this process, sys.getallocatedblocks()",
    ),
    ("sys", "getrefcount", "identity", "asks for references in this process, sys.getrefcount()"),
    ("tracemalloc", "get_traced_memory", "identity", "asks for the memory of this process, by tracemalloc"),
    ("tracemalloc", "take_snapshot", "identity", "asks for the memory of this process, by tracemalloc"),
    ("resource", "getrusage", "identity", "asks what this process has used, resource.getrusage()"),
    ("resource", "setrlimit", "setting", "changes a limit of this process, resource.setrlimit()"),
    ("time", "tzset", "setting", "changes the time zone of this process, time.tzset()"),
    ("signal", "alarm", "setting", "sets a timer of this process, signal.alarm()"),
    ("signal", "setitimer", "setting", "sets a timer of this process, signal.setitimer()"),
)
"""Functions that are told and then called, with what is said of each."""

_CHANGES_LOCALE: Found = ("setting", "changes the locale of this process, locale.setlocale()")


def guard_process() -> None:
    """See effects of runs from now on. Done once in a process, before its first run that has a guard."""
    global _installed
    replace_input()  # each time: whoever captures output puts a stream of its own there
    fresh = _wrap_loaded()
    if not _installed:
        _installed = fresh = True
        stand()
        replace_readers()
        _put(os, "stat", _looking(os.stat, follow=True))
        _put(os, "lstat", _looking(os.lstat, follow=False))
        _put(os, "read", _reading(os.read))
        _put(gc, "collect", _collecting(gc.collect))
        for module in cast("tuple[Any, ...]", (locale, _locale)):
            _put(module, "setlocale", _localizing(module.setlocale))
        watch_waiting()
    if fresh:
        NAMES.sweep()


_wrapped: set[str] = set()


def _wrap_loaded() -> bool:
    """Wrap what is told in the modules that are loaded by now. True where there was one."""
    found = {entry[0] for entry in _TOLD if entry[0] in sys.modules} - _wrapped
    _wrapped.update(found)
    for owner, name, kind, what in _TOLD:
        original: Any = getattr(sys.modules[owner], name, None) if owner in found else None
        if original is not None:
            _put(sys.modules[owner], name, _seeing(original, kind, what))
    return bool(found)


def _put(module: ModuleType, name: str, function: Callable[..., Any]) -> None:
    """Replace a function by one that takes an ignored first argument. One of ``os`` also in the sets that say which
    arguments it takes."""
    original: Any = getattr(module, name)
    wrapped = stand_in(module, original, function)
    NAMES.put(module, name, wrapped, original)
    if module is os:
        for capable in (
            os.supports_fd,
            os.supports_dir_fd,
            os.supports_follow_symlinks,
            os.supports_effective_ids,
        ):
            if original in capable:
                capable.add(wrapped)


def _looking(original: Callable[..., os.stat_result], *, follow: bool) -> Callable[..., os.stat_result]:
    """``os.stat`` or ``os.lstat``."""

    def wrapped(_: object, path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        session = of_run()
        if session is None or isinstance(path, int):
            return original(path, *args, **kwargs)
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        plain = not args and not kwargs.keys() - {"follow_symlinks"}
        if plain and served(frame):
            follows = bool(kwargs.get("follow_symlinks", follow))
            return stat_of(functools.partial(original, **kwargs), path, follow=follows)
        if session.guard.virtual and not comes_with_packages(os.fsdecode(path)):
            see(("file read", f"looks at {os.fsdecode(path)}"), frame)
        if kwargs.get("dir_fd") is not None:
            return original(path, *args, **kwargs)
        return at_place(original, path, *args, **kwargs)

    return wrapped


def _reading(original: Callable[[int, int], bytes]) -> Callable[..., bytes]:
    """``os.read``, of standard input."""

    def wrapped(_: object, fd: int, length: int, /) -> bytes:
        if fd == 0:
            tell(("stdin", "reads standard input"))
        return original(fd, length)

    return wrapped


def _collecting(original: Callable[..., int]) -> Callable[..., int]:
    """``gc.collect``, which says how much there was to collect."""

    def wrapped(_: object, *args: Any, **kwargs: Any) -> int:
        found = original(*args, **kwargs)
        return found if acting() is None else 0

    return wrapped


def _localizing(original: Callable[..., str]) -> Callable[..., str]:
    """``locale.setlocale``, which asks where it gets no locale."""

    def wrapped(_: object, category: int, locale: Any = None) -> str:
        if locale is None:
            return original(category)
        tell(_CHANGES_LOCALE)
        return original(category, locale)

    return wrapped


def _seeing(original: Callable[..., Any], kind: Kind, what: str) -> Callable[..., Any]:
    def wrapped(_: object, *args: Any, **kwargs: Any) -> Any:
        tell((kind, what))
        return original(*args, **kwargs)

    return wrapped
