"""Random programs of threads: started and joined, in pools, with locks, queues, events, conditions, barriers, timers
and waits that end late; sync agents, and async ones that hand work to threads.

A program is a tree made from a seed. Everything that its threads see is mixed into what they ask next, so that the
order of things shows in the requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import random
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from agentloom.errors import LoomError
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.boundary import call_inline
from agentloom.runtime.calls import Call, CallSpec

__all__ = ["KINDS", "Node", "as_agent", "generate"]

LEAVES = ("call", "call", "call", "fail", "ambient", "sleep", "late")
INNER = (
    "lock", "again", "threads", "race", "pool", "map", "first", "queue", "simple", "condition", "semaphore", "barrier",
    "timer", "copied", "shared", "late result", "nested", "left",
)  # fmt: skip
KINDS = tuple(dict.fromkeys(LEAVES + INNER))
SHARED = ThreadPoolExecutor(3)
"""A pool of the module, older than the runs and there after them."""
WAIT = 5.0


class Refused(Exception):
    """What a tool raises."""


@dataclass(frozen=True)
class Node:
    """One construct, its name, a small number, and the bodies of its threads."""

    kind: str
    name: str
    number: int
    bodies: tuple[tuple[Node, ...], ...] = ()


def generate(seed: int, *, size: int = 16) -> tuple[Node, ...]:
    """The program of ``seed``."""
    rng = random.Random(f"threads {seed}")
    count = 0

    def node(depth: int) -> Node:
        nonlocal count
        count += 1
        kind = rng.choice(INNER) if depth > 0 and count < size else rng.choice(LEAVES)
        width = 0 if kind in LEAVES else rng.randint(2, 3)
        inside = 0 if kind in ("lock", "again") else depth - 1
        bodies = tuple(tuple(node(inside) for _ in range(rng.randint(1, 2))) for _ in range(width))
        return Node(kind, f"{kind}{count}", rng.randint(1, 3), bodies)

    return tuple(node(2) for _ in range(rng.randint(2, 4)))


@dataclass
class Threads:
    """One run of a program. ``rng`` gives the time that host work takes; a replay performs none."""

    nodes: tuple[Node, ...]
    rng: random.Random
    log: list[Any] = field(default_factory=list)
    state: int = 1
    locks: list[Any] = field(default_factory=lambda: [threading.Lock(), threading.Lock()])
    again: Any = field(default_factory=threading.RLock)

    def see(self, *facts: object) -> None:
        self.log.append(list(facts))
        self.state = crc32(repr(facts).encode(), self.state) % 100_000

    def ask(self, node: Node) -> int:
        fails = node.kind == "fail"

        def perform(call: Call) -> int:
            time.sleep(self.rng.random() / 2000)
            value = crc32(f"{node.name} {call.tree['arg']}".encode()) % 1000
            if fails and value % 2:
                raise Refused(f"{node.name} said no: {value}")
            return value

        value: Any = call_inline(CallSpec("tool", node.name, {"arg": self.state}), perform)
        self.see(node.name, value)
        return int(value)

    def run(self) -> list[Any]:
        self.body(self.nodes)
        return self.log

    def body(self, nodes: tuple[Node, ...]) -> int:
        for node in nodes:
            try:
                self.do(node)
            except Refused as error:
                self.see("caught", str(error))
        return self.state

    def do(self, node: Node) -> None:
        kind = node.kind
        if kind in ("call", "fail"):
            self.ask(node)
        elif kind == "ambient":
            self.see("ambient", time.time(), time.monotonic(), random.random(), str(uuid.uuid4()))
        elif kind == "sleep":
            time.sleep(node.number / 10_000)
            self.see("slept")
        elif kind == "late":
            self.see("waited", threading.Event().wait(node.number / 5000))
        else:
            getattr(self, "do_" + kind.replace(" ", "_"))(node)

    # -- locks -----------------------------------------------------------------------------------------------------

    def do_lock(self, node: Node) -> None:
        lock = self.locks[node.number % 2]
        with lock:
            self.body(node.bodies[0])
        if lock.acquire(timeout=node.number / 5000):
            self.see("taken", node.name)
            lock.release()
        else:
            self.see("not taken", node.name)

    def do_again(self, node: Node) -> None:
        with self.again, self.again:
            self.body(node.bodies[0])

    def do_semaphore(self, node: Node) -> None:
        gate = threading.BoundedSemaphore(node.number)

        def one(body: tuple[Node, ...]) -> None:
            with gate:
                self.body(body)

        self.side_by_side(node, one)

    # -- threads ---------------------------------------------------------------------------------------------------

    def side_by_side(self, node: Node, work: Callable[[tuple[Node, ...]], object]) -> None:
        threads = [threading.Thread(target=work, args=(body,)) for body in node.bodies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.see("joined", node.name, [thread.is_alive() for thread in threads], threads[0].name)

    def do_threads(self, node: Node) -> None:
        self.side_by_side(node, self.body)

    def do_race(self, node: Node) -> None:
        over, won = threading.Event(), list[str]()

        def one(body: tuple[Node, ...]) -> None:
            self.body(body)
            won.append(threading.current_thread().name)
            over.set()

        threads = [threading.Thread(target=one, args=(body,)) for body in node.bodies]
        for thread in threads:
            thread.start()
        over.wait()
        self.see("winner", won[0])
        for thread in threads:
            thread.join(0.0004)
            self.see("joined", thread.is_alive())
        for thread in threads:
            thread.join()

    def do_left(self, node: Node) -> None:
        """A thread that nobody joins, daemon or not."""
        threading.Thread(target=self.on_its_own, args=(node.bodies[0],), daemon=node.number == 1).start()
        self.body(node.bodies[1])

    def on_its_own(self, body: tuple[Node, ...]) -> None:
        with contextlib.suppress(
            LoomError
        ):  # a daemon is let go at the end of the run, and may ask nothing then
            self.body(body)

    def do_timer(self, node: Node) -> None:
        timers = [
            threading.Timer((number + 1) / 3000, self.body, (body,))
            for number, body in enumerate(node.bodies)
        ]
        for timer in timers:
            timer.start()
        if node.number == 1:
            timers[-1].cancel()
        for timer in timers:
            timer.join()

    def do_barrier(self, node: Node) -> None:
        barrier = threading.Barrier(len(node.bodies))

        def one(body: tuple[Node, ...]) -> None:
            self.body(body)
            self.see("met", barrier.wait())

        self.side_by_side(node, one)

    def do_condition(self, node: Node) -> None:
        full, ready = threading.Condition(), list[int]()

        def one(body: tuple[Node, ...]) -> None:
            state = self.body(body)
            with full:
                ready.append(state)
                full.notify_all()

        threads = [threading.Thread(target=one, args=(body,)) for body in node.bodies]
        for thread in threads:
            thread.start()
        with full:
            while not full.wait_for(lambda: len(ready) == len(node.bodies), 0.0005):
                self.see("not yet", len(ready))
        self.see("ready", *ready)
        for thread in threads:
            thread.join()

    # -- queues ----------------------------------------------------------------------------------------------------

    def do_queue(self, node: Node) -> None:
        self.through(node, queue.Queue(1), queue.Empty)

    def do_simple(self, node: Node) -> None:
        self.through(node, queue.SimpleQueue(), queue.Empty)

    def through(self, node: Node, line: Any, empty: type[Exception]) -> None:
        threads = [
            threading.Thread(target=lambda body=body: line.put(self.body(body))) for body in node.bodies
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            try:
                self.see("got", line.get(timeout=node.number / 4000))
            except empty:
                self.see("empty")
                self.see("got", line.get())
        for thread in threads:
            thread.join()

    # -- pools -----------------------------------------------------------------------------------------------------

    def taken(self, futures: list[Future[Any]]) -> None:
        for future in as_completed(futures):
            self.see("done", futures.index(future), future.result())

    def do_pool(self, node: Node) -> None:
        with ThreadPoolExecutor(node.number) as pool:
            self.taken([pool.submit(self.body, body) for body in node.bodies])

    def do_map(self, node: Node) -> None:
        with ThreadPoolExecutor(node.number) as pool:
            for value in pool.map(self.body, node.bodies):
                self.see("mapped", value)

    def do_copied(self, node: Node) -> None:
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(contextvars.copy_context().run, self.body, body) for body in node.bodies]
        self.taken(futures)

    def do_first(self, node: Node) -> None:
        pool = ThreadPoolExecutor(node.number)
        futures = [pool.submit(self.body, body) for body in node.bodies]
        done, left = wait(futures, return_when=FIRST_COMPLETED)
        self.see("first", sorted(futures.index(one) for one in done))
        self.see("cancelled", [one.cancel() for one in sorted(left, key=futures.index)])
        pool.shutdown(cancel_futures=True)
        self.see("ended", [one.cancelled() for one in futures])

    def do_shared(self, node: Node) -> None:
        self.taken([SHARED.submit(self.leaves, body) for body in node.bodies])

    def leaves(self, body: tuple[Node, ...]) -> int:
        """Work that needs no other thread of the pool that it is in."""
        for node in body:
            if node.kind in LEAVES:
                self.body((node,))
        return self.state

    def do_nested(self, node: Node) -> None:
        with ThreadPoolExecutor(2) as pool:

            def outer(body: tuple[Node, ...]) -> int:
                with ThreadPoolExecutor(1) as inner:
                    return inner.submit(self.body, body).result()

            self.taken([pool.submit(outer, body) for body in node.bodies])

    def do_late_result(self, node: Node) -> None:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(self.body, node.bodies[0])
            try:
                self.see("in time", future.result(timeout=node.number / 4000))
            except TimeoutError:
                self.see("late", future.result())

    # -- async -----------------------------------------------------------------------------------------------------

    async def arun(self) -> list[Any]:
        await asyncio.gather(*(self.anode(node) for node in self.nodes))
        return self.log

    async def anode(self, node: Node) -> None:
        loop = asyncio.get_running_loop()
        if node.number == 1:
            self.see("thread", await asyncio.to_thread(self.body, (node,)))
        elif node.number == 2:
            with ThreadPoolExecutor(1) as pool:
                self.see("executor", await loop.run_in_executor(pool, self.body, (node,)))
        else:
            self.see("back", await asyncio.to_thread(self.from_thread, loop, node))
        await asyncio.sleep(node.number / 5000)
        self.see("slept", node.name)

    def from_thread(self, loop: asyncio.AbstractEventLoop, node: Node) -> int:
        async def asks() -> int:
            await asyncio.sleep(0.0002)
            self.see("in the loop", node.name)
            return self.state

        state = asyncio.run_coroutine_threadsafe(asks(), loop).result()
        return self.body((node,)) + state


def as_agent(seed: int, rng: random.Random, logs: list[list[Any]], *, sync: bool) -> AgentFunction:
    """The program of ``seed`` as an agent that puts what it saw into ``logs``."""
    made: Callable[..., Any]
    if sync:

        def run_program() -> dict[str, Any]:
            logs.append([*Threads(generate(seed), rng).run()])
            return {"log": logs[-1]}

        made = run_program
    else:

        async def arun_program() -> dict[str, Any]:
            logs.append([*await Threads(generate(seed), rng).arun()])
            return {"log": logs[-1]}

        made = arun_program
    return AgentFunction.of(made, "threads")
