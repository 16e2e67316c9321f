"""What asks the system and raises no audit event, wrapped by name: files looked at, the numbers of this process."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, cast

from agentloom.runtime.effects import Kind, comes_with_packages
from agentloom.runtime.guard_effects import of_run
from agentloom.runtime.guard_files import replace_readers, served, stat_of
from agentloom.runtime.guard_input import replace_input
from agentloom.runtime.refuse import see, stand

__all__ = ["guard_process"]

_installed = False


def guard_process() -> None:
    """See effects of runs from now on. Done once in a process, before its first run that has a guard."""
    global _installed
    replace_input()  # each time: whoever captures output puts a stream of its own there
    if _installed:
        return
    _installed = True
    stand()
    replace_readers()
    system = cast(Any, os)
    _put("stat", _looking(os.stat, follow=True))
    _put("lstat", _looking(os.lstat, follow=False))
    for name, kind, what in (
        ("access", "file read", "asks whether it may use a file"),
        ("readlink", "file read", "reads a link"),
        ("getpid", "identity", "asks for the number of this process, os.getpid()"),
        ("getppid", "identity", "asks for the number of the parent process, os.getppid()"),
    ):
        if hasattr(system, name):
            _put(name, _seeing(getattr(system, name), cast(Kind, kind), what))


def _put(name: str, wrapped: Callable[..., Any]) -> None:
    """Replace a function of ``os``, also in the sets that say which arguments it takes."""
    system = cast(Any, os)
    original = getattr(system, name)
    for capable in (
        os.supports_fd,
        os.supports_dir_fd,
        os.supports_follow_symlinks,
        os.supports_effective_ids,
    ):
        if original in capable:
            capable.add(wrapped)
    setattr(system, name, wrapped)


def _looking(original: Callable[..., os.stat_result], *, follow: bool) -> Callable[..., os.stat_result]:
    """``os.stat`` or ``os.lstat``."""

    @functools.wraps(original)
    def wrapped(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
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
        return original(path, *args, **kwargs)

    return wrapped


def _seeing(original: Callable[..., Any], kind: Kind, what: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        session = of_run()
        if session is not None and session.guard.virtual:
            see((kind, what), sys._getframe(1))  # pyright: ignore[reportPrivateUsage]
        return original(*args, **kwargs)

    return wrapped
