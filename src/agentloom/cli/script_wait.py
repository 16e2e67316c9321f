"""Waiting for the process of a program, and passing on to it the signals that reach the command in its place."""

from __future__ import annotations

import signal
import subprocess
import threading
from types import FrameType
from typing import Any

__all__ = ["wait_for"]

_PASSED_ON = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
    if (number := getattr(signal, name, None)) is not None
)
_LOOK = 1.0
"""Seconds after which it is looked for the process without having been told of it."""
_FROM_KERNEL = 0x80
"""``si_code`` of what the terminal sends, on Linux: to every process before it, so the program has it already."""


def wait_for(process: subprocess.Popen[bytes], reader: threading.Thread, *, expendable: bool) -> int:
    """The exit code of ``process``, whose words ``reader`` takes: it is started here, so that it gets none of the
    signals that are passed on. Where the process is ``expendable`` it is ended by Ctrl-C, and then
    ``KeyboardInterrupt`` is raised. To be called in the main thread."""
    timed: Any = getattr(signal, "sigtimedwait", None)
    if timed is None or threading.active_count() > 1:
        reader.start()
        return _by_handlers(process, expendable=expendable)
    stopped = False
    # Asked for one by one, not handled: a handler is not told who sent a signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_PASSED_ON, signal.SIGCHLD})
    try:
        reader.start()
        while (code := process.poll()) is None:
            came = timed({*_PASSED_ON, signal.SIGCHLD}, _LOOK)
            if came is None or came.si_signo == signal.SIGCHLD:
                continue
            if expendable and came.si_signo == signal.SIGINT:
                stopped = True
                process.kill()
            elif came.si_code != _FROM_KERNEL:
                process.send_signal(came.si_signo)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if stopped:
        raise KeyboardInterrupt
    return code


def _by_handlers(process: subprocess.Popen[bytes], *, expendable: bool) -> int:
    """The same where signals cannot be asked for: other threads of this process may get them."""
    stopped: list[int] = []

    def forward(number: int, _frame: FrameType | None) -> None:
        # Only signals are sent here: waiting inside of the wait below would wait for itself.
        if process.returncode is not None:
            return
        if expendable and number == signal.SIGINT:
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
