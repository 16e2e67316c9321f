"""Workload W in one process, agentloom beside floor A, with spread.

    python -m benchmarks.run [--turns 100] [--rounds 7] [--json]

Fails (exit code 1) when a bound is passed: file size, growth, and every request rebuilt byte for byte.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import agentloom
from agentloom import Trace
from agentloom.store import read_file
from benchmarks import floor
from benchmarks.agent import workload
from benchmarks.agent.agents import Backend, async_agent, sync_agent

BOUNDS = {"raw_bytes": 400_000, "zst_bytes": 110_000, "growth": 4.2}
"""At N = 100 turns; growth is the file's size for 4 N turns over its size for N."""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def measure(turns: int, rounds: int, folder: Path) -> dict[str, list[float]]:
    """Seconds of each contestant, one after the other in each round, so that noise falls on all of them."""
    times: dict[str, list[float]] = {}

    def keep(name: str, work: Callable[[], Any]) -> Any:
        seconds, result = timed(work)
        times.setdefault(name, []).append(seconds)
        return result

    for index in range(rounds):
        keep("bare loop", lambda: workload.loop(workload.model, workload.tool, turns))
        path = folder / f"floor{index}.jsonl"
        keep("floor record", lambda path=path: floor.record(path, turns))  # type: ignore[misc]
        keep("floor replay", lambda path=path: floor.replay(path, turns))  # type: ignore[misc]
        for name, contestant in (("sync", sync_agent), ("async", async_agent)):
            store = folder / f"{name}{index}"
            trace: Trace = keep(f"{name} record", lambda c=contestant, s=store: c.run(turns, store=s))  # type: ignore[misc]
            before = dict(workload.PERFORMED)
            keep(f"{name} replay", trace.replay)
            if workload.PERFORMED != before:
                raise SystemExit("a replay performed calls")
    return times


def rebuilt_exactly(trace: Trace, turns: int) -> int:
    """How many of the model requests in the file equal, byte for byte, what the agent sent."""
    sent: list[str] = []

    def ask(messages: list[workload.Message]) -> workload.Message:
        sent.append(json.dumps({"model": "m", "messages": messages}))
        answer = workload.model(messages)
        return {"role": "assistant", "content": answer["content"], "tool_calls": answer["tool_calls"]}

    workload.loop(ask, workload.tool, turns)
    stored = [json.dumps(call.request) for call in trace.calls if call.kind == "model"]
    return sum(1 for a, b in zip(sent, stored, strict=True) if a == b)


def sizes(turns: int, folder: Path) -> dict[str, float]:
    """File sizes of one recorded run, of one four times as long, and of the compressed file."""
    short = sync_agent.run(turns, store=folder / "short")
    long = sync_agent.run(turns * 4, store=folder / "long")
    short.save(folder / "short.loom")
    short.save(folder / "short.loom.zst")
    long.save(folder / "long.loom")
    raw = len(read_file(folder / "short.loom"))
    return {
        "raw_bytes": raw,
        "zst_bytes": (folder / "short.loom.zst").stat().st_size,
        "growth": (folder / "long.loom").stat().st_size / raw,
        "requests": turns,
        "requests_rebuilt": rebuilt_exactly(short, turns),
    }


def report(times: Mapping[str, list[float]], size: Mapping[str, float], turns: int) -> dict[str, Any]:
    """Medians, spread and ratios to the floor of the same round."""
    calls = turns * 2
    rows: dict[str, Any] = {}
    for name, seconds in times.items():
        kind = name.rpartition(" ")[2]
        base = times.get(f"floor {kind}", seconds)
        ratios = sorted(a / b for a, b in zip(seconds, base, strict=True))
        rows[name] = {
            "us_per_call": statistics.median(seconds) / calls * 1e6,
            "min": min(seconds) / calls * 1e6,
            "max": max(seconds) / calls * 1e6,
            "times_floor": statistics.median(ratios),
            "times_floor_range": [ratios[0], ratios[-1]],
        }
    failed = [name for name, bound in BOUNDS.items() if size[name] > bound]
    if size["requests_rebuilt"] != size["requests"]:
        failed.append("requests_rebuilt")
    return {
        "turns": turns,
        "python": sys.version.split()[0],
        "times": rows,
        "size": dict(size),
        "failed": failed,
    }


def show(result: Mapping[str, Any]) -> str:
    lines = [f"workload W, {result['turns']} turns, {result['turns'] * 2} calls, Python {result['python']}"]
    lines.append(f"{'':14} {'us a call':>10} {'min':>8} {'max':>8}   {'x floor A':>9} (range)")
    for name, row in result["times"].items():
        low, high = row["times_floor_range"]
        lines.append(
            f"{name:14} {row['us_per_call']:10.1f} {row['min']:8.1f} {row['max']:8.1f}   "
            f"{row['times_floor']:9.2f} ({low:.2f} - {high:.2f})"
        )
    size = result["size"]
    lines.append(f"file {size['raw_bytes']:,.0f} bytes raw (bound {BOUNDS['raw_bytes']:,})")
    lines.append(f"     {size['zst_bytes']:,.0f} bytes as .loom.zst (bound {BOUNDS['zst_bytes']:,})")
    lines.append(f"     {size['growth']:.2f}x for 4x turns (bound {BOUNDS['growth']})")
    lines.append(
        f"     {size['requests_rebuilt']:.0f} of {size['requests']:.0f} requests rebuilt byte for byte"
    )
    lines.append("FAILED: " + ", ".join(result["failed"]) if result["failed"] else "all bounds hold")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    agentloom.set_backend(Backend())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result = report(
            measure(options.turns, options.rounds, folder), sizes(options.turns, folder), options.turns
        )
    print(json.dumps(result, indent=2) if options.json else show(result))
    return 1 if result["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
