"""Signals that end a program while it is recorded: it ends as ever, and its run ends ``cancelled``."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from types import FrameType

from agentloom.runtime.interrupts import inside_engine

__all__ = ["ENDING", "as_pressed", "ending"]

ENDING = tuple(
    number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None
)
"""Signals, beside Ctrl-C, that ask a process to end."""
_LATER = 0.001
"""Seconds until a signal that arrived inside of the engine is tried again."""


@contextlib.contextmanager
def as_pressed() -> Generator[Callable[[], int | None]]:
    """For the block, the first signal that asks the process to end is as Ctrl-C to the agent that runs: it cleans up,
    and that is recorded. A second one ends the process at once. Gives what says which signal that was, if one came."""
    came: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        _given_back(handle)
        signal.raise_signal(signal.SIGINT)

    with _handled(handle):
        yield lambda: came[0] if came else None


@contextlib.contextmanager
def ending(end: Callable[[int], None], busy: Callable[[], bool]) -> Generator[None]:
    """For the block, ``end(number)`` is called before a signal ends this process: where the program handles it itself,
    or ignores it, it does as ever. ``busy``: whether an entry is being written, which is then finished first."""
    owner = os.getpid()

    def handle(number: int, frame: FrameType | None) -> None:
        if os.getpid() == owner:
            if busy() or inside_engine(frame):
                _thread.start_new_thread(_again, (number,))
                return
            end(number)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    with _handled(handle):
        yield


@contextlib.contextmanager
def _handled(handle: Callable[[int, FrameType | None], None]) -> Generator[None]:
    """For the block, ``handle`` is called for the signals of ``ENDING`` that would end the process at once."""
    for number in ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, handle)
    try:
        yield
    finally:
        _given_back(handle)


def _given_back(handle: Callable[[int, FrameType | None], None]) -> None:
    for number in ENDING:
        if signal.getsignal(number) is handle:
            signal.signal(number, signal.SIG_DFL)


def _again(number: int) -> None:
    time.sleep(_LATER)
    signal.pthread_kill(threading.main_thread().ident or 0, number)
