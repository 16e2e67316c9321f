"""The process in which a script or an agent runs: ``python -P -m agentloom.cli.script_child RESULT JOB ALIVE``.

All three are descriptors. JOB holds a JSON object (``script_parent`` makes it); ALIVE ends when the parent does, and
this process with it. What happened is written to RESULT, one JSON object a line: ``{"run": id}`` as soon as the run
exists, ``{"done": ...}`` or ``{"error": ...}`` at the end, and on replay ``done`` also as soon as there is a verdict,
whatever becomes of the process then. Standard output belongs to the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import traceback
import types
from typing import Any, NoReturn

from agentloom.cli.exits import describe, exit_code
from agentloom.cli.script_lifeline import end_with
from agentloom.errors import LoomError

__all__ = ["Results", "leave", "main"]


class Results:
    """The pipe to the parent. Silent in processes that the program forks: they are not the run."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._fd = fd
        self._write = os.write
        self._owner = os.getpid()
        self._lock = threading.RLock()

    @property
    def ours(self) -> bool:
        """Whether this is the process that the parent started, and no fork of it."""
        return os.getpid() == self._owner

    def send(self, **facts: Any) -> None:
        """Write one line. It begins with a newline too, so that one that was broken off spoils no other."""
        if not self.ours:
            return
        data = b"\n" + json.dumps(facts, default=str).encode() + b"\n"
        with (
            self._lock,
            contextlib.suppress(BrokenPipeError),
        ):  # the parent was killed: nobody is left to be told
            while data:
                data = data[self._write(self._fd, data) :]


def main(argv: list[str]) -> int:
    """Do the job; returns the exit code of the process. A replay does not return: the process ends with it."""
    end_with(int(argv[2]))
    results = Results(int(argv[0]))
    own = sys.modules["__main__"]
    # The program's; nothing of this package shows in it.
    sys.modules["__main__"] = types.ModuleType("__main__")
    with os.fdopen(int(argv[1]), "rb") as file:
        job: dict[str, Any] = json.loads(file.read())
    if job.get("blocked") is not None:  # the parent held signals back until this process was there
        signal.pthread_sigmask(signal.SIG_SETMASK, job["blocked"])
    if job["mode"] == "replay":
        _replay(job, results)
    try:
        if job["mode"] == "resume":
            from agentloom.cli.script_resume import resume_agent, take_back

            return take_back(job, results) if job.get("rollback") else resume_agent(job, results)
        from agentloom.cli.script_record import record

        return record(job, results)
    except LoomError as error:
        results.send(error=describe(error))
        return int(exit_code(error))
    finally:
        sys.modules["__main__"] = own


def _replay(job: dict[str, Any], results: Results) -> NoReturn:
    """Replay, and end the process at once.

    Exit handlers, destructors and threads of a program that was replayed have nothing left to do: the interpreter's
    own ending would run them where nobody watches any more.
    """
    from agentloom.cli.script_replay import replay

    try:
        code = replay(job, results)
    except BaseException as error:  # noqa: BLE001 - the process ends here, whatever it is, and says so
        results.send(error=describe(error))
        if not isinstance(error, LoomError):
            traceback.print_exception(error)
        code = int(exit_code(error))
    leave(code)


def leave(code: int) -> NoReturn:
    """End this process now, with what it has to show shown."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads, or the program closed it
            stream.flush()
    _EXIT(code)


_EXIT = os._exit  # before the program can put something else in its place


if __name__ == "__main__":
    # The program gets a __main__ of its own; this module lives on under its real name.
    from agentloom.cli.script_child import main as run

    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.exit(code)
