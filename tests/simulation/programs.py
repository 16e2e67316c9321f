"""Random concurrent asyncio programs, made from an integer seed, all of whose host calls go through a given host.

A program is a tree of nodes (`Node`); `Program.run` interprets it with plain asyncio and returns a log of everything
that it saw. Every request carries a state that mixes all answers so far, so that what is asked next depends on what
came first: a replay that delivers in another order asks for something else, or logs something else.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine

__all__ = ["CONSTRUCTS", "Host", "HostError", "Program", "chunks_of", "generate", "perform"]


class HostError(Exception):
    """What a failing host call raises."""


class Host(Protocol):
    """How a program reaches the world."""

    def call(self, name: str, arg: int) -> Awaitable[int]:
        """Ask ``name`` with ``arg``; the answer, or `HostError`."""
        ...

    def stream(self, name: str, arg: int) -> AsyncIterator[int]:
        """Ask ``name`` with ``arg``; the answer comes in chunks and may break off with `HostError`."""
        ...


def perform(name: str, arg: int) -> int:
    """The answer to a call. Raises `HostError` for one in three requests to a name that contains ``fail``."""
    value = crc32(f"{name}:{arg}".encode()) % 1000
    if "fail" in name and value % 3 == 0:
        raise HostError(f"{name} said no to {arg}")
    return value


def chunks_of(name: str, arg: int) -> tuple[list[int], bool]:
    """The chunks of a streamed answer, and whether it breaks off after them."""
    value = crc32(f"stream {name}:{arg}".encode())
    return [value % 97 + i for i in range(1 + value % 4)], value % 5 == 0


@dataclass(frozen=True)
class Node:
    """One construct: its kind, its name in the log, its children, a small number and a duration in ms."""

    kind: str
    name: str
    children: tuple[Node, ...] = ()
    number: int = 0
    ms: int = 0


#: kind -> how often the generator picks it, relative to the others.
_WEIGHTS = {
    "call": 5,
    "error": 4,
    "stream": 4,
    "stream_left": 3,
    "sleep": 2,
    "gather": 6,
    "gather_exceptions": 3,
    "taskgroup": 5,
    "race": 5,
    "first_exception": 3,
    "as_completed": 5,
    "timeout": 5,
    "wait_for": 5,
    "cancel": 5,
    "queue": 4,
    "semaphore": 4,
    "condition": 3,
    "barrier": 3,
    "shield": 3,
    "generator": 3,
    "generator_dropped": 3,
    "thread": 3,
    "all_tasks": 3,
}
_LEAVES = ("call", "error", "stream", "stream_left", "sleep", "thread")
CONSTRUCTS = (*_WEIGHTS, "nested_gather", "timed_out", "cleaned_up", "failed")


@dataclass
class _Maker:
    """Makes the tree of one seed. ``budget`` bounds the number of nodes."""

    rng: random.Random
    budget: int = 26
    count: int = 0

    def node(self, depth: int, *, leaf: bool = False) -> Node:
        self.count += 1
        self.budget -= 1
        kinds = _LEAVES if leaf or depth <= 0 or self.budget <= 0 else tuple(_WEIGHTS)
        kind = self.rng.choices(kinds, [_WEIGHTS[k] for k in kinds])[0]
        name = f"{kind}{self.count}"
        number, ms = self.rng.randint(1, 3), self.rng.randint(1, 9)
        if kind in _LEAVES:
            return Node(kind, name, (), number, ms)
        width = {
            "timeout": 1,
            "wait_for": 1,
            "cancel": 1,
            "shield": 1,
            "generator": 1,
            "generator_dropped": 1,
        }
        children = tuple(self.node(depth - 1) for _ in range(width.get(kind, self.rng.randint(2, 3))))
        return Node(kind, name, children, number, ms)


@dataclass
class _Run:
    """One execution: the log, the mixed state, and the interpreter of each kind."""

    host: Host
    log: list[Any] = field(default_factory=list)
    state: int = 1

    def see(self, what: str, *facts: object) -> None:
        """Log something that the program saw, and let it change what is asked next."""
        self.log.append([what, *facts])
        self.state = crc32(repr(self.log[-1]).encode(), self.state) % 100_000

    async def call(self, name: str) -> int:
        value = await self.host.call(name, self.state)
        self.see(name, value)
        return value

    async def node(self, node: Node) -> int:
        """Run one node. Whatever the kind, a cancellation costs a clean-up call, as in real programs."""
        self.log.append(["enter", node.kind, node.name])
        handler: Callable[[Node], Coroutine[Any, Any, int]] = getattr(self, f"do_{node.kind}")
        try:
            value = await handler(node)
        except asyncio.CancelledError:
            self.see("cancelled", node.name)
            if node.number == 1:
                await self.host.call(f"cleanup_{node.name}", self.state)
                self.see("cleaned_up", node.name)
            raise
        except HostError as error:
            self.see("failed", node.name, str(error))
            raise
        self.see("left", node.name, value)
        return value

    def all(self, node: Node) -> list[Coroutine[Any, Any, int]]:
        return [self.node(child) for child in node.children]

    def spawn(self, node: Node) -> list[asyncio.Task[int]]:
        return [asyncio.create_task(self.node(c), name=c.name) for c in node.children]

    def outcome(self, task: asyncio.Future[int]) -> object:
        """How a finished task ended, as plain data."""
        if task.cancelled():
            return "cancelled"
        error = task.exception()
        return task.result() if error is None else f"{type(error).__name__}: {error}"

    async def do_call(self, node: Node) -> int:
        for i in range(node.number):
            await self.call(f"{node.name}.{i}")
        return node.number

    async def do_error(self, node: Node) -> int:
        if node.number > 1:
            return await self.call(f"fail_{node.name}")
        try:
            return await self.call(f"fail_{node.name}")
        except HostError as error:
            self.see("caught", str(error))
            return await self.call(f"instead_{node.name}")

    async def do_stream(self, node: Node) -> int:
        total = 0
        try:
            async for chunk in self.host.stream(node.name, self.state):
                self.see("chunk", node.name, chunk)
                total += chunk
        except HostError as error:
            self.see("broke_off", str(error))
        return total

    async def do_stream_left(self, node: Node) -> int:
        async for chunk in self.host.stream(node.name, self.state):
            self.see("chunk", node.name, chunk)
            if chunk % 2:
                break
        return await self.call(f"after_{node.name}")

    async def do_sleep(self, node: Node) -> int:
        await asyncio.sleep(node.ms / 1000 if node.number > 1 else 0)
        return node.ms

    async def do_thread(self, node: Node) -> int:
        return await asyncio.to_thread(crc32, node.name.encode())

    async def do_gather(self, node: Node) -> int:
        return sum(await asyncio.gather(*self.all(node)))

    async def do_gather_exceptions(self, node: Node) -> int:
        results = await asyncio.gather(*self.all(node), return_exceptions=True)
        self.see("results", node.name, [r if isinstance(r, int) else type(r).__name__ for r in results])
        return await self.call(f"after_{node.name}")

    async def do_taskgroup(self, node: Node) -> int:
        tasks: list[asyncio.Task[int]] = []
        try:
            async with asyncio.TaskGroup() as group:
                tasks += [group.create_task(self.node(c), name=c.name) for c in node.children]
        except* HostError as errors:
            self.see("group", node.name, [str(e) for e in errors.exceptions])
        return sum(value for task in tasks if isinstance(value := self.outcome(task), int))

    async def do_race(self, node: Node) -> int:
        tasks = self.spawn(node)
        try:
            done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.stop(tasks)
            raise
        # The order in which the two sets iterate is part of what the program saw.
        winners = [t.get_name() for t in done]
        self.see("won", winners, [t.get_name() for t in pending])
        if node.number == 1:
            await self.stop(list(pending))
        value = await self.call(f"then_{winners[0]}")
        for task in await self.settled(tasks):
            self.see("raced", task.get_name(), self.outcome(task))
        return value

    async def do_first_exception(self, node: Node) -> int:
        tasks = self.spawn(node)
        try:
            done, pending = await asyncio.wait(
                tasks, return_when=asyncio.FIRST_EXCEPTION, timeout=node.ms / 1000
            )
        except asyncio.CancelledError:
            await self.stop(tasks)
            raise
        self.see("by_then", [t.get_name() for t in done], [t.get_name() for t in pending])
        await self.stop(list(pending))
        for task in tasks:
            self.see("ended", task.get_name(), self.outcome(task))
        return len(done)

    async def stop(self, tasks: list[asyncio.Task[int]]) -> None:
        """Cancel ``tasks`` and wait for their clean-up."""
        for task in tasks:
            task.cancel()
        await self.settled(tasks)

    async def settled(self, tasks: list[asyncio.Task[int]]) -> list[asyncio.Task[int]]:
        await asyncio.gather(*tasks, return_exceptions=True)
        return tasks

    async def do_as_completed(self, node: Node) -> int:
        total = 0
        for following in asyncio.as_completed(self.all(node)):
            try:
                value = await following
            except HostError as error:
                self.see("late", str(error))
                continue
            self.see("next", value)
            total += await self.call(f"on_{node.name}")
        return total

    async def do_timeout(self, node: Node) -> int:
        try:
            async with asyncio.timeout(node.ms / 1000):
                return await self.node(node.children[0])
        except TimeoutError:
            self.see("timed_out", node.name)
            return await self.call(f"late_{node.name}")

    async def do_wait_for(self, node: Node) -> int:
        try:
            return await asyncio.wait_for(self.node(node.children[0]), node.ms / 1000)
        except TimeoutError:
            self.see("timed_out", node.name)
            return -1

    async def do_cancel(self, node: Node) -> int:
        (task,) = self.spawn(node)
        try:
            await self.call(f"before_{node.name}")
        finally:
            task.cancel(f"by {node.name}")
        (task,) = await self.settled([task])
        self.see("victim", self.outcome(task))
        return node.number

    async def do_queue(self, node: Node) -> int:
        queue: asyncio.Queue[str] = asyncio.Queue(maxsize=node.number)
        taken = 0

        async def consume(who: str) -> None:
            nonlocal taken
            while True:
                item = await queue.get()
                try:
                    await self.call(f"{who}_{item}")
                    taken += 1
                finally:
                    queue.task_done()

        async def produce(child: Node) -> None:
            try:
                await self.node(child)
            except HostError:
                await queue.put("broken")
            else:
                await queue.put(child.name)

        consumers = [asyncio.create_task(consume(f"consumer{i}")) for i in range(2)]
        try:
            async with asyncio.TaskGroup() as group:
                for child in node.children:
                    group.create_task(produce(child))
            await queue.join()
        finally:
            for consumer in consumers:
                consumer.cancel()
            await asyncio.gather(*consumers, return_exceptions=True)
        return taken

    async def do_semaphore(self, node: Node) -> int:
        semaphore = asyncio.Semaphore(min(node.number, 2))

        async def limited(child: Node) -> int:
            async with semaphore:
                self.see("inside", child.name)
                return await self.node(child)

        return sum(await asyncio.gather(*(limited(c) for c in node.children)))

    async def do_condition(self, node: Node) -> int:
        condition = asyncio.Condition()
        arrived: list[str] = []

        async def arrive(child: Node) -> None:
            try:
                await self.node(child)
            finally:
                async with condition:
                    arrived.append(child.name)
                    condition.notify_all()

        waiting = asyncio.gather(*(arrive(c) for c in node.children), return_exceptions=True)
        async with condition:
            await condition.wait_for(lambda: len(arrived) >= min(node.number, len(node.children)))
            self.see("arrived", list(arrived))
        value = await self.call(f"on_{arrived[0]}")
        await waiting
        return value

    async def do_barrier(self, node: Node) -> int:
        barrier = asyncio.Barrier(len(node.children))

        async def meet(child: Node) -> int:
            try:
                await self.node(child)
            except HostError:
                self.see("came_broken", child.name)
            place = await barrier.wait()
            self.see("through", child.name, place)
            return place

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(meet(c)) for c in node.children]
        return sum(t.result() for t in tasks)

    async def do_shield(self, node: Node) -> int:
        (inner,) = self.spawn(node)
        try:
            return await asyncio.wait_for(asyncio.shield(inner), node.ms / 1000)
        except TimeoutError:
            self.see("timed_out", node.name)
            return await inner
        except asyncio.CancelledError:
            inner.cancel()
            await asyncio.wait([inner])
            self.see("shielded", self.outcome(inner))
            raise

    async def items(self, node: Node) -> AsyncIterator[int]:
        """An async generator of the program's own, with a clean-up that makes a host call."""
        try:
            yield await self.call(f"first_{node.name}")
            yield await self.node(node.children[0])
            yield await self.call(f"last_{node.name}")
        finally:
            await self.host.call(f"close_{node.name}", self.state)
            self.see("closed", node.name)

    async def do_generator(self, node: Node) -> int:
        return sum([value async for value in self.items(node)])

    async def do_generator_dropped(self, node: Node) -> int:
        async for value in self.items(node):
            self.see("dropped_at", value)
            break  # the loop closes the generator in a task of its own
        return await self.call(f"after_{node.name}")

    async def do_all_tasks(self, node: Node) -> int:
        tasks = self.spawn(node)
        try:
            await self.call(f"during_{node.name}")
            mine = {c.name for c in node.children}
            self.see("alive", [t.get_name() for t in asyncio.all_tasks() if t.get_name() in mine])
        except asyncio.CancelledError:
            await self.stop(tasks)
            raise
        for task in await self.settled(tasks):
            self.see("ended", task.get_name(), self.outcome(task))
        return len(tasks)


