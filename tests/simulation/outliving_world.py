"""A world in memory, owned by one seed: its clock, its disk, its processes, what their tools did, and who answers."""

from __future__ import annotations

import asyncio
import errno
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import agentloom
from agentloom.errors import Interrupted
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.boundary import call_async, open_async
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.guard_start import REAL_CLOCKS
from agentloom.runtime.ledger import TraceLedger
from agentloom.runtime.loop import InnerLoop
from agentloom.runtime.tools import _key_of
from agentloom.runtime.waits import Waits
from agentloom.store import LocalStore
from agentloom.store.appender import LocalAppender
from tests.faults.disk import Dead, Machine, Process

__all__ = ["Branch", "Life", "World", "program_of", "simulated_time"]

START = 1_800_000_000 * 10**9
WORDS = ("one", "two", "three")

#: What one branch of the program does, in turn: the kind of each call and its name, which is its own in the program.
Branch = list[tuple[str, str]]
KINDS = (
    "charge",
    "charge",
    "book",
    "look",
    "ask",
    "asks till",
    "signal",
    "signal",
    "sleep",
    "nap",
    "stream",
    "hurry",
)


def program_of(rng: random.Random) -> list[Branch]:
    """A program of one to three branches that run at once."""
    return [
        [(rng.choice(KINDS), f"{branch}.{number}") for number in range(rng.randint(1, 5))]
        for branch in range(rng.choice((1, 1, 2, 3)))
    ]


