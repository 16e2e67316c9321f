"""Workload W beside floor A, file sizes, what the guard costs outside runs, what a start costs, and a call through
each seam (``benchmarks/seams.py``).

    python -m benchmarks.run [--turns 100] [--rounds 15] [--long 400] [--quick] [--ratios] [--slower 0.4] [--json]

Fails (exit code 1) past the bounds of ``benchmarks/bounds.py``, and where a request is not rebuilt byte for byte. What
is past its bound is measured again, twice at most: another program that was busy at the time is gone then, a slower
agentloom is not.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import agentloom
from benchmarks import guard, ratios, seams, sizes, startup
from benchmarks.agent.agents import Backend
from benchmarks.bounds import failed
from benchmarks.machine import described

_LONG_ROUNDS = 5
_SETS = 3


def measured(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Everything that was asked for, measured: the parts, and what is past its bound."""
    start: dict[str, float] = {}
    short: ratios.Ratios | None = None
    long: ratios.Ratios | None = None
    for _ in range(_SETS):
        if not (options.quick or options.ratios) and (not start or failed(start)):
            again = startup.measure(folder)
            start = {name: min(start.get(name, found), found) for name, found in again.items()}
        if short is None or failed(short.found()):
            short = ratios.measure(options.turns, options.rounds, folder, short, slower=options.slower)
        if not options.quick and (long is None or failed(long.found())):
            long = ratios.measure(options.long, _LONG_ROUNDS, folder, long, slower=options.slower)
    if short is None:
        raise RuntimeError("nothing was measured")
    size = sizes.measure(options.turns, folder)
    outside = {} if options.quick else guard.measure()
    through = seams.whole() if not (options.quick or options.ratios) else {}
    found = {**start, **outside, **short.found(), **(long.found() if long else {}), **size}
    past = [*failed(found), *through.get("past", ())]
    if size["requests_rebuilt"] != size["requests"]:
        past.append("requests_rebuilt")
    return {
        "start": start,
        "short": short,
        "long": long,
        "size": size,
        "outside": outside,
        "seams": through,
        "failed": past,
    }


def show(found: Mapping[str, Any]) -> str:
    """For a person to read."""
    lines = [described(), ""]
    lines += found["short"].lines()
    if found["long"]:
        lines += ["", *found["long"].lines()]
    lines += ["", *sizes.lines(found["size"])]
    if found["outside"]:
        lines += ["", *guard.lines(found["outside"])]
    if found["start"]:
        lines += ["", *startup.lines(found["start"])]
    if found["seams"]:
        lines += ["", *seams.lines(found["seams"])]
    lines.append("FAILED: " + ", ".join(found["failed"]) if found["failed"] else "all bounds hold")
    return "\n".join(lines)


def data(found: Mapping[str, Any]) -> dict[str, Any]:
    """For a machine to read."""
    parts = {name: found[name] for name in ("short", "long") if found[name]}
    return {
        "machine": described(),
        "times": {str(part.turns): part.rows() for part in parts.values()},
        "start": found["start"],
        "size": found["size"],
        "outside": found["outside"],
        "seams": found["seams"],
        "failed": found["failed"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--long", type=int, default=400, help="turns of the long runs")
    parser.add_argument(
        "--quick", action="store_true", help="leave out the long runs and what starts processes"
    )
    parser.add_argument(
        "--ratios",
        action="store_true",
        help="leave out what is bounded in milliseconds: another machine, another clock",
    )
    parser.add_argument(
        "--slower",
        type=float,
        default=0.0,
        metavar="PART",
        help="make agentloom slower by this part of its time, to see that the bounds find it",
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    agentloom.set_backend(Backend())
    with tempfile.TemporaryDirectory() as name:
        found = measured(options, Path(name))
    print(json.dumps(data(found), indent=2) if options.json else show(found))
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
