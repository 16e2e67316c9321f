"""Random programs of what agents are made of, sync and async: tools that fail, streams, histories that grow and are
edited in place, retries, child runs, ambient values, values that are changed after they were sent, threads.

A program is a tree made from a seed. The same tree runs as a sync agent and as an async one.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import agentloom
from agentloom import Retry, sync
from agentloom.runtime.agents import AgentFunction, call_child, call_child_async
from agentloom.runtime.boundary import call_async, call_inline, open_async, open_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.scope import require

__all__ = ["KINDS", "Mixed", "Node", "generate"]

KINDS = (
    "call", "fail", "model", "edit", "compact", "stream", "leave", "ambient", "note", "step", "child", "retry",
    "parallel", "catch", "mutate", "draw", "abandon",
)  # fmt: skip
_INNER = ("child", "retry", "parallel", "catch")


class Refused(Exception):
    """What a tool raises."""


@dataclass(frozen=True)
class Node:
    """One construct, its name, its children and a small number."""

    kind: str
    name: str
    number: int
    children: tuple[Node, ...] = ()


def generate(seed: int, *, size: int = 14) -> tuple[Node, ...]:
    """The program of ``seed``."""
    rng = random.Random(f"mixed {seed}")
    count = 0

    def node(depth: int) -> Node:
        nonlocal count
        count += 1
        kinds = [kind for kind in KINDS if kind not in _INNER] if depth <= 0 or count > size else list(KINDS)
        kind = rng.choice([*kinds, *(_INNER if depth > 0 and count <= size else ())])
        width = {"child": 2, "retry": 1, "catch": 2}.get(kind, rng.randint(2, 3)) if kind in _INNER else 0
        return Node(kind, f"{kind}{count}", rng.randint(1, 4), tuple(node(depth - 1) for _ in range(width)))

    return tuple(node(3) for _ in range(rng.randint(3, 5)))


@dataclass
class Mixed:
    """One run of a program: what it saw, and a state that mixes everything seen into what is asked next.

    ``rng`` gives the time that host work takes; a replay never performs any.
    """

    nodes: tuple[Node, ...]
    rng: random.Random
    log: list[Any] = field(default_factory=list)
    state: int = 1
    history: list[Any] = field(default_factory=list)
    performed: int = 0
    kept: dict[str, Any] = field(default_factory=lambda: {"value": 7, "list": [7], "asked": []})
    """What a tool keeps and gives out again and again: whoever changes what it got must not change this."""

    def see(self, *facts: object) -> None:
        self.log.append(list(facts))
        self.state = crc32(repr(facts).encode(), self.state) % 100_000

    def spec(self, node: Node, **more: Any) -> CallSpec:
        return CallSpec("tool", node.name, {"arg": self.state, "who": node.name}, **more)

    def answer(self, node: Node) -> dict[str, Any]:
        """What the world answers to a request: the state is part of it, so that the order of things shows."""
        self.performed += 1
        value = crc32(f"{node.name} {self.performed}".encode()) % 1000
        if node.kind in ("fail", "retry") and value % 2:
            raise Refused(f"{node.name} said no: {value}")
        return {"value": value, "list": [value, {"of": node.name}], "text": "x" * (value % 300)}

    streams: list[Any] = field(default_factory=list)
    """Streams that the program began to read and forgot about."""

    def from_cache(self, call: Call) -> dict[str, Any]:
        given: Any = call.tree
        self.kept["asked"].append(len(given["given"]))
        return self.kept

    def chunk_values(self, node: Node) -> list[dict[str, Any]]:
        self.performed += 1
        return [{"chunk": number, "of": node.name} for number in range(node.number)]

    def said(self, node: Node) -> CallSpec:
        """A model call with the whole history so far."""
        self.history.append({"role": "user", "content": f"{node.name} {self.state} " + "word " * 30})
        request = {"model": "m", "messages": self.history, "temperature": 0}
        return CallSpec("model", "m", request, series="model:m")

    def heard(self, answer: Any) -> None:
        self.see("heard", answer["value"])
        self.history.append({"role": "assistant", "content": answer})

    def edited(self) -> None:
        """As agents do: the first message is changed in place, the list stays the same object."""
        if self.history:
            self.history[0]["content"] = f"edited at {self.state}"

    def compacted(self, node: Node) -> None:
        del self.history[: max(0, len(self.history) - node.number)]

    # -- sync ----------------------------------------------------------------------------------------------------

    def run(self) -> list[Any]:
        for node in self.nodes:
            self.guarded(node)
        return self.log

    def guarded(self, node: Node) -> None:
        try:
            self.do(node)
        except Refused as error:
            self.see("escaped", str(error))

    def wait(self) -> None:
        time.sleep(self.rng.random() / 2000)

    def ask(self, node: Node, spec: CallSpec | None = None) -> Any:
        def perform(_: Call) -> object:
            self.wait()
            return self.answer(node)

        return call_inline(spec or self.spec(node), perform)

    def do(self, node: Node) -> None:
        kind = node.kind
        if kind in ("call", "fail"):
            self.see(node.name, self.ask(node)["value"])
        elif kind == "mutate":
            sent: list[Any] = [self.state, {"deep": [1]}]
            got: Any = call_inline(CallSpec("tool", node.name, {"given": sent}), self.from_cache)
            sent[1]["deep"].append("changed afterwards")
            got["list"].append(self.state)
            self.see(
                "mutated",
                sent,
                got["list"],
                self.ask(node, CallSpec("tool", node.name, {"given": [sent, got]}))["value"],
            )
        elif kind == "model":
            self.heard(self.ask(node, self.said(node)))
        elif kind == "edit":
            self.edited()
            self.heard(self.ask(node, self.said(node)))
        elif kind == "compact":
            self.compacted(node)
        elif kind in ("stream", "leave", "abandon"):
            self.read(node)
        elif kind == "ambient":
            self.see("ambient", str(sync.now()), str(sync.uuid()), sync.random(), sync.env("HOME", "none"))
        elif kind == "draw":
            self.see("draw", sync.random())
        elif kind == "note":
            sync.note({"state": self.state})
        elif kind == "step":
            self.see("step", sync.step(lambda: self.answer(node)["value"]))
        elif kind == "child":
            self.child(node)
        elif kind == "retry":
            self.retry(node)
        elif kind == "parallel":
            sync.parallel(*(lambda child=child: self.guarded(child) for child in node.children))
            self.see("joined", node.name)
        else:
            for child in node.children:
                self.guarded(child)

    def read(self, node: Node) -> None:
        def perform(_: Call) -> Iterator[object]:
            for chunk in self.chunk_values(node):
                self.wait()
                yield chunk
            if node.number == 3:
                raise Refused(f"{node.name} broke off")

        if node.kind == "abandon":
            self.streams.append(open_inline(self.spec(node, stream=True), perform))
            self.see("chunk", next(self.streams[-1]))
            return
        with open_inline(self.spec(node, stream=True), perform) as chunks:
            for chunk in chunks:
                self.see("chunk", chunk)
                if node.kind == "leave":
                    self.see("left")
                    break

    def child(self, node: Node) -> None:
        def below(name: str) -> dict[str, Any]:
            for child in node.children:
                self.do(child)
            return {"done": name, "state": self.state}

        self.see("child", call_child(require("child"), AgentFunction.of(below, node.name), (node.name,), {}))

    def retry(self, node: Node) -> None:
        def once() -> int:
            value: int = self.ask(node)["value"]
            for child in node.children:
                self.do(child)
            return value

        self.see("retried", sync.retrying(Retry(3, delay=0.0001, on=Refused), once))

    # -- async ---------------------------------------------------------------------------------------------------

    async def arun(self) -> list[Any]:
        for node in self.nodes:
            await self.aguarded(node)
        return self.log

    async def aguarded(self, node: Node) -> None:
        try:
            await self.ado(node)
        except Refused as error:
            self.see("escaped", str(error))

    async def await_(self) -> None:
        await asyncio.sleep(self.rng.random() / 1000)

    async def aask(self, node: Node, spec: CallSpec | None = None, *, kept: bool = False) -> Any:
        async def perform(call: Call) -> object:
            await self.await_()
            return self.from_cache(call) if kept else self.answer(node)

        try:
            return await call_async(spec or self.spec(node), perform)
        except asyncio.CancelledError:
            self.see("cancelled")
            raise

    async def ado(self, node: Node) -> None:
        kind = node.kind
        if kind in ("call", "fail"):
            self.see(node.name, (await self.aask(node))["value"])
        elif kind == "mutate":
            sent: list[Any] = [self.state, {"deep": [1]}]

            got = await self.aask(node, CallSpec("tool", node.name, {"given": sent}), kept=True)
            sent[1]["deep"].append("changed afterwards")
            got["list"].append(self.state)
            more = await self.aask(node, CallSpec("tool", node.name, {"given": [sent, got]}))
            self.see("mutated", sent, got["list"], more["value"])
        elif kind in ("model", "edit"):
            if kind == "edit":
                self.edited()
            self.heard(await self.aask(node, self.said(node)))
        elif kind == "compact":
            self.compacted(node)
        elif kind in ("stream", "leave", "abandon"):
            await self.aread(node)
        elif kind == "ambient":
            self.see(
                "ambient", str(await agentloom.now()), str(await agentloom.uuid()), await agentloom.random()
            )
        elif kind == "draw":
            self.see("draw", await agentloom.random())
        elif kind == "note":
            await agentloom.note({"state": self.state})
        elif kind == "step":
            self.see("step", (await agentloom.step(lambda: self.answer(node)))["value"])
        elif kind == "child":
            await self.achild(node)
        elif kind == "retry":
            await self.aretry(node)
        elif kind == "parallel":
            await self.aparallel(node)
        else:
            for child in node.children:
                await self.aguarded(child)

    async def aparallel(self, node: Node) -> None:
        """Side by side; with an odd number, whoever is not done in time is cancelled."""
        tasks = [asyncio.create_task(self.aguarded(child)) for child in node.children]
        done, late = await asyncio.wait(tasks, timeout=0.0008 if node.number % 2 else None)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        self.see("joined", node.name, len(done), len(late))

    async def aread(self, node: Node) -> None:
        async def perform(_: Call) -> AsyncIterator[object]:
            for chunk in self.chunk_values(node):
                await self.await_()
                yield chunk
            if node.number == 3:
                raise Refused(f"{node.name} broke off")

        if node.kind == "abandon":
            self.streams.append(open_async(self.spec(node, stream=True), perform))
            self.see("chunk", await anext(self.streams[-1]))
            return
        async with open_async(self.spec(node, stream=True), perform) as chunks:
            async for chunk in chunks:
                self.see("chunk", chunk)
                if node.kind == "leave":
                    self.see("left")
                    break

    async def achild(self, node: Node) -> None:
        async def below(name: str) -> dict[str, Any]:
            for child in node.children:
                await self.ado(child)
            return {"done": name, "state": self.state}

        self.see("child", await call_child_async(AgentFunction.of(below, node.name), (node.name,), {}))

    async def aretry(self, node: Node) -> None:
        async def once() -> int:
            value: int = (await self.aask(node))["value"]
            for child in node.children:
                await self.ado(child)
            return value

        self.see("retried", await agentloom.retrying(Retry(3, delay=0.0001, on=Refused), once))


def as_agent(seed: int, rng: random.Random, logs: list[list[Any]], *, sync: bool) -> AgentFunction:
    """The program of ``seed`` as an agent that puts what it saw into ``logs``."""
    made: Callable[..., Any]
    if sync:

        def run_program() -> dict[str, Any]:
            logs.append(Mixed(generate(seed), rng).run())
            return {"log": logs[-1]}

        made = run_program
    else:

        async def arun_program() -> dict[str, Any]:
            logs.append(await Mixed(generate(seed), rng).arun())
            return {"log": logs[-1]}

        made = arun_program
    return AgentFunction.of(made, "mixed")
