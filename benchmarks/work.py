"""Suspended runs answered and gone on with by several ``agentloom work``, one of which is killed: each goes on once.

    python -m benchmarks.work [--runs 1000] [--workers 4] [--json]

Records so many runs that wait (in one process), answers each (in this one), starts the workers, kills one of them in
the middle, and waits until all runs have ended. Prints how many went on a second; fails (exit code 1) where a run went
on twice, or not at all. What the tool does is counted in a file, with the key that a payment provider would get: a call
that the killed worker was in may be made again, with the same key.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from agentloom.api.answering import answer
from agentloom.store import LocalStore
from benchmarks.machine import described

PROGRAM = """
import os, sys
from agentloom import Suspended, agent, idempotency_key, tool
from agentloom.sync import ask

@tool(idempotent=True)
def pay(order: int) -> str:
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "paid.txt"), "a") as file:
        file.write(f"{order} {idempotency_key()}\\n")
    return "ok"

@agent
def shop(order: int) -> str:
    ask("Pay?", choices=["yes", "no"])
    return pay(order)

if __name__ == "__main__":
    for order in range(int(sys.argv[1])):
        try:
            shop.run(order)
        except Suspended:
            pass
"""
_LIMIT = 3600.0


def measured(runs: int, workers: int, folder: Path) -> dict[str, Any]:
    """What happened: seconds, rates, and ``failed``: what should not have."""
    (folder / "shop.py").write_text(PROGRAM)
    env = os.environ | {"AGENTLOOM_STORE": str(folder / "store"), "PYTHONHASHSEED": "0"}
    began = time.monotonic()
    subprocess.run([sys.executable, "shop.py", str(runs)], cwd=folder, env=env, check=True)
    recorded = time.monotonic()
    store = LocalStore(folder / "store")
    for row in store.runs():
        answer(row.run, "yes", by="bench", store=store, via="api")
    answered = time.monotonic()
    command = [sys.executable, "-m", "agentloom", "work", "--every", "0.5", "--json"]
    logs = [folder / f"worker{number}.jsonl" for number in range(workers)]
    processes: list[subprocess.Popen[bytes]] = []
    for log in logs:
        with log.open("wb") as out:
            processes.append(
                subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=subprocess.DEVNULL)
            )
    try:
        killed = _watch(store, runs, processes)
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()
    done = time.monotonic()
    return {
        "runs": runs,
        "workers": workers,
        "record_per_s": runs / (recorded - began),
        "answer_per_s": runs / (answered - recorded),
        "resume_per_s": runs / (done - answered),
        "seconds": done - answered,
        "killed_after": killed,
        **_counted(store, runs, folder, logs),
    }


def _watch(store: LocalStore, runs: int, processes: list[subprocess.Popen[bytes]]) -> int:
    """Kill one worker when a third of the runs have ended; wait for the rest. The runs that had ended then."""
    killed, limit = 0, time.monotonic() + _LIMIT
    while (ended := sum(row.status == "completed" for row in store.runs())) < runs:
        if not killed and ended >= runs // 3:
            processes[0].kill()
            killed = ended
        if time.monotonic() > limit:
            raise RuntimeError(f"{ended} of {runs} runs have ended after {_LIMIT} s")
        time.sleep(0.5)
    return killed


def _counted(store: LocalStore, runs: int, folder: Path, logs: list[Path]) -> dict[str, Any]:
    told = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    completed = Counter(one["run"] for one in told if one["status"] == "completed")
    paid = [line.split() for line in (folder / "paid.txt").read_text().splitlines()]
    rows = store.runs()
    failed: list[str] = []
    if max(completed.values(), default=0) > 1:
        failed.append("a run was completed by two workers")
    if {order for order, _ in paid} != {str(order) for order in range(runs)}:
        failed.append("a run did not pay")
    if len({key for _, key in paid}) != runs:
        failed.append("a run paid under two keys")
    if len(paid) > runs + 1:
        failed.append("calls were made again that nobody was killed in")
    return {
        "paid": len(paid),
        "resumed_twice": sum(row.epoch > 2 for row in rows),
        "by_status": dict(Counter(row.status for row in rows)),
        "could_not": sum(one["status"] not in ("completed", "suspended") for one in told),
        "failed": failed,
    }


def main(argv: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        found = measured(options.runs, options.workers, Path(folder))
    if options.json:
        print(json.dumps({"machine": described(), **found}, indent=2))
    else:
        print(f"{found['runs']} runs, {found['workers']} workers, one killed after {found['killed_after']}")
        for what in ("record", "answer", "resume"):
            print(f"  {what:<8}{found[f'{what}_per_s']:8.1f} a second")
        print(
            f"  calls made: {found['paid']}; runs resumed twice: {found['resumed_twice']}; {found['by_status']}"
        )
        for problem in found["failed"]:
            print(f"  FAILED: {problem}")
    return 1 if found["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
