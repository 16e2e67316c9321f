"""Programs that wait for their clock past every host call: each ends when recorded, and replays alike elsewhere.

``python -m tests.guard.ticking record FOLDER`` runs each in every way in which it can be recorded; ``replay`` replays
what is there. Both print what they found, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import queue
import select
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import agentloom
from agentloom import Trace, agent
from agentloom.runtime.guard_clock import REAL_TIME
from agentloom.store import open_store

WAIT = 0.12
"""Seconds that each program waits, as it means."""
STEP = 0.02


def compute() -> None:
    """Some milliseconds of nothing but computing, by the real clock, whatever the machine."""
    end = REAL_TIME.perf_counter() + STEP
    while REAL_TIME.perf_counter() < end:
        pass


# -- sync -------------------------------------------------------------------------------------------------------------


def busy() -> list[object]:
    """Reads the clock and does nothing else."""
    began = time.perf_counter()
    while time.perf_counter() < began + WAIT:
        pass
    return [time.perf_counter() - began]


def slow() -> list[object]:
    """Computes for long between two readings."""
    began, rounds = time.monotonic(), 0
    while time.monotonic() - began < WAIT:
        compute()
        rounds += 1
    return [time.monotonic() - began, rounds]


def waits() -> list[object]:
    """Waits for a queue, an event, a condition and a pipe."""
    began, found = time.time(), list[object]()
    inbox = queue.Queue[int]()
    condition = threading.Condition()
    reader, writer = os.pipe()
    try:
        while time.time() - began < WAIT:
            try:
                inbox.get(timeout=STEP)
            except queue.Empty:
                found.append("empty")
            found.append(threading.Event().wait(STEP))
            with condition:
                found.append(condition.wait(STEP))
            found.append(len(select.select([reader], [], [], STEP)[0]))
    finally:
        os.close(reader)
        os.close(writer)
    return [time.time() - began, found]


def in_threads() -> list[object]:
    """Threads that poll with a deadline of their own."""
    flag, found = threading.Event(), list[object]()

    def look(number: int) -> None:
        began = time.monotonic()
        while time.monotonic() - began < WAIT and not flag.is_set():
            flag.wait(STEP)
            compute()
        found.append([number, time.monotonic() - began >= WAIT])

    threads = [threading.Thread(target=look, args=(number,)) for number in range(2)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        found += [cast(float, future.result()[0]) > 0 for future in [pool.submit(slow) for _ in range(2)]]
    return [time.monotonic() - began, found]


# -- async ------------------------------------------------------------------------------------------------------------


async def polls() -> list[object]:
    """The loop that asks what time it is between two naps."""
    began, rounds = time.monotonic(), 0
    while time.monotonic() - began < WAIT:
        await asyncio.sleep(STEP)
        rounds += 1
    return [time.monotonic() - began, rounds]


async def spins() -> list[object]:
    """Gives way, and goes by the loop's clock."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    while loop.time() - began < WAIT:  # noqa: ASYNC110 - the very thing
        await asyncio.sleep(0)
    measured = loop.time() - began
    end = loop.time() + WAIT
    while loop.time() < end:
        pass
    return [measured]


async def computes() -> list[object]:
    """A nap after computing takes as long as any; what was computed meanwhile counts towards a timeout."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    compute()
    before = loop.time()
    await asyncio.sleep(STEP)
    napped = loop.time() - before
    try:
        async with asyncio.timeout(STEP / 2):
            compute()
            await asyncio.sleep(WAIT)
        late = False
    except TimeoutError:
        late = True
    return [max(loop.time() - began, WAIT), napped >= STEP, late]


async def beside() -> list[object]:
    """Tasks with clocks of their own."""
    began = time.monotonic()
    done = await asyncio.gather(polls(), computes(), asyncio.to_thread(slow))
    return [time.monotonic() - began, len(done)]


SYNC: tuple[Callable[[], list[object]], ...] = (busy, slow, waits, in_threads)
ASYNC: tuple[Callable[[], Awaitable[list[object]]], ...] = (polls, spins, computes, beside)
ON_STOCK = (polls, computes)
"""Those whose order follows from the code on a stock loop, too."""

# -- ways of recording ------------------------------------------------------------------------------------------------

AGENTS: dict[str, Any] = {
    one.__name__: agent(name=f"agent {one.__name__}", guard="virtual")(one) for one in (*SYNC, *ASYNC)
}


def in_block(name: str, work: Callable[[], list[object]]) -> Any:
    with agentloom.record(name) as run:
        run.output = work()
    return run.output


async def in_block_async(name: str, work: Callable[[], Awaitable[list[object]]]) -> Any:
    async with agentloom.record(name) as run:
        run.output = await work()
    return run.output


async def as_coroutine(name: str, work: Callable[[], Any]) -> Any:
    return await agentloom.record(work(), name=name)


def awaited(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


WORKERS: dict[str, Any] = {one.__name__: agentloom.instrument(one) for one in (*SYNC, *ON_STOCK)}


def ways() -> dict[str, Callable[[], Any]]:
    """Every program in every way, by a name: each gives what it measured."""
    found: dict[str, Callable[[], Any]] = {}
    for one in SYNC:
        name = one.__name__
        found[f"block {name}"] = partial(in_block, f"block {name}", one)
        found[f"worker {name}"] = WORKERS[name]
    for many in ASYNC:
        name = many.__name__
        found[f"coroutine {name}"] = partial(awaited, partial(as_coroutine, f"coroutine {name}", many))
        if many in ON_STOCK:
            found[f"stock {name}"] = partial(awaited, partial(in_block_async, f"stock {name}", many))
            found[f"worker {name}"] = partial(awaited, WORKERS[name])
    return found


def record() -> dict[str, Any]:
    """What each program measured, what the real clock says, how many entries it wrote."""
    found: dict[str, Any] = {}
    for name, way in {**ways(), **{f"agent {name}": one.run for name, one in AGENTS.items()}}.items():
        began = REAL_TIME.monotonic()
        output = way()
        seconds = REAL_TIME.monotonic() - began
        trace = Trace.open("last")
        measured = trace.output if isinstance(output, Trace) else output
        kinds = [entry["kind"] for entry in trace.journal.entries]
        found[name] = [trace.run_id, measured, seconds, len(kinds), kinds.count("tick")]
    return found


def replay(recorded: dict[str, Any]) -> dict[str, Any]:
    """The verdict of each, and what the program measured now."""
    found: dict[str, Any] = {}
    store = open_store()
    for name, way in ways().items():
        with agentloom.replaying(Trace.open(recorded[name][0], store)):
            found[name] = ["identical", way()]  # DivergenceError where it is not
    for name, one in AGENTS.items():
        trace = Trace.open(recorded[f"agent {name}"][0], store)
        found[f"agent {name}"] = [trace.replay(agent=one, check=False).verdict, trace.output]
    return found


if __name__ == "__main__":
    os.environ["AGENTLOOM_STORE"] = os.path.join(sys.argv[2], "store")
    kept = os.path.join(sys.argv[2], "recorded.json")
    if sys.argv[1] == "record":
        with open(kept, "w") as file:
            json.dump(record(), file)
    else:
        with open(kept) as file:
            print(json.dumps(replay(json.load(file))))
