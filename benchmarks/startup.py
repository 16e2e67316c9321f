"""What is paid once: importing agentloom, a run whatever its length, a replay by command from a cold start.

Elapsed time, of which the least of some tries is taken: here the interpreter, the file system and other processes are
part of what is waited for.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.agent import short
from benchmarks.bounds import beside

__all__ = ["COLD_CALLS", "lines", "measure"]

COLD_CALLS = 12_000
_TRIES = 3
_RUNS = 30
_HEAVY = ("openai", "anthropic", "httpx", "httpx2", "pydantic", "rich", "click", "any_llm")
_IMPORT = (
    "import sys, time; begun = time.perf_counter(); import agentloom; agentloom.agent, agentloom.tool, agentloom.model;"
    f"print(time.perf_counter() - begun, *[name for name in {_HEAVY!r} if name in sys.modules])"
)


def _import_seconds() -> float:
    """Seconds of ``import agentloom`` with the names that an agent needs. Ends the program where it imports an SDK."""
    done = subprocess.run([sys.executable, "-c", _IMPORT], check=True, capture_output=True, text=True)
    seconds, *heavy = done.stdout.split()
    if heavy:
        raise SystemExit(f"import agentloom imports {', '.join(heavy)}")
    return float(seconds)


def _each(work: Callable[[], object], tries: int) -> list[float]:
    times: list[float] = []
    for _ in range(tries):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times


def _cold(folder: Path) -> float:
    """Seconds of ``agentloom replay`` of a file of many calls, from the start of the process to its end."""
    path = folder / "cold.loom"
    short.calls.run(COLD_CALLS, store=folder / "cold").save(path)

    def replay() -> None:
        command = [sys.executable, "-m", "agentloom", "replay", str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        if f"IDENTICAL  {COLD_CALLS:,}/{COLD_CALLS:,} calls" not in done.stdout:
            raise SystemExit(f"the cold replay did not match: {done.stdout}")

    return min(_each(replay, _TRIES))


def measure(folder: Path) -> dict[str, float]:
    """Milliseconds of each. ``first run`` is the first of this process: call it before anything else is run."""
    first = _each(lambda: short.calls.run(1, store=folder / "one"), 1)
    one = _each(lambda: short.calls.run(1, store=folder / "one"), _RUNS)
    awaited = _each(lambda: short.calls_async.run(1, store=folder / "one"), _RUNS)
    return {
        "import": min(_import_seconds() for _ in range(_TRIES + 2)) * 1e3,
        "first run": first[0] * 1e3,
        "one call": min(one) * 1e3,
        "one awaited call": min(awaited) * 1e3,
        "cold replay": _cold(folder) * 1e3,
    }


def lines(found: Mapping[str, float]) -> list[str]:
    """What was measured, in words."""
    runs = (found["one call"], found["one awaited call"], found["first run"])
    return [
        f"import agentloom {found['import']:.0f} ms, no SDK with it {beside('import')}",
        "a run of one call {:.2f} ms, awaited {:.2f} ms, the first of a process {:.0f} ms".format(*runs)
        + f" {beside('one call')}",
        f"agentloom replay of {COLD_CALLS:,} calls, cold: {found['cold replay']:.0f} ms {beside('cold replay')}",
    ]
