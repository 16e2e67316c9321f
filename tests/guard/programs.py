"""Random programs of clock, random, identifier and environment reads among host calls, in async and sync agents.

python -m tests.guard.programs record FOLDER SEED COUNT
python -m tests.guard.programs replay FOLDER SEED COUNT      prints [[verdict, bytes of the output equal], ...]
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import platform
import random
import secrets
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from agentloom import Trace, agent, sync, tool
from agentloom.store import open_store

VARIABLES = ("GUARD_1", "GUARD_2", "GUARD_3")
_weather = Random()


def _load() -> tuple[float, float, float]:
    """As ``os.getloadavg``, changing more often."""
    return float(_weather.randint(0, 2)), 0.0, 0.0


_load.__name__ = _load.__qualname__ = "getloadavg"
os.getloadavg = _load

READS: dict[str, Callable[[Random], Any]] = {
    "time": lambda _: time.time_ns(),
    "monotonic": lambda _: time.monotonic(),
    "processor": lambda _: time.process_time_ns(),
    "local": lambda _: [time.ctime(), list(time.localtime()), time.strftime("%H:%M:%S %z")],
    "now": lambda _: [dt.datetime.now().isoformat(), dt.datetime.now(dt.UTC).isoformat()],  # noqa: DTZ005
    "today": lambda _: [str(dt.date.today()), str(dt.datetime.fromtimestamp(0))],  # noqa: DTZ006, DTZ011
    "random": lambda _: random.random(),
    "choice": lambda plan: random.sample(range(1000), plan.randint(1, 5)),
    "seed": lambda plan: random.seed(plan.randint(0, 9)),
    "generator": lambda _: random.Random().getrandbits(40),
    "system": lambda _: random.SystemRandom().randint(0, 10**6),
    "uuid": lambda _: [str(uuid.uuid4()), str(uuid.uuid1())],
    "bytes": lambda plan: [os.urandom(plan.randint(0, 9)).hex(), secrets.token_urlsafe(4)],
    "get": lambda plan: os.environ.get(plan.choice(VARIABLES)),
    "in": lambda plan: plan.choice(VARIABLES) in os.environ,
    "list": lambda _: sorted(os.environ),
    "load": lambda _: os.getloadavg(),
    "words": lambda _: [sys.argv[1:], len(sys.argv)],
    "word": lambda plan: sys.argv.append(str(plan.randint(0, 9))),
    "zone": lambda _: [list(time.tzname), time.timezone, time.daylight],
    "machine": lambda _: [os.getcwd(), platform.node(), os.cpu_count(), list(os.times())],
    "set": lambda plan: os.environ.__setitem__(plan.choice(VARIABLES), str(plan.randint(0, 99))),
}


@tool(effect="read")
def asked(number: int) -> float:
    return random.random() + number


@tool(effect="read")
async def awaited(number: int) -> float:
    await asyncio.sleep(random.random() / 500)
    return random.random() + number


def _reads(plan: Random, seen: list[Any]) -> None:
    for _ in range(plan.randint(0, 3)):
        name = plan.choice(list(READS))
        seen.append([name, READS[name](plan)])


@agent(guard="strict")
async def loops(seed: str) -> list[Any]:
    async def branch(plan: Random, depth: int) -> list[Any]:
        seen: list[Any] = []
        for _ in range(plan.randint(1, 4)):
            _reads(plan, seen)
            act = plan.randint(0, 5)
            if act == 0:
                await asyncio.sleep(plan.random() / 500)
            elif act == 1 and depth < 2:
                plans = [Random(plan.random()) for _ in range(plan.randint(2, 4))]
                seen.append(await asyncio.gather(*(branch(one, depth + 1) for one in plans)))
            elif act == 2:
                time.sleep(plan.random() / 1000)  # noqa: ASYNC251 - that is tried
            else:
                seen.append(await awaited(plan.randint(0, 9)))
        _reads(plan, seen)
        return seen

    return await branch(Random(seed), 0)


@agent(guard="strict")
def plain(seed: str) -> list[Any]:
    def branch(plan: Random, depth: int) -> list[Any]:
        seen: list[Any] = []
        for _ in range(plan.randint(1, 4)):
            _reads(plan, seen)
            act = plan.randint(0, 5)
            if act == 0:
                time.sleep(plan.random() / 1000)
            elif act == 1 and depth < 2:
                plans = [Random(plan.random()) for _ in range(plan.randint(2, 4))]
                seen.append(sync.parallel(*(lambda one=one: branch(one, depth + 1) for one in plans)))
            else:
                seen.append(asked(plan.randint(0, 9)))
        _reads(plan, seen)
        return seen

    return branch(Random(seed), 0)


def record(folder: Path, seed: int, count: int) -> list[str]:
    """A run for each number, every other one async, some with a seed of their own."""
    store = open_store(folder)
    made: list[str] = []
    for number in range(count):
        chosen = loops if number % 2 else plain
        given = number if number % 3 == 0 else None
        made.append(chosen.run(f"{seed}.{number}", seed=given, store=store).run_id)
    (folder / "runs.json").write_text(json.dumps(made), encoding="utf-8")
    return made


def replay(folder: Path) -> list[str]:
    """The verdict of each, with its report where it diverged."""
    store, found = open_store(folder), []
    for number, run in enumerate(json.loads((folder / "runs.json").read_text(encoding="utf-8"))):
        chosen = loops if number % 2 else plain
        report = Trace.open(run, store).replay(check=False, agent=chosen)
        found.append(report.verdict if report.finding is None else f"program {number}: {report}")
    return found


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        print(json.dumps(replay(Path(sys.argv[2]))))
