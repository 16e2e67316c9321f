"""What ties the process of a program to the command that started it: when that is gone, however it came to its end, so
is the program, as one that was started by itself would be.

A pipe on which nothing is ever written: it ends with the last process that holds its other end. On Linux the system is
told to kill this process then, whatever it is doing; elsewhere a thread waits for it.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import select
import signal
from typing import Any

try:
    import fcntl
except ImportError:  # not a POSIX system: nothing is started there
    fcntl = None  # type: ignore[assignment]

__all__ = ["end_with"]


def end_with(fd: int) -> None:
    """From now on this process is killed when the other end of the pipe ``fd`` is closed."""
    os.set_inheritable(fd, False)
    system: Any = fcntl
    if not hasattr(system, "F_SETSIG"):
        _thread.start_new_thread(_wait, (fd,))
        return
    system.fcntl(fd, system.F_SETOWN, os.getpid())
    system.fcntl(fd, system.F_SETSIG, signal.SIGKILL)
    system.fcntl(fd, system.F_SETFL, system.fcntl(fd, system.F_GETFL) | os.O_ASYNC)
    if select.select([fd], [], [], 0)[0]:
        _end()  # it was closed before the system was told


def _wait(fd: int) -> None:
    with contextlib.suppress(OSError):  # the program closed it
        if not os.read(fd, 1):
            _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
