"""The process in which a script or an agent runs: ``python -P -m agentloom.cli.script_child RESULT_FD JOB``.

JOB is a JSON object (``script_parent`` makes it). What happened is written to RESULT_FD, one JSON object a line:
``{"run": id}`` as soon as the run exists, ``{"done": ...}`` or ``{"error": ...}`` at the end. Standard output belongs
to the program.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any

from agentloom.cli.exits import describe, exit_code
from agentloom.errors import LoomError

__all__ = ["main"]


class Results:
    """The pipe to the parent."""

    def __init__(self, fd: int) -> None:
        os.set_inheritable(fd, False)
        self._fd = fd
        self._write = os.write

    def send(self, **facts: Any) -> None:
        """Write one line."""
        data = json.dumps(facts, default=str).encode() + b"\n"
        while data:
            data = data[self._write(self._fd, data) :]


def main(argv: list[str]) -> int:
    """Do the job; returns the exit code of the process."""
    results = Results(int(argv[0]))
    own = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType(
        "__main__"
    )  # the program's; nothing of this package shows in it
    job: dict[str, Any] = json.loads(argv[1])
    try:
        if job["mode"] == "replay":
            from agentloom.cli.script_replay import replay

            return replay(job, results)
        from agentloom.cli.script_record import record

        return record(job, results)
    except LoomError as error:
        results.send(error=describe(error))
        return int(exit_code(error))
    finally:
        sys.modules["__main__"] = own


if __name__ == "__main__":
    # The program gets a __main__ of its own; this module lives on under its real name.
    from agentloom.cli.script_child import main as run

    code = run(sys.argv[1:])
    sys.stdout.flush()
    sys.exit(code)
