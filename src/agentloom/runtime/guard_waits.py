"""Whether something is ready now: descriptors, and locks that another thread holds. A replay has others, or none."""

from __future__ import annotations

import _thread
import sys
import threading
import time
from types import FrameType
from typing import Any, cast

from agentloom.runtime.effects import Found
from agentloom.runtime.guard_effects import of_run
from agentloom.runtime.guard_names import NAMES, called_as, stand_in
from agentloom.runtime.guard_types import changed, names_of
from agentloom.runtime.refuse import see
from agentloom.runtime.scope import here
from agentloom.runtime.strays import started_by

__all__ = ["tell", "watch_waiting"]

_READY: Found = ("readiness", "asks whether a descriptor is ready")
_HELD: Found = ("readiness", "tries a lock that another thread holds")


def tell(found: Found) -> None:
    """Judge what the caller of the function that calls this does in a run."""
    if here() is None and started_by() is None:
        return
    session = of_run()
    if session is not None and session.guard.virtual:
        see(found, sys._getframe(2))  # pyright: ignore[reportPrivateUsage]


def watch_waiting() -> None:
    """See from now on what asks whether something is ready. Once in a process."""
    _watch_descriptors()
    for kind in (type(_thread.allocate_lock()), type(threading.RLock())):
        _watch_lock(kind)


# -- locks ------------------------------------------------------------------------------------------------------------


def _watch_lock(owner: type) -> None:
    """Tell of a lock that the agent's own code tries in vain: another thread holds it. Whoever waits for a lock as long
    as it takes learns nothing but that it was free."""
    names = names_of(owner)
    acquire, locked = names["acquire"], names.get("locked")

    def tried(self: Any, blocking: Any = True, timeout: Any = -1) -> bool:
        if acquire(self, blocking, timeout):
            return True
        if here() is not None:
            _tell_if_own(_HELD)
        return False

    def asked(self: Any) -> bool:
        found = cast(bool, cast(Any, locked)(self))
        if found and here() is not None:
            _tell_if_own(_HELD)
        return found

    called_as(tried, acquire)
    names["acquire"] = tried
    if locked is not None:
        called_as(asked, locked)
        names["locked"] = asked
    changed(owner)


def _tell_if_own(found: Found) -> None:
    """As ``tell``, where the agent's own code is the caller, with nothing between."""
    session = of_run()
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    if session is not None and session.guard.virtual and session.engine.places.name(frame.f_code) is not None:
        see(found, frame)


# -- descriptors ------------------------------------------------------------------------------------------------------


def _watch_descriptors() -> None:
    """``select.select`` by its name; what polls, in its type, wherever somebody has made one."""
    try:
        import select
        import selectors
    except ImportError:
        return  # this Python was built without it
    real: Any = select.select

    def selected(_: object, rlist: Any, wlist: Any, xlist: Any, timeout: float | None = None, /) -> Any:
        if of_run() is not None:
            if not (rlist or wlist or xlist) and timeout is not None and timeout >= 0:
                time.sleep(timeout)  # nothing to wait for but time
                return [], [], []
            _tell_of_descriptors()
        return real(rlist, wlist, xlist, timeout)

    replacement = stand_in(select, real, selected)
    NAMES.put(select, "select", replacement, real)
    if getattr(selectors.SelectSelector, "_select", None) is real:
        cast(Any, selectors.SelectSelector)._select = replacement
    module: Any = select
    for maker, method in (("poll", "poll"), ("epoll", "poll"), ("kqueue", "control"), ("devpoll", "poll")):
        made: Any = getattr(module, maker, None)
        if made is not None:
            _watch_method(made if isinstance(made, type) else type(made()), method)


def _tell_of_descriptors() -> None:
    """Judge the caller of the function that calls this; not the loop of asyncio, which waits for what it is told of."""
    session = of_run()
    if session is None or not session.guard.virtual:
        return
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    outer: FrameType | None = frame
    while outer is not None and outer.f_globals.get("__name__") in ("selectors", __name__):
        outer = outer.f_back
    if outer is None or not str(outer.f_globals.get("__name__")).startswith("asyncio."):
        see(_READY, frame)


def _watch_method(owner: type, name: str) -> None:
    names = names_of(owner)
    original = names[name]

    def polled(self: Any, *args: Any, **kwargs: Any) -> Any:
        if here() is not None or started_by() is not None:
            _tell_of_descriptors()
        return original(self, *args, **kwargs)

    called_as(polled, original)
    names[name] = polled
    changed(owner)
