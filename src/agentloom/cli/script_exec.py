"""Runs a Python file as ``python FILE ARGS`` would: as ``__main__``, with its arguments, exit code and traceback."""

from __future__ import annotations

import atexit
import builtins
import os
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from agentloom.cli.script_raised import without_ours
from agentloom.errors import ControlFlow, TargetError
from agentloom.runtime.threads import drain

__all__ = ["Ended", "load", "run_main", "show_error"]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended. ``error`` is what it did not catch, if anything; ``exit`` as the shell sees it."""

    exit: int
    error: BaseException | None = None

    @property
    def interrupted(self) -> bool:
        """Whether it ended by Ctrl-C that it did not catch."""
        return self.exit == 130 and isinstance(self.error, KeyboardInterrupt)

    @property
    def status(self) -> str:
        """The run's status: ``completed`` (exit code 0), ``cancelled`` (Ctrl-C) or ``failed``."""
        if isinstance(self.error, KeyboardInterrupt):
            return "cancelled"
        return "completed" if self.exit == 0 else "failed"


def load(path: str) -> types.CodeType:
    """Compile a script. Raises ``TargetError`` when it cannot be read or is not Python."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise TargetError(
            f"cannot read {path}: {error.strerror or error}", hint="name a Python file", path=path
        ) from error
    try:
        return compile(data, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}:{line}" if line else path
        raise TargetError(
            f"{where} is not a Python program: {getattr(error, 'msg', None) or error}",
            hint=f"python {path}",
            path=path,
        ) from error


def run_main(code: types.CodeType, path: str, argv: list[str], called: str | None = None) -> Ended:
    """Run ``code`` as ``__main__``. Returns whatever happens; only ``ControlFlow`` (a verdict) is raised. ``called`` is
    what the script sees as its name, ``path`` if it is not given."""
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=builtins, __cached__=None, __spec__=None)
    sys.modules["__main__"] = main
    sys.argv = [called or path, *argv]
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    try:
        exec(code, main.__dict__)  # noqa: S102 - running the user's program is what this is for
        ended = Ended(0)
    except ControlFlow:
        raise
    except SystemExit as stop:
        ended = Ended(_exit_code(stop))
    except KeyboardInterrupt as stop:
        show_error(stop)
        ended = Ended(130, stop)
    except BaseException as error:  # noqa: BLE001 - the interpreter's own last resort: traceback and exit code 1
        show_error(error)
        ended = Ended(1, error)
    try:
        drain()  # threads of the run; below, those that are not
        cast(
            Any, threading
        )._shutdown()  # as the interpreter does: threads that are no daemons come to their end
    except KeyboardInterrupt as stop:
        show_error(stop)
        ended = Ended(130, stop)
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]
    return ended


def _exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1


def show_error(error: BaseException) -> None:
    """The traceback, through the program's own excepthook, without the frames of this package."""
    for part in _chain(error, set()):
        part.__traceback__ = without_ours(part.__traceback__)
    sys.excepthook(type(error), error, error.__traceback__)


def _chain(error: BaseException | None, seen: set[int]) -> Iterator[BaseException]:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    yield from _chain(error.__cause__, seen)
    yield from _chain(error.__context__, seen)
    if isinstance(error, BaseExceptionGroup):
        group = cast(Any, error)
        for inner in group.exceptions:
            yield from _chain(inner, seen)
