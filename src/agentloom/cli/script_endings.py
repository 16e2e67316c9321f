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

__all__ = ["as_pressed", "ending"]

_ENDING = tuple(
    number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None
)
_LATER = 0.001
"""Seconds until a signal that arrived inside of the engine is tried again."""


@contextlib.contextmanager
def as_pressed() -> Generator[Callable[[], int | None]]:
    """For the block, the first signal that asks the process to end is as Ctrl-C to the agent that runs: it cleans up,
    and that is recorded. A second one ends the process at once. Gives what says which signal that was, if one came."""
    came: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        for one in stood:
            signal.signal(one, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)

    stood = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in stood:
        signal.signal(number, handle)
    try:
        yield lambda: came[0] if came else None
    finally:
        for number in stood:
            if signal.getsignal(number) is handle:
                signal.signal(number, signal.SIG_DFL)


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

    stood = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in stood:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in stood:
            if signal.getsignal(number) is handle:
                signal.signal(number, signal.SIG_DFL)


def _again(number: int) -> None:
    time.sleep(_LATER)
    signal.pthread_kill(threading.main_thread().ident or 0, number)
