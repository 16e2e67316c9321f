"""What agentloom costs where it is off: nothing of an SDK is patched or imported by it, and no call is slowed.

Each program of a seam runs in processes of its own, without agentloom and inside ``record`` under ``AGENTLOOM=off``, in
turns; processor time of its calls, the least of some rounds of each.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
import time
from typing import Any

from benchmarks.seam_programs import OFF, PROGRAMS

__all__ = ["lines", "measure"]

_MARK = "__agentloom__"


def child(name: str, how: str, url: str, calls: int) -> dict[str, Any]:
    """The calls in this process: microseconds a call, and what of agentloom there is afterwards."""
    program = PROGRAMS[name]
    asynchronous = inspect.iscoroutinefunction(program)
    if how == "off":
        os.environ["AGENTLOOM"] = "off"

    async def recorded(count: int) -> None:
        from agentloom import record

        with record("off"):
            await program(url, count)

    def run(count: int) -> None:
        if how == "without":
            asyncio.run(program(url, count)) if asynchronous else program(url, count)
            return
        if asynchronous:
            asyncio.run(recorded(count))
            return
        from agentloom import record

        with record("off"):
            program(url, count)

    run(2)
    begun = time.process_time()
    run(calls)
    used = time.process_time() - begun
    patched = [name for name, module in list(sys.modules.items()) if getattr(module, _MARK, False)]
    loaded = [name for name in sys.modules if name.startswith("agentloom.adapters.")]
    return {"us": used / calls * 1e6, "patched": sorted(patched), "loaded": sorted(loaded)}


def measure(url: str, calls: int = 200, rounds: int = 3) -> dict[str, float]:
    """The ratio of calls with agentloom off to calls without it, by ``off NAME``. Ends the program where something of
    an SDK is patched, or an adapter imported."""
    ratios: dict[str, float] = {}
    for name in OFF:
        times: dict[str, list[float]] = {"without": [], "off": []}
        for _ in range(rounds):
            for how, seen in times.items():
                command = [sys.executable, "-m", "benchmarks.seam_off", name, how, url, str(calls)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                told = json.loads(done.stdout)
                if told["patched"] or told["loaded"]:
                    raise SystemExit(
                        f"{name} with agentloom {how}: {told['patched']} patched, {told['loaded']} loaded"
                    )
                seen.append(told["us"])
        ratios[f"off {name}"] = min(times["off"]) / min(times["without"])
    return ratios


def lines(ratios: dict[str, float]) -> list[str]:
    """For a person to read."""
    return [
        "with agentloom off, in times of a process without it: nothing is patched, and no adapter imported",
        *(f"{name.removeprefix('off '):16} {ratio:.2f}" for name, ratio in ratios.items()),
    ]


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))))
