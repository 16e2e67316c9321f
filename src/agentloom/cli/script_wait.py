"""Waiting for the process of a program, and passing on to it the signals that reach the command in its place."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, cast

__all__ = ["holding", "wait_for"]

_PASSED_ON = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if (number := getattr(signal, name, None)) is not None
)
_LOOK = 1.0
"""Seconds after which it is looked for the process without having been told of it."""
_FROM_KERNEL = 0x80
"""``si_code`` of what the terminal sends, on Linux: to every process before it, so the program has it already."""


_HELD = frozenset((*_PASSED_ON, signal.SIGCHLD)) if hasattr(signal, "SIGCHLD") else frozenset(_PASSED_ON)


@contextlib.contextmanager
def holding() -> Generator[list[int] | None]:
    """For the block, in which a process is started and waited for, signals wait until they are asked for. What the
    process is to have blocked instead of them; None: they do not wait, because other threads of this process may get
    them, or the system lacks it. To be entered in the main thread."""
    if not hasattr(signal, "sigtimedwait") or threading.active_count() > 1:
        yield None
        return
    # Asked for one by one, not handled: a handler is not told who sent a signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield [int(number) for number in before]
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_for(
    process: subprocess.Popen[bytes],
    *,
    expendable: bool,
    held: bool,
    told: Callable[[int], bool] | None = None,
) -> int:
    """The exit code of ``process``. Signals are passed on; where it is ``expendable`` it is ended by Ctrl-C, and then
    ``KeyboardInterrupt`` is raised. ``held``: signals wait to be asked for. ``told``: gets them instead, and says
    whether the process is to be killed for it."""
    if not held:
        return _by_handlers(process, expendable=expendable, told=told)
    stopped = False
    timed: Any = cast(Any, signal).sigtimedwait
    while (code := process.poll()) is None:
        came = timed(_HELD, _LOOK)
        if came is None or came.si_signo == signal.SIGCHLD:
            continue
        if told is not None:
            if told(came.si_signo):
                process.kill()
        elif expendable and came.si_signo == signal.SIGINT:
            stopped = True
            process.kill()
        elif came.si_code != _FROM_KERNEL:
            process.send_signal(came.si_signo)
    if stopped:
        raise KeyboardInterrupt
    return code


def _by_handlers(
    process: subprocess.Popen[bytes], *, expendable: bool, told: Callable[[int], bool] | None
) -> int:
    """The same where signals do not wait."""
    stopped: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        # Only signals are sent here: waiting inside of the wait below would wait for itself.
        if process.returncode is not None:
            return
        if told is not None:
            if told(number):
                process.kill()
        elif expendable and number == signal.SIGINT:
            stopped.append(number)
            process.kill()
        else:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in _PASSED_ON}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if stopped:
        raise KeyboardInterrupt
    return code
