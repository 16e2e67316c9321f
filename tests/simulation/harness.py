"""Run random programs three ways: on a stock loop, recorded on the inner loop, replayed on the inner loop.

`run_recorded` and `run_replayed` here are the smallest engine that can be: they test the loop alone. A test of the real
engine passes its own two functions to `check` instead.

    python -m tests.simulation.harness [COUNT] [FIRST_SEED]
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import hashlib
import logging
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentloom.errors import ControlFlow, LoomError
from agentloom.runtime.loop import InnerLoop
from tests.simulation.programs import (
    CONSTRUCTS,
    HostError,
    Program,
    chunks_of,
    constructs_of,
    generate,
    perform,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

Log = list[Any]
#: One delivery: what it is for (a call id, or "timer"), the virtual time (ns), and the request it answers.
Delivery = tuple[str, int, str]
Recording = list[Delivery]

MS = 1_000_000


class Diverged(Exception):
    """The replay cannot deliver the next recorded event: the program asked for something else."""


@dataclass
class Scope:
    """Where in the tree of tasks some code runs: a path, and counters for its calls and its child tasks."""

    path: str
    calls: int = 0
    tasks: int = 0


_scope: contextvars.ContextVar[Scope] = contextvars.ContextVar("scope")


def enter_task(context: contextvars.Context) -> None:
    """Give a new task its place: its number among the tasks of the creator."""
    parent = _scope.get()
    child = Scope(f"{parent.path}/{parent.tasks}")
    parent.tasks += 1
    context.run(_scope.set, child)


@dataclass
class Pending:
    """A request that waits. ``request`` is what was asked, ``answer`` what comes back, ``due`` when (live only)."""

    request: str
    answer: Callable[[], object]
    future: asyncio.Future[Any]
    due: int


@dataclass
class Engine:
    """The host of a program on an inner loop. ``latency`` gives how long an answer takes (ns)."""

    latency: Callable[[], int]
    loop: InnerLoop = field(default_factory=lambda: InnerLoop(on_new_task=enter_task))
    waiting: dict[str, Pending] = field(default_factory=dict)

    def ask(self, request: str, answer: Callable[[], object]) -> asyncio.Future[Any]:
        scope = _scope.get()
        scope.calls += 1
        future = self.loop.create_future()
        call = f"{scope.path}#{scope.calls}"
        self.waiting[call] = Pending(request, answer, future, self.loop.vt + self.latency())
        future.add_done_callback(lambda _: self.waiting.pop(call, None))
        return future

    async def call(self, name: str, arg: int) -> int:
        value: int = await self.ask(f"{name}({arg})", lambda: perform(name, arg))
        return value

    async def stream(self, name: str, arg: int) -> AsyncIterator[int]:
        chunks, breaks = chunks_of(name, arg)
        for index, chunk in enumerate(chunks):
            yield await self.ask(f"{name}({arg})[{index}]", lambda c=chunk: c)  # type: ignore[misc]
        await self.ask(f"{name}({arg})[end]", lambda: self.end(name, breaks=breaks))

    @staticmethod
    def end(name: str, *, breaks: bool) -> None:
        if breaks:
            raise HostError(f"{name} broke off")

    def deliver(self, delivery: Delivery) -> None:
        call, vt, _ = delivery
        if call == "timer":
            self.loop.fire_timer(vt)
            return
        self.loop.advance(vt)
        pending = self.waiting[call]
        try:
            value = pending.answer()
        except HostError as error:
            pending.future.set_exception(error)
        else:
            pending.future.set_result(value)

    def run(self, program: Program, following: Callable[[], Delivery]) -> Log:
        """Pump, deliver one event, pump again, until the program is done."""

        def start() -> asyncio.Task[Log]:
            _scope.set(Scope("root"))
            return self.loop.create_task(program.run(self))

        task = contextvars.Context().run(start)
        try:
            while True:
                self.loop.pump()
                if task.done():
                    return task.result()
                self.deliver(following())
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End what a diverged replay left behind, then close the loop."""
        while tasks := asyncio.all_tasks(self.loop):
            for task in tasks:
                task.cancel()
            self.loop.pump()
        self.loop.close()


def run_recorded(program: Program, rng: random.Random) -> tuple[Log, Recording]:
    """Run ``program`` with random latencies of 0 to 9 ms; its log and the order of deliveries."""
    recording: Recording = []
    engine = Engine(lambda: rng.randrange(9 * MS))

    def following() -> Delivery:
        due: list[tuple[int, str]] = [(p.due, call) for call, p in engine.waiting.items()]
        timer = engine.loop.next_timer()
        if timer is not None:
            due.append((timer, "timer"))
        vt, call = min(due)
        request = "" if call == "timer" else engine.waiting[call].request
        recording.append((call, max(vt, engine.loop.vt), request))
        return recording[-1]

    return engine.run(program, following), recording


