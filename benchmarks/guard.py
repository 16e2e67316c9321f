"""What the guard costs code that is in no run: calls of a process without it, beside those of one where it is in place.

Processes that live side by side take turns, in short rounds, so that all meet the same machine; a ratio is that of the
least times. ``time.time`` and ``datetime.now``, which are bounded closely, are compared within the guarded process: two
processes differ by more than that. ``open``, and a process that has only imported agentloom, are to cost what they did.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["lines", "measure"]

ROUNDS = 40
CALLS = 3_000
TIMED = {
    "time.time": "time.time()",
    "time.monotonic": "time.monotonic()",
    "datetime.now": "datetime.now()",
    "datetime.now(UTC)": "datetime.now(UTC)",
    "random.random": "random.random()",
    "uuid.uuid4": "uuid.uuid4()",
    "os.environ": "os.environ['PATH']",
    "open": "open(__file__).close()",
}
_CLOSELY = ("time.time", "datetime.now")
_WORKER = """
import ctypes, datetime as dt, json, os, random, sys, time, timeit, uuid
from datetime import UTC, datetime
__file__, stage, codes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
clock = time.perf_counter
if stage != "bare":
    import agentloom
    from agentloom import agent
if stage == "guarded":
    from agentloom.runtime.guard_clock import REAL_TIME
    from agentloom.store import MemoryStore
    import gc
    types = gc.get_referents(datetime.__dict__)[0]
    bare_now = types["now"]
    @agent(guard="strict")
    def run():
        return time.time()
    run.run(store=MemoryStore())
    guarded_now = types["now"]
    def put(now):
        types["now"] = now
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(datetime))
names = dict(globals())
timers = {name: timeit.Timer(code, globals=names, timer=clock) for name, code in codes.items()}
def turn(calls):
    found = {name: timer.timeit(calls // (10 if name == "open" else 1)) for name, timer in timers.items()}
    if stage == "guarded":
        found["bare time.time"] = timeit.timeit("time.time()", globals={"time": REAL_TIME}, number=calls, timer=clock)
        # New code each time: code that has met both is not as quick with either as code that has met one.
        put(bare_now)
        found["bare datetime.now"] = timeit.timeit("datetime.now()", globals=names, number=calls, timer=clock)
        put(guarded_now)
        found["datetime.now"] = timeit.timeit("datetime.now()", globals=names, number=calls, timer=clock)
    return found
for line in sys.stdin:
    print(json.dumps(turn(int(line))), flush=True)
"""


def measure(rounds: int = ROUNDS) -> dict[str, float]:
    """Ratios by name: ``guard time.time`` with the guard in place, ``imported time.time`` with agentloom imported."""
    stages = ("bare", "imported", "guarded")
    command = [sys.executable, "-c", _WORKER, __file__]
    workers = {
        stage: subprocess.Popen(
            [*command, stage, json.dumps(TIMED)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for stage in stages
    }
    least: dict[str, dict[str, float]] = {stage: {} for stage in stages}
    try:
        for _ in range(rounds):
            for stage, worker in workers.items():
                for name, seconds in _asked(worker).items():
                    least[stage][name] = min(seconds, least[stage].get(name, seconds))
    finally:
        for worker in workers.values():
            if worker.stdin is not None:
                worker.stdin.close()
            worker.wait(timeout=30)
            if worker.stdout is not None:
                worker.stdout.close()
    words = {"imported": "imported", "guarded": "guard"}
    found = {
        f"{word} {name}": least[stage][name] / least["bare"][name]
        for stage, word in words.items()
        for name in TIMED
    }
    for name in _CLOSELY:
        found[f"guard {name}"] = least["guarded"][name] / least["guarded"][f"bare {name}"]
    return found


def _asked(worker: subprocess.Popen[str]) -> dict[str, float]:
    if worker.stdin is None or worker.stdout is None:
        raise RuntimeError("a worker without pipes")
    worker.stdin.write(f"{CALLS}\n")
    worker.stdin.flush()
    found: Any = json.loads(worker.stdout.readline())
    return {str(name): float(seconds) for name, seconds in found.items()}


def lines(found: Mapping[str, float]) -> list[str]:
    """For a person to read."""
    made = ["outside runs, in times of a process without agentloom:   imported   guard in place"]
    made += [
        f"  {name:<52}{found[f'imported {name}']:>8.2f}{found[f'guard {name}']:>12.2f}"
        for name in TIMED
        if f"guard {name}" in found
    ]
    return made


if __name__ == "__main__":
    from benchmarks.bounds import failed

    ratios = measure()
    sys.stdout.write("\n".join([*lines(ratios), *(f"FAILED: {name}" for name in failed(ratios))]) + "\n")
    sys.exit(bool(failed(ratios)))