class World:
    """``seed`` decides everything. ``power``: power cuts happen, and the store is one that outlives them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.program = program_of(random.Random(f"program {seed}"))
        self.latency = random.Random(f"latency {seed}")
        self.chaos = random.Random(f"chaos {seed}")
        self.people = random.Random(f"people {seed}")
        self.power = self.chaos.random() < 0.5
        self.machine = Machine()
        self.loop = InnerLoop()
        self.effects: Counter[str] = Counter()
        self.bookings: dict[str, set[str]] = {}
        self.answers: dict[str, object] = {}
        """What was accepted as the answer to a question."""
        self.sent: dict[str, list[str]] = {}
        self.acknowledged: list[bytes] = []
        self.lives: list[Life] = []
        self.run: str | None = None
        self.told: list[str] = []
        """What happened, for whoever looks into a failure."""

    def now(self) -> int:
        return START + self.loop.vt

    def tell(self, line: str) -> None:
        self.told.append(f"{self.loop.vt / 1e9:.4f} {line}")

    def store(self, process: Process) -> LocalStore:
        return LocalStore("/sim/store", durability="power" if self.power else "process", system=process)

    def happened(self, name: str) -> bool:
        return self.effects[name] > 0


class Life:
    """One process of the world, from its start to its end or death. It dies at ``dies`` of its operations on the disk,
    and another one fails there, as the seed has it."""

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.process = world.machine.process()
        self.store = world.store(self.process)
        self.operations = 0
        self.appends = 0
        self.dies: int | None = None
        self.dies_after: int | None = None
        """So many appends."""
        self.fails: int | None = None
        self.process.trap = self._trap
        self.end = ""

    @property
    def alive(self) -> bool:
        return self.process.alive

    def kill(self, why: str) -> None:
        self.world.tell(f"process {self.number} dies: {why}")
        self.process.die()

    def _trap(self, name: str, what: object) -> None:
        self.operations += 1
        if self.operations == self.dies and name == "write":
            self.world.tell(f"process {self.number} dies at operation {self.operations}, in a write")
            self.process.tears = self.world.chaos.random()
        elif self.operations == self.dies:
            self.kill(f"at operation {self.operations}, {name}")
        if self.operations == self.fails and name not in (
            "close",
            "unlink",
            "stat",
            "fstat",
            "listdir",
            "read",
        ):
            self.world.tell(f"process {self.number}: {name} fails")
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def appended(self) -> None:
        """An entry is written, and not yet acknowledged."""
        self.appends += 1
        if self.appends == self.dies_after:
            self.kill(f"behind entry {self.appends}")
            raise Dead

    # -- what its tools do

    async def _work(self) -> None:
        await asyncio.sleep(self.world.latency.random() * 0.009)
        if not self.alive:
            raise Dead

    async def call(self, kind: str, name: str) -> str:
        effect = "read" if kind == "look" else "write"
        spec = CallSpec("tool", kind, {"args": {"name": name}}, effect=effect, idempotent=kind == "book")

        async def performed(call: Call) -> str:
            await self._work()
            if kind == "charge":
                self.world.effects[name] += 1
            elif kind == "book":
                self.world.bookings.setdefault(name, set()).add(_key_of(str(self.world.run), call))
            self.world.tell(f"process {self.number} did {kind} {name}")
            await self._work()
            return f"{kind} {name}"

        return str(await call_async(spec, performed))

    async def stream(self, name: str) -> str:
        async def performed(_: Call) -> AsyncIterator[object]:
            for word in WORDS:
                await self._work()
                yield f"{word} {name}"

        for _ in range(99):
            words = open_async(CallSpec("model", "m", {"name": name}, stream=True), performed)
            try:
                return " ".join([str(word) async for word in words])
            except Interrupted:
                continue
        raise RuntimeError("never read to its end")

    async def act(self, kind: str, name: str) -> object:
        if kind in ("charge", "book", "look"):
            return await self.call(kind, name)
        if kind == "ask":
            return await agentloom.ask(name)
        if kind == "asks till":  # with a deadline, and what holds then
            return await agentloom.ask(name, deadline=200, default="nobody")
        if kind == "signal":
            return await agentloom.signal(f"of {name.partition('.')[0]}")
        if kind in ("sleep", "nap"):
            await (agentloom.sleep(3600) if kind == "sleep" else asyncio.sleep(0.005))
            return None
        if kind == "stream":
            return await self.stream(name)
        try:
            return await asyncio.wait_for(self.call("look", name), 0.009)
        except TimeoutError:
            return "late"

    def agent(self) -> AgentFunction:
        """The program, as this process runs it."""

        async def program() -> list[list[Any]]:
            async def branch(steps: Branch) -> list[Any]:
                return [await self.act(*step) for step in steps]

            return list(await asyncio.gather(*map(branch, self.world.program)))

        return AgentFunction.of(program, "program")


@contextmanager
def simulated_time(world: World) -> Iterator[None]:
    """The clocks of agentloom are those of the world, and what its store acknowledges is told it."""
    real = LocalAppender.append

    def append(self: LocalAppender, data: bytes) -> None:
        real(self, data)
        next(life for life in world.lives if life.process is self._system).appended()
        world.acknowledged.append(data)

    clocks = {**REAL_CLOCKS, "time_ns": world.now, "monotonic_ns": lambda: world.loop.vt}
    waits: Any = {**(Waits.__init__.__kwdefaults__ or {}), "clock": world.now}
    ledger: Any = (world.now, None, None)
    facts: Callable[[], dict[str, object]] = dict
    with (
        patch.object(LocalAppender, "append", append),
        patch.object(Waits.__init__, "__kwdefaults__", waits),
        patch.object(TraceLedger.__init__, "__defaults__", ledger),
        patch("agentloom.replay.resuming.REAL_CLOCKS", clocks),
        patch("agentloom.runtime.guard_start._time_ns", world.now),
        patch("agentloom.replay.resuming.environment", facts),
        patch("agentloom.replay.resuming.code_identity", lambda _: {}),
        patch("agentloom.runtime.recorder.environment", facts),
        patch("agentloom.api.answering.time", SimpleNamespace(time_ns=world.now)),
        patch("agentloom.store.lease.time", SimpleNamespace(time_ns=world.now, sleep=lambda _: None)),
    ):
        yield
