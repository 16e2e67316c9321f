"""What threads of a run cost, in microseconds of processor time, and what starting one outside of runs costs.

    python -m benchmarks.threads

Every figure is the least of several rounds. Bare ones are of Python alone, in the same process.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentloom import agent, tool
from agentloom.runtime import thread_locks
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.store import MemoryStore

ROUNDS, COUNT = 15, 200


def _clock() -> float:
    """Seconds of processor time; in a run too (a name for the function alone would be bound anew)."""
    return float(REAL_CLOCKS["process_time"]())


@tool(effect="read")
def find(number: int) -> int:
    return number


def _starts() -> None:
    for _ in range(COUNT):
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()


def _own() -> None:
    """As `_starts`, with a function of the agent's own."""
    for _ in range(COUNT):
        thread = threading.Thread(target=lambda: 1)
        thread.start()
        thread.join()


def _submits() -> None:
    with ThreadPoolExecutor(1) as pool:
        for _ in range(COUNT):
            pool.submit(int).result()


def _calls() -> None:
    for number in range(COUNT):
        find(number)


def _calls_in_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(find, range(COUNT)):
            pass


def _locks() -> None:
    lock = threading.Lock()
    for _ in range(COUNT * 10):
        with lock:
            pass


def least(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Microseconds of processor time for each of ``COUNT``."""
    best = float("inf")
    for _ in range(rounds):
        began = _clock()
        work()
        best = min(best, _clock() - began)
    return best / COUNT * 1e6


def in_run(work: Callable[[], object]) -> tuple[float, float]:
    """The same inside of a run: recorded, and replayed."""
    times: list[float] = []

    @agent(guard="virtual")
    def measured() -> None:
        began = _clock()
        work()
        times.append(_clock() - began)

    recorded = replayed = float("inf")
    for _ in range(ROUNDS // 3):
        trace = measured.run(store=MemoryStore())
        trace.replay(agent=measured)
        recorded, replayed = min(recorded, times[-2]), min(replayed, times[-1])
    return recorded / COUNT * 1e6, replayed / COUNT * 1e6


def measure() -> dict[str, Any]:
    """All figures, in microseconds."""
    bare = {"start and join": least(_starts), "submit and result": least(_submits), "10 locks": least(_locks)}

    @agent
    def first() -> None:
        _own()

    first.run(store=MemoryStore())  # everything is put in place
    after = {
        "start and join": least(_starts),
        "submit and result": least(_submits),
        "10 locks": least(_locks),
    }
    thread_locks.install()
    beside = {"10 locks": least(_locks)}
    thread_locks.uninstall()
    inside = {
        name: dict(zip(("recorded", "replayed"), in_run(work), strict=True))
        for name, work in (
            ("start and join", _own), ("submit and result", _submits), ("a call", _calls),
            ("a call in a pool of four", _calls_in_threads),
        )
    }  # fmt: skip
    return {
        "bare": bare,
        "outside a run": after,
        "outside, while a run has threads": beside,
        "in a run": inside,
    }


if __name__ == "__main__":
    began = time.monotonic()
    print(json.dumps(measure(), indent=1, default=str))
    print(f"{time.monotonic() - began:.0f} s")
