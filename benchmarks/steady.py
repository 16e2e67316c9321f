"""Whether the bounds hold beside a busy program, and still find a slower agentloom.

    python -m benchmarks.steady [--times 10] [--beside 1] [--rounds 7] [--slower 0.4]

Runs ``benchmarks.run --quick`` so many times, each in a process of its own, while ``--beside`` processes use the
processor all the time; then once more with a planted slowdown. Fails (exit code 1) where one of the first fails, or
where the last does not.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.machine import described

__all__ = ["beside", "judged", "main", "once"]

_ROOT = Path(__file__).resolve().parents[1]
_BUSY = "while True: sum(range(10_000))"
_SHOWN = ("sync record", "sync replay", "async record", "async replay")


@contextmanager
def beside(count: int) -> Generator[None]:
    """A block beside ``count`` processes that are busy all the time."""
    busy = [subprocess.Popen([sys.executable, "-c", _BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for one in busy:
            one.kill()
        for one in busy:
            one.wait()


def once(rounds: int, slower: float) -> dict[str, Any]:
    """What one run of the benchmark found. ``RuntimeError`` where it did not run."""
    command = [sys.executable, "-m", "benchmarks.run", "--quick", "--json"]
    command += ["--rounds", str(rounds), "--slower", str(slower)]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"the benchmark did not run: {done.stderr.strip()[-500:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def judged(times: int, slower: float, run: Callable[[float], dict[str, Any]]) -> tuple[list[str], bool]:
    """A line for each of the runs, and whether all were as they should: those within their bounds, the last one, with
    the slowdown, past them."""
    lines: list[str] = []
    right = True
    for number in range(times + 1):
        planted = slower if number == times else 0.0
        found = run(planted)
        rows = found["times"]["100"]
        ratios = "  ".join(f"{rows[name]['times_floor']:5.2f}" for name in _SHOWN)
        past = ", ".join(found["failed"])
        name = f"slower by {slower:g}" if planted else f"run {number + 1}"
        lines.append(f"{name:14} {ratios}   {f'past: {past}' if past else 'all bounds hold'}")
        right = right and bool(past) == bool(planted)
    return lines, right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--beside", type=int, default=1, help="busy processes")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--slower", type=float, default=0.4, metavar="PART")
    options = parser.parse_args()
    with beside(options.beside):
        lines, right = judged(options.times, options.slower, lambda slower: once(options.rounds, slower))
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "load unknown"
    print(f"{described()}; {options.beside} busy beside, {load}")
    print(f"{'x floor A':14} {'  '.join(f'{name}' for name in _SHOWN)}")
    print("\n".join(lines))
    print("as it should be" if right else "NOT as it should be")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
