"""One contestant and floor A in this process: what the table's row is made of, printed as JSON.

    python -m benchmarks.peers.one NAME [--turns 100] [--rounds 5]

Started by ``benchmarks.peers`` with the interpreter of the contestant's own environment.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import floor
from benchmarks.agent import workload
from benchmarks.peers.contestants import CLASSES, contestant
from benchmarks.peers.contestants.base import Contestant

__all__ = ["measure"]

_WARM_UP = 4
_ENOUGH = 60.0
"""Seconds after which no further round begins."""


class Rounds:
    """Seconds of processor time, all threads of this process, of each thing that was run: one number a round."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        begun = time.process_time()
        result = work()
        self.seconds.setdefault(name, []).append(time.process_time() - begun)
        return result


def _agrees(what: str, result: Any, expected: list[workload.Message]) -> None:
    """Ends the program where a run gave something other than the agent without a recorder."""
    same = {int: len(expected), list: expected}.get(type(result), result)
    if result is not None and result != same:
        raise SystemExit(f"{what} gave another result than the agent without a recorder")


def _notices(who: Contestant, turns: int) -> str:
    """What a replay of an agent with another message in its history raised; "" when it raised nothing."""
    try:
        who.replay(turns, edited_at=turns // 2)
    except Exception as error:  # noqa: BLE001 - whatever a recorder raises is the finding
        return type(error).__name__
    return ""


def measure(who: Contestant, turns: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Run everything ``rounds`` times in turn, floor A first in each round; seconds, sizes, and what replays did."""
    times = Rounds()
    performed: dict[str, int] = {}

    def fresh(name: str) -> Path:
        (folder / name).mkdir()
        return folder / name

    who.prepare(fresh("warm"))
    who.record(_WARM_UP)
    if who.replays:
        who.replay(_WARM_UP)
    size = 0
    begun = time.monotonic()
    for index in range(rounds):
        if index and time.monotonic() - begun > _ENOUGH:
            break  # a slow one has fewer rounds
        path = folder / f"floor-{index}.jsonl"
        times.time("floor record", lambda path=path: floor.record(path, turns))  # type: ignore[misc]
        times.time("floor replay", lambda path=path: floor.replay(path, turns))  # type: ignore[misc]
        expected = times.time("bare", lambda: who.bare(turns))
        who.prepare(fresh(f"run-{index}"))
        name = "record" if who.records else "made"
        _agrees("recording", times.time(name, lambda: who.record(turns)), expected)
        size = who.size()
        if who.replays:
            before = dict(workload.PERFORMED)
            print("replay", time.time(), file=sys.stderr, flush=True)  # for who gives up waiting
            _agrees("replay", times.time("replay", lambda: who.replay(turns)), expected)
            print("replayed", time.time(), file=sys.stderr, flush=True)
            performed = {kind: count - before[kind] for kind, count in workload.PERFORMED.items()}
    noticed = _notices(who, turns) if who.replays else ""
    growth: float | None = None
    if who.grows:
        who.prepare(fresh("long"))
        who.record(turns * 4)
        growth = who.size() / size
    times.seconds.pop("made", None)
    return {
        "turns": turns,
        "seconds": times.seconds,
        "bytes": size,
        "growth": growth,
        "noticed": noticed,
        "performed": performed,
        "python": platform.python_version(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=sorted(CLASSES))
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        who = contestant(options.name)
        try:
            found = measure(who, options.turns, options.rounds, Path(name))
        finally:
            who.close()
    sys.stdout.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
