"""Runs victims on files in processes of their own, with limits, and measures them.

``python -m tests.fuzz.ward VICTIM FILE`` does one. In tests: ``Ward`` forks for each pair, from a process that has
imported everything already.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Bounds", "Ended", "run_in_ward"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one reading of one file may take: seconds of the processor, and bytes of memory over what was there."""

    seconds: float
    memory: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended. ``said`` is what the victim returned; ``problem`` what is wrong, or None."""

    said: str
    problem: str | None
    seconds: float
    memory: int


def run_in_ward(victim: Callable[[str], str], path: str, bounds: Bounds) -> Ended:
    """Fork, set the limits, call ``victim(path)``. Linux only: memory is the peak of the child's resident set."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - the child
        gc.freeze()  # what the parent holds is no garbage of the child's, and walking over it copies it
        os.close(read)
        _be_limited(bounds)
        before = _peak()
        facts: dict[str, object]
        try:
            facts = {"said": victim(path)}
        except BaseException as error:  # noqa: BLE001 - the child's own last resort
            facts = {
                "problem": f"{type(error).__name__}: {str(error)[:1500]}",
                "at": traceback.format_exc(limit=-6),
            }
        facts["memory"] = max(0, _peak() - before)
        os.write(write, json.dumps(facts).encode()[:60_000])
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        answer = pipe.read()
    _, status, usage = os.wait4(child, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if not answer:
        word = signal.Signals(-os.waitstatus_to_exitcode(status)).name if os.WIFSIGNALED(status) else status
        return Ended(
            "", f"the process ended with {word} after {seconds:.1f} s", seconds, usage.ru_maxrss * 1024
        )
    told = json.loads(answer)
    problem, memory = told.get("problem"), int(told["memory"])
    if problem is not None:
        problem = f"{problem}\n{told['at']}"
    elif seconds > bounds.seconds:
        problem = f"took {seconds:.1f} s, more than {bounds.seconds:.1f}"
    elif memory > bounds.memory:
        problem = f"took {memory >> 20} MiB, more than {bounds.memory >> 20}"
    return Ended(str(told.get("said", "")), problem, seconds, memory)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _be_limited(bounds: Bounds) -> None:
    """Twice the bounds: what passes them is ended, what only passes the bounds is measured."""
    seconds = int(bounds.seconds * 2) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    with open("/proc/self/statm", encoding="ascii") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    most = mapped + bounds.memory * 2
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def main() -> int:
    from tests.fuzz.victims import VICTIMS

    began = time.monotonic()
    ended = run_in_ward(VICTIMS[sys.argv[1]], sys.argv[2], Bounds(60, 4 << 30))
    print(f"{ended}  {time.monotonic() - began:.1f} s")
    return ended.problem is not None


if __name__ == "__main__":
    sys.exit(main())
