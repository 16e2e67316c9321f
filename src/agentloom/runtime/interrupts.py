"""Ctrl-C waits until the engine has finished what it is at.

Python runs signal handlers between any two steps, also in the middle of an entry being written: the exception of
Ctrl-C would leave counters and chain half moved, and a program that catches it would go on from there. While a run is
under way in the main thread, a press that arrives inside of the engine is handed on a moment later. Host work, the
agent's own code, and waiting are interrupted at once.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib
import os
import signal
import sysconfig
import threading
import time
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any

__all__ = ["after_fork", "held_back", "inside_engine"]

_LATER = 0.001
"""Seconds until a press that arrived inside of the engine is tried again."""
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STDLIB = os.path.join(sysconfig.get_paths()["stdlib"], "")
_AT_ONCE = frozenset(
    os.path.join(_PACKAGE, "runtime", name + ".py")
    for name in (
        "driver_async", "guard_facts", "guard_files", "guard_input", "guard_install", "guard_waits", "guard_wraps",
        "host", "hostwork", "live_waits", "loop", "loop_bridge", "loop_connections", "loop_descriptors", "loop_hooks",
        "loop_io",
        "loop_outside", "loop_processes", "loop_servers", "loop_tasks", "models", "parking", "plainly", "seams",
        "stock", "thread_locks", "thread_pools", "threads", "tools",
    )
)  # fmt: skip
"""Modules of the runtime that perform host calls themselves, wait, hand over to others, or ask the system what may take
long. In every other one of the runtime, and where traces are written, nothing takes long and everything is to be
finished: what is called there by the way has frames of its own."""
_HELD = tuple(os.path.join(_PACKAGE, name, "") for name in ("runtime", "format", "store"))

_WAITS = "_sleep"
"""The one function elsewhere that waits: what stands in for ``time.sleep``, called outside of a run."""

# ``signal.signal`` and ``getsignal`` look each handler up among SIG_DFL and SIG_IGN first, and write it out where it is
# neither: for what asyncio puts there that is the text of its main task.
_in_c: Any = importlib.import_module("_signal")

_users = 0
_before: Callable[[int, FrameType | None], Any] | None = None


@contextlib.contextmanager
def held_back() -> Generator[None]:
    """For the block, Ctrl-C does not interrupt the engine. Does nothing outside of the main thread, and where Ctrl-C is
    not handled by Python code."""
    global _users, _before
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    if _users == 0:
        handler = _in_c.getsignal(signal.SIGINT)
        if not callable(handler):
            yield
            return
        if handler is not _pressed:
            _before = handler
            _in_c.signal(signal.SIGINT, _pressed)
    _users += 1
    try:
        yield
    finally:
        _users -= 1
        # Left in another thread (a generator that threads take turns to read) it stays, and passes on what it is told.
        here = threading.current_thread() is threading.main_thread()
        if here and _users == 0 and _before is not None and _in_c.getsignal(signal.SIGINT) is _pressed:
            _in_c.signal(signal.SIGINT, _before)


def after_fork() -> None:
    """In a forked child Ctrl-C is handled as it was before the run."""
    if _before is not None and _in_c.getsignal(signal.SIGINT) is _pressed:
        _in_c.signal(signal.SIGINT, _before)


def _pressed(number: int, frame: FrameType | None) -> None:
    if inside_engine(frame):
        _thread.start_new_thread(_again, ())
    elif _before is not None:
        _before(number, frame)


def _again() -> None:
    time.sleep(_LATER)
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def inside_engine(frame: FrameType | None) -> bool:
    """Whether the innermost code that is not the standard library's is the engine's."""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_PACKAGE):
            return name.startswith(_HELD) and name not in _AT_ONCE and frame.f_code.co_name != _WAITS
        # The __init__ of a dataclass has no file: it counts as its module.
        made = name == "<string>" and str(frame.f_globals.get("__name__")).startswith("agentloom.")
        if not made and not name.startswith((_STDLIB, "<frozen")):
            return False
        frame = frame.f_back
    return False
