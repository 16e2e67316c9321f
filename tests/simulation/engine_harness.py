"""Random programs on the real engine: recorded into a store through the live source, replayed from the trace's bytes.

Live, the host work runs on an outer loop. `run_recorded` takes a virtual one, whose latencies come from a seed, so that
ten thousand programs take minutes; `run_recorded_really` takes the stock loop and real time.

    python -m tests.simulation.engine_harness [COUNT] [FIRST_SEED]
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording as Recorded
from agentloom.replay.replayer import replay
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.boundary import call_async, open_async
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.guard_clock import REAL_TIME
from agentloom.runtime.loop import InnerLoop
from agentloom.runtime.recorder import RunOptions, begin, record_async
from agentloom.store import MemoryStore
from tests.simulation import harness
from tests.simulation.programs import CONSTRUCTS, HostError, Program, chunks_of, perform

LONGEST_MS = 9.0


class EngineHost:
    """Host calls through the boundary. ``rng`` gives the latencies of host work; a replay never draws from it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    async def _wait(self) -> None:
        await asyncio.sleep(self._rng.random() * LONGEST_MS / 1000)

    async def call(self, name: str, arg: int) -> int:
        async def performed(_: Call) -> int:
            await self._wait()
            return perform(name, arg)

        value: Any = await call_async(CallSpec("tool", name, {"arg": arg}), performed)
        return int(value)

    async def stream(self, name: str, arg: int) -> AsyncIterator[int]:
        async def performed(_: Call) -> AsyncIterator[int]:
            chunks, breaks = chunks_of(name, arg)
            for chunk in chunks:
                await self._wait()
                yield chunk
            await self._wait()
            if breaks:
                raise HostError(f"{name} broke off")

        async with open_async(CallSpec("tool", name, {"arg": arg}, stream=True), performed) as chunks:
            async for chunk in chunks:
                yield int(str(chunk))


def agent_for(program: Program, rng: random.Random, logs: list[harness.Log]) -> AgentFunction:
    """The program as an agent that appends what it saw to ``logs``."""

    async def run_program() -> int:
        log = await program.run(EngineHost(rng))
        logs.append(log)
        return len(log)

    return AgentFunction.of(run_program, "program")


async def _record(agent: AgentFunction, store: MemoryStore, clock: Callable[[], int]) -> bytes:
    loop = asyncio.get_running_loop()
    code = {"entry": {"module": "tests", "qualname": "program", "file": None, "kind": "agent"}, "modules": {}}
    recording = begin(agent, (), {}, store=store, options=RunOptions(), outer=loop, code=code, clock=clock)  # type: ignore[arg-type]
    await record_async(recording, agent)
    return store.read(recording.run_id)


def run_recorded(program: Program, rng: random.Random) -> tuple[harness.Log, bytes]:
    """Record with host work on a virtual outer loop: the order of arrivals is the seed's."""
    logs: list[harness.Log] = []
    outer = InnerLoop()
    try:
        data = outer.run_until_complete(
            _record(agent_for(program, rng, logs), MemoryStore(), lambda: outer.vt)
        )
    finally:
        outer.close()
    return logs[0], data


def run_recorded_really(program: Program, rng: random.Random) -> tuple[harness.Log, bytes]:
    """Record with host work on the stock loop, in real time."""
    logs: list[harness.Log] = []
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        data = runner.run(_record(agent_for(program, rng, logs), MemoryStore(), REAL_TIME.monotonic_ns))
    return logs[0], data


def run_replayed(program: Program, data: bytes) -> harness.Log:
    """Replay the trace; the program's log. Raises `harness.Diverged` with the report when the replay diverges."""
    logs: list[harness.Log] = []
    report = replay(Journal.parse(data), agent_for(program, random.Random(0), logs))
    if report.verdict != "identical":
        raise harness.Diverged(str(report))
    return logs[0]


def delivered(data: bytes) -> int:
    """How many deliveries a trace holds."""
    return sum(1 for step in Recorded.from_journal(Journal.parse(data)).steps if step.d is not None)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began = time.monotonic()
    tally = harness.check(range(first, first + count), run_recorded, run_replayed)
    print(
        f"{tally.programs} programs through the engine, seeds from {first}, {time.monotonic() - began:.0f} s"
    )
    print(f"replayed unequal: {len(tally.unequal)} {tally.unequal[:10]}")
    for construct in CONSTRUCTS:
        print(f"  {construct:<20} {tally.share(construct):6.1%}")
    return 1 if tally.unequal or tally.rare() else 0


if __name__ == "__main__":
    sys.exit(main())
