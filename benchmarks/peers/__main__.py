"""Workload W through other recorders and through agentloom, side by side.

    python -m benchmarks.peers [--only NAME] [--turns 100] [--rounds 5] [--json] [--cache DIR]

Each contestant runs in a process and (the peers) an environment of its own, with floor A and the bare agent in that
same process: every ratio is to one of these. Environments are made once under the user's cache, with uv or pip, from
pinned versions. Exit code 1 when agentloom is not ahead of a peer that does the same; a peer that cannot be measured is
a line with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.machine import described
from benchmarks.peers.environments import PINS, Unusable, cache_folder, interpreter
from benchmarks.peers.table import CONTESTANTS, Row, behind, compared, lines

_ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 400


def measured(name: str, turns: int, rounds: int, cache: Path) -> Row:
    """The row of ``name``, with the reason in it where it could not be measured."""
    environment = CONTESTANTS[name].environment
    try:
        python = sys.executable if environment is None else str(interpreter(environment, cache))
        command = [python, "-m", "benchmarks.peers.one", name, "--turns", str(turns), "--rounds", str(rounds)]
        done = subprocess.run(
            command,
            check=False,
            cwd=_ROOT,
            env=dict(os.environ, PYTHONDONTWRITEBYTECODE="1"),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
        )
    except Unusable as reason:
        return Row(name, failed=str(reason))
    except subprocess.TimeoutExpired as ended:
        return Row(name, failed=_unfinished(ended.stderr, turns))
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return Row(name, failed=f"does not run: {said[-1] if said else f'exit code {done.returncode}'}")
    return Row(name, json.loads(done.stdout.splitlines()[-1]))


def _unfinished(said: bytes | str | None, turns: int) -> str:
    """Why there is no row, with what is known of a replay that was under way: it says when it begins and ends."""
    text = said.decode() if isinstance(said, bytes) else said or ""
    steps = [line.split() for line in text.splitlines() if line.startswith(("replay ", "replayed "))]
    reason = f"did not end within {_SECONDS} seconds"
    if not steps or steps[-1][0] != "replay":
        return reason
    seconds = time.time() - float(steps[-1][1])
    least = seconds / (2 * turns) * 1e6
    return f"{reason}; its replay takes more than {least:,.0f} us a call (not over after {seconds:.0f} s)"


def data(rows: list[Row], past: list[str]) -> dict[str, Any]:
    """For a machine to read."""
    made = {
        row.name: {
            "seam": row.contest.seam,
            "versions": list(PINS[row.contest.environment]) if row.contest.environment else [],
            "failed": row.failed,
            "record_times_floor": row.ratio("record"),
            "replay_times_floor": row.ratio("replay"),
            "notices": row.checks,
            **row.found,
        }
        for row in rows
    }
    return {"machine": described(), "rows": made, "behind": past, "ahead": not past}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="lines whose name has this in it")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--cache", type=Path, default=cache_folder(), help="where the environments are kept")
    options = parser.parse_args()
    names = [name for name in CONTESTANTS if not options.only or any(part in name for part in options.only)]
    if not names:
        parser.error(f"--only {' '.join(options.only)}: no such line; known: {', '.join(CONTESTANTS)}")
    rows: list[Row] = []
    for name in names:
        print(name, file=sys.stderr, flush=True)
        rows.append(measured(name, options.turns, options.rounds, options.cache))
    past = behind(rows)
    if options.json:
        print(json.dumps(data(rows, past), indent=2))
    else:
        print(described())
        print(
            f"workload W, {options.turns} turns; microseconds of processor time a call, {options.rounds} rounds\n"
        )
        print("\n".join([*lines(rows), *compared(rows)]))
        print("BEHIND: " + "; ".join(past) if past else "ahead of every peer that does the same")
    return 1 if past else 0


if __name__ == "__main__":
    sys.exit(main())
