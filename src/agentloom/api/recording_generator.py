"""A block that stands in a generator: between two items its reader runs in the same context, and is no part of the run.

Python has no context of a generator's own. So whoever reads such a generator and makes a host call, or begins a run,
between two items would be recorded in the wrong place; it is refused there. Generators that are context managers
(``@contextmanager``, fixtures of pytest) are meant to be so, and are left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import opcode
import os
from threading import get_ident
from types import FrameType

__all__ = ["BetweenItems", "between_items"]

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_MANAGERS = contextlib.__file__
_RESUME = opcode.opmap["RESUME"]
_AFTER_YIELD = 1
"""What RESUME says of a generator that goes on after a ``yield``; after an ``await`` it says 3."""


class BetweenItems:
    """Whether the running code is who reads the generator, which waits at a ``yield``."""

    __slots__ = ("_frame", "_task", "_thread")

    def __init__(self, frame: FrameType) -> None:
        self._frame = frame
        self._thread = get_ident()
        self._task = _task()

    @property
    def name(self) -> str:
        """The generator, in words."""
        return f"{self._frame.f_code.co_name}()"

    def __call__(self) -> bool:
        """Tasks and threads that the generator itself started are not its reader, and work on meanwhile."""
        frame = self._frame
        if frame.f_back is not None or get_ident() != self._thread or _task() is not self._task:
            return False
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            return True
        code, at = frame.f_code.co_code, frame.f_lasti
        if code[at] != _RESUME:
            at += 2  # before Python 3.13 the frame stands at what comes before
        return code[at] == _RESUME and code[at + 1] & 3 == _AFTER_YIELD


def between_items(entered_by: FrameType | None) -> BetweenItems | None:
    """For the frame that enters a block: None where it is not that of a generator with a reader."""
    frame = entered_by
    while frame is not None and frame.f_code.co_filename == _MANAGERS:
        frame = frame.f_back  # an ExitStack
    if frame is None or frame.f_code.co_filename.startswith(_PACKAGE):
        return None
    if not frame.f_code.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR):
        return None
    driver = frame.f_back
    if driver is not None and (
        driver.f_code.co_filename == _MANAGERS or "pytest" in driver.f_code.co_filename
    ):
        return None
    return BetweenItems(frame)


def _task() -> asyncio.Task[object] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None
