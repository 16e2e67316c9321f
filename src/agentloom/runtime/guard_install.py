"""Puts the guard in place: once in a process, before its first run that has one. Never at import.

Outside runs everything that is put in place passes on to what was there. Imports inside a run happen with the guard
suspended: a module that is loaded lazily sees the real world, and moves nothing in a run that loads it and another that
finds it loaded.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any, cast

from agentloom.runtime import guard_clock, guard_dates, guard_env, guard_facts, guard_ids, guard_random
from agentloom.runtime.guard import acting
from agentloom.runtime.guard_clock import REAL_TIME
from agentloom.runtime.guard_names import NAMES
from agentloom.runtime.guard_values import hold_arguments
from agentloom.runtime.locks import free_in_children
from agentloom.runtime.scope import here

__all__ = ["install"]

_WAITING = (
    "asyncio.base_events", "asyncio.windows_events", "concurrent.futures._base", "multiprocessing.connection",
    "multiprocessing.managers", "multiprocessing.pool", "multiprocessing.queues", "multiprocessing.synchronize",
    "subprocess", "socketserver", "logging.handlers",
)  # fmt: skip
"""Modules of the standard library that ask ``time`` how long they have waited for threads, sockets and processes."""

_lock = free_in_children(threading.Lock())
_state: list[str] = []


def install() -> None:
    """Put the guard in place, or see that it still is."""
    if _state:
        hold_arguments()
        guard_clock.holds()
        _loaded_since()
        return
    with _lock:
        if _state:
            return
        guard_clock.install()
        guard_dates.install()
        guard_random.install()
        guard_ids.install()
        guard_env.install()
        guard_facts.install_loaded()
        hold_arguments()
        _keep_real()
        _suspend_while_importing()
        NAMES.sweep()
        _state.append("installed")


def _keep_real() -> None:
    for name in _WAITING:
        module: Any = sys.modules.get(name)
        if module is not None and getattr(module, "time", None) is time:
            module.time = REAL_TIME
    _stamps()


def _stamps() -> None:
    """Log records show the run's time and take none of it: how many there are depends on what is logged."""
    logging: Any = sys.modules.get("logging")
    if logging is None or getattr(logging, "time", None) is not time:
        return
    stamps = ModuleType("time", time.__doc__)
    stamps.__dict__.update(vars(REAL_TIME), __getattr__=functools.partial(getattr, time))

    def read(real: Callable[[], int]) -> int:
        session = acting()
        return real() if session is None else session.guard.start + session.guard.glance(session)

    real_ns: Callable[[], int] = REAL_TIME.time_ns
    cast(Any, stamps).time_ns = lambda: read(real_ns)
    cast(Any, stamps).time = lambda: read(real_ns) / 1e9
    logging.time = stamps


def _suspend_while_importing() -> None:
    bootstrap: Any = sys.modules["_frozen_importlib"]
    find_and_load: Callable[..., Any] = bootstrap._find_and_load

    def _find_and_load(*args: Any, **kwargs: Any) -> Any:
        scope = here()
        if scope is None or acting(scope) is None:
            return find_and_load(*args, **kwargs)
        guard = scope.session.guard
        guard.suspended += 1
        try:
            return find_and_load(*args, **kwargs)
        finally:
            guard.suspended -= 1
            if not guard.suspended:
                _late()

    # As one of the import system's own frames it is cut out of the traceback of an ImportError.
    code = _find_and_load.__code__.replace(co_filename=find_and_load.__code__.co_filename)
    cast("FunctionType", _find_and_load).__code__ = code
    bootstrap._find_and_load = _find_and_load


def _late() -> None:
    """After an import inside a run."""
    _keep_real()
    _loaded_since()


def _loaded_since() -> None:
    """Put the guard in place in modules that were loaded since."""
    found = [part.install_loaded() for part in (guard_ids, guard_facts, guard_random)]
    if any(found):
        NAMES.sweep()