def run_replayed(program: Program, recording: Recording) -> Log:
    """Run ``program`` from ``recording``. Raises `Diverged` when it asks for something else."""
    engine = Engine(lambda: 0)
    events: Iterator[Delivery] = iter(recording)

    def following() -> Delivery:
        event = next(events, None)
        if event is None:
            raise Diverged("the program goes on past the recording")
        call, _, request = event
        if call == "timer":
            if engine.loop.next_timer() is None:
                raise Diverged("a timer was recorded and none is live")
        elif call not in engine.waiting or engine.waiting[call].request != request:
            raise Diverged(f"{call} {request} was recorded and is not waiting")
        return event

    log = engine.run(program, following)
    left = next(events, None)
    if left is not None:
        raise Diverged(f"{left} was recorded, and the program is done")
    return log


class StockHost:
    """The host of a program on a stock loop: each answer takes a random time of up to ``longest_ms``."""

    def __init__(self, rng: random.Random, longest_ms: float) -> None:
        self.rng = rng
        self.longest_ms = longest_ms

    async def wait(self) -> None:
        await asyncio.sleep(self.rng.random() * self.longest_ms / 1000)

    async def call(self, name: str, arg: int) -> int:
        await self.wait()
        return perform(name, arg)

    async def stream(self, name: str, arg: int) -> AsyncIterator[int]:
        chunks, breaks = chunks_of(name, arg)
        for chunk in chunks:
            await self.wait()
            yield chunk
        if breaks:
            raise HostError(f"{name} broke off")


def run_stock(program: Program, rng: random.Random, *, longest_ms: float = 9.0) -> Log:
    """Run ``program`` on the stock loop in real time."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        return runner.run(program.run(StockHost(rng, longest_ms)))


class quiet:  # noqa: N801  # a context manager that reads like a word
    """No collector (a cycle collected at another moment closes generators at another moment), no asyncio log."""

    def __enter__(self) -> None:
        logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
        gc.disable()

    def __exit__(self, *_: object) -> None:
        gc.enable()
        logging.getLogger("asyncio").setLevel(logging.NOTSET)


@dataclass
class Tally:
    """What `check` counted."""

    programs: int = 0
    deliveries: int = 0
    unequal: list[int] = field(default_factory=list)
    swaps: int = 0
    unnoticed: int = 0
    constructs: Counter[str] = field(default_factory=Counter)

    def share(self, construct: str) -> float:
        return self.constructs[construct] / max(1, self.programs)

    def rare(self, least: float = 0.05) -> list[str]:
        """Constructs that fewer than ``least`` of the programs went through."""
        return [c for c in CONSTRUCTS if self.share(c) < least]


def check(
    seeds: range,
    recorded: Callable[[Program, random.Random], tuple[Log, Any]] = run_recorded,
    replayed: Callable[[Program, Any], Log] = run_replayed,
    *,
    swap: bool = False,
) -> Tally:
    """Record and replay the program of each seed. ``swap`` disturbs each recording of this module once, too."""
    tally = Tally()
    with quiet():
        for seed in seeds:
            program = generate(seed)
            rng = random.Random(f"latencies {seed}")
            log, recording = recorded(program, rng)
            tally.programs += 1
            tally.constructs.update(constructs_of(program, log))
            if not equal(replayed, program, recording, log):
                tally.unequal.append(seed)
            if isinstance(recording, list):
                tally.deliveries += len(recording)
            if swap and len(recording) > 1:
                tally.swaps += 1
                tally.unnoticed += swap_unnoticed(program, log, recording, rng)
            if seed % 50 == 0:
                gc.collect()
    return tally


def equal(replayed: Callable[[Program, Any], Log], program: Program, recording: object, log: Log) -> bool:
    """Whether a replay sees what was seen; an engine that says that it diverged means no."""
    try:
        return replayed(program, recording) == log
    except (Diverged, LoomError, ControlFlow):
        return False


def digest(seeds: range) -> str:
    """A digest of what the recorded programs saw: the same in every process with the same Python version."""
    logs = hashlib.sha256()
    with quiet():
        for seed in seeds:
            log, recording = run_recorded(generate(seed), random.Random(f"latencies {seed}"))
            logs.update(repr((log, recording)).encode())
    return logs.hexdigest()


def swap_unnoticed(program: Program, log: Log, recording: Recording, rng: random.Random) -> bool:
    """Whether a replay with two neighbouring deliveries swapped is taken for the recorded run."""
    at = rng.randrange(len(recording) - 1)
    (call_a, vt_a, request_a), (call_b, vt_b, request_b) = recording[at : at + 2]
    disturbed = [*recording]
    disturbed[at : at + 2] = [(call_b, vt_a, request_b), (call_a, vt_b, request_a)]
    return equal(run_replayed, program, disturbed, log)


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    tally = check(range(first, first + count), swap=True)
    print(f"{tally.programs} programs, {tally.deliveries} deliveries, seeds from {first}")
    print(f"replayed unequal: {len(tally.unequal)} {tally.unequal[:10]}")
    print(f"swaps noticed: {tally.swaps - tally.unnoticed} of {tally.swaps}")
    for construct in CONSTRUCTS:
        print(f"  {construct:<20} {tally.share(construct):6.1%}")
    return 1 if tally.unequal or tally.rare() else 0


if __name__ == "__main__":
    sys.exit(main())
