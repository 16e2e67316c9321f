"""Exit codes, and how an error becomes a message.

| code | meaning |
| --- | --- |
| 0 | done; a replay was identical; a verified file holds |
| 1 | error |
| 2 | usage: an unknown command, option or value |
| 3 | divergence: a replay asked for something else; compared runs part |
| 5 | integrity: the bytes are not what was written |
| 75 | suspended: the run waits for a person or a message |
| 130 | interrupted with Ctrl-C |
| 141 | the reader of the output went away (as a process killed by SIGPIPE) |

``run`` passes the exit code of a script through.
"""

from __future__ import annotations

import enum
import json
import traceback
from typing import TYPE_CHECKING, cast

from agentloom import errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentloom.cli.render import Screen

__all__ = ["Exit", "describe", "exit_code", "report"]


class Exit(enum.IntEnum):
    """What the shell sees."""

    OK = 0
    ERROR = 1
    USAGE = 2
    DIVERGENCE = 3
    INTEGRITY = 5
    SUSPENDED = 75
    INTERRUPTED = 130
    BROKEN_PIPE = 141


def exit_code(error: BaseException) -> Exit:
    """The exit code that stands for ``error``.

    A file that needs a newer agentloom is a plain error: its bytes may be perfectly sound.
    """
    if isinstance(error, errors.UnsupportedVersion):
        return Exit.ERROR
    if isinstance(error, errors.IntegrityError | errors.FormatError):
        return Exit.INTEGRITY
    if isinstance(error, errors.DivergenceError | errors.Diverged):
        return Exit.DIVERGENCE
    if isinstance(error, errors.Suspend | errors.Suspended):
        return Exit.SUSPENDED
    if isinstance(error, KeyboardInterrupt):
        return Exit.INTERRUPTED
    return Exit.ERROR


def describe(error: BaseException) -> dict[str, object]:
    """``error`` as the JSON object that ``--json`` writes to stderr: type, message, next, fields, exit.

    An error that agentloom did not raise on purpose also carries its traceback.
    """
    if isinstance(error, errors.LoomError):
        facts: dict[str, object] = {"type": type(error).__name__, "message": str(error.args[0])}
        if error.hint:
            facts["next"] = error.hint
        if fields := {name: _plain(value) for name, value in error.fields.items()}:
            facts["fields"] = fields
    else:
        facts = {
            "type": type(error).__name__,
            "message": str(error),
            "traceback": traceback.format_exception(error),
        }
    facts["exit"] = int(exit_code(error))
    return facts


def report(error: BaseException, screen: Screen) -> Exit:
    """Write ``error`` to stderr, as text or (``--json``) as one JSON object; return its exit code."""
    code = exit_code(error)
    if screen.json:
        screen.error_text(json.dumps({"error": describe(error)}, default=str))
        return code
    if isinstance(error, errors.LoomError):
        screen.problem(str(error.args[0]), error.hint)
        return code
    for entry in traceback.format_exception(error):
        screen.error_text(entry.rstrip("\n"))
    screen.problem(
        f"agentloom failed with an unexpected {type(error).__name__}: {error}",
        "this is a defect of agentloom or of a package it uses; please report it with the text above",
    )
    return code


def _plain(value: object) -> object:
    """``value`` when JSON has it, else its text: fields of errors are facts to read, not data to restore."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in cast("Iterable[object]", value)]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in cast("dict[object, object]", value).items()}
    return str(value)