@dataclass(frozen=True)
class Program:
    """A random program. ``constructs`` are the kinds that occur in its tree."""

    seed: int
    body: tuple[Node, ...]

    async def run(self, host: Host) -> list[Any]:
        """Interpret the program; the log of all that it saw, as plain JSON data."""
        run = _Run(host)
        for node in self.body:
            try:
                await run.node(node)
            except HostError as error:
                run.see("escaped", str(error))
            except ExceptionGroup as group:
                run.see("escaped_group", len(group.exceptions))
        while others := asyncio.all_tasks() - {asyncio.current_task()}:  # what a failed gather left running
            await asyncio.wait(others)
        return run.log

    def nodes(self) -> list[Node]:
        """Every node of the tree."""
        found = list(self.body)
        for node in found:
            found.extend(node.children)
        return found

    def nests_gather(self) -> bool:
        """Whether a gather holds a gather."""
        return any(
            n.kind.startswith("gather") and any(c.kind.startswith("gather") for c in n.children)
            for n in self.nodes()
        )


def constructs_of(program: Program, log: list[Any]) -> set[str]:
    """What a run of ``program`` really went through."""
    seen = {entry[1] if entry[0] == "enter" else entry[0] for entry in log}
    if program.nests_gather():
        seen.add("nested_gather")
    return seen & set(CONSTRUCTS)


def generate(seed: int) -> Program:
    """The program of ``seed``: the same in every process and Python version."""
    maker = _Maker(random.Random(f"program {seed}"))
    return Program(seed, tuple(maker.node(3) for _ in range(maker.rng.randint(2, 3))))
