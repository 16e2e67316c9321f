"""Random workflows from a seed, and a reference model that says how a run of one must end.

The model runs the steps one after the other, in the order of their definition (edges go from earlier to later steps),
and knows nothing of tasks: after a way back it starts over at the step that was gone back to.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import agentloom
from agentloom import State, Workflow, goto

KINDS = ("fn", "fn", "async", "tool", "slow", "agent", "each", "workflow", "verify")


class Broken(Exception):
    """What a failing step raises."""


@agentloom.tool(effect="read")
async def slow(text: str, turns: int) -> str:
    """Takes so many turns of the event loop, then answers."""
    for _ in range(turns):
        await asyncio.sleep(0)
    return f"<{text}>"


@agentloom.agent
async def helper(text: str, turns: int) -> str:
    """A child agent that uses a tool twice."""
    one = await slow(text, turns)
    return await slow(one, 1)


@dataclass(frozen=True)
class Node:
    """One step: its kind, the steps before it, what it chooses at which visit, and whether it runs or fails."""

    name: str
    kind: str
    after: tuple[str, ...]
    turns: int
    wanted: bool = True
    fails: bool = False
    choice: str | None = None
    back: tuple[str, int] | None = None  # target, how often


@dataclass
class Program:
    """A workflow and what is expected of it."""

    seed: int
    nodes: list[Node] = field(default_factory=list[Node])

    @property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    def below(self, name: str) -> set[str]:
        """All steps that ``name`` leads to."""
        found: set[str] = set()
        for node in self.nodes:
            if any(earlier == name or earlier in found for earlier in node.after):
                found.add(node.name)
        return found

    def workflow(self) -> Workflow:
        graph = Workflow(f"program{self.seed}")
        for node in self.nodes:
            _add(graph, node, self)
        return graph

    def between(self, source: str, target: str) -> set[str]:
        """The steps of the loop from ``source`` back to ``target``."""
        return {
            name for name in {target, *self.below(target)} if name == source or source in self.below(name)
        }


def _add(graph: Workflow, node: Node, program: Program) -> None:
    options: dict[str, Any] = {"after": node.after}
    if not node.wanted:
        options["when"] = lambda state: False
    if node.back is not None:
        options["loop"] = {node.back[0]: node.back[1]}
    before = [other.name for other in program.nodes if node.name in program.below(other.name)]

    def text(state: State) -> str:
        return result_of(node.name, {name: state[name] for name in before if name in state})

    def decide(state: State) -> Any:
        value = text(state)
        if node.fails:
            raise Broken(node.name)
        if node.back is not None and state.visit <= node.back[1]:
            return goto(node.back[0], value)
        return value if node.choice is None else goto(node.choice, value)

    async def later(state: State) -> Any:
        await slow(node.name, node.turns)
        return decide(state)

    def arguments(state: State) -> dict[str, Any]:
        return {"text": decide(state), "turns": node.turns}

    if node.kind == "fn":
        graph.step(node.name, fn=decide, **options)
    elif node.kind == "async":
        graph.step(node.name, fn=later, **options)
    elif node.kind in ("tool", "slow"):
        graph.step(node.name, tool=slow, args=arguments, **options)
    elif node.kind == "agent":
        graph.step(node.name, agent=helper, args=arguments, **options)
    elif node.kind == "each":
        graph.step(
            node.name,
            tool=slow,
            each=lambda state: [decide(state), "a", "b"],
            limit=2,
            args=lambda state: {"text": state["item"], "turns": (node.turns + state["index"]) % 4},
            **options,
        )
    elif node.kind == "workflow":
        inner = Workflow("inner").step("one", tool=slow, args=lambda state: {"text": state.input, "turns": 1})
        inner.step("two", fn=lambda state: f"<{state.one}>")
        graph.step(node.name, workflow=inner, args=decide, **options)
    else:
        graph.verify(node.name, inputs=[*before], fn=later, **options)


def result_of(name: str, seen: dict[str, object]) -> str:
    """What a step makes of what it sees: a change anywhere before it changes it."""
    return f"{name}:{crc32(repr(sorted(seen.items())).encode()):08x}"


def shown(kind: str, text: str) -> Any:
    """What the kind of a step makes of its text."""
    marked: dict[str, Callable[[], Any]] = {
        "tool": lambda: f"<{text}>",
        "slow": lambda: f"<{text}>",
        "agent": lambda: f"<<{text}>>",
        "workflow": lambda: f"<<{text}>>",
        "each": lambda: [f"<{text}>", "<a>", "<b>"],
    }
    return marked.get(kind, lambda: text)()


def generate(seed: int) -> Program:
    """A program of 2 to 9 steps."""
    rng = random.Random(seed)
    program = Program(seed)
    count = rng.randint(2, 9)
    failing = rng.random() < 0.2
    for number in range(count):
        names = [node.name for node in program.nodes]
        after = tuple(sorted(rng.sample(names, min(len(names), rng.choice((0, 1, 1, 1, 2, 2, 3))))))
        program.nodes.append(
            Node(
                f"s{number}",
                rng.choice(KINDS),
                after,
                rng.randint(0, 5),
                wanted=rng.random() > 0.12,
                fails=failing and rng.random() < 0.3,
            )
        )
    _decide(program, rng)
    return program


def _decide(program: Program, rng: random.Random) -> None:
    """Let some fn steps choose a step below them, and some go back."""
    looping: set[str] = set()
    for number, node in enumerate(program.nodes):
        if node.kind not in ("fn", "async"):
            continue
        below = sorted(program.below(node.name))
        choice = rng.choice(below) if below and rng.random() < 0.5 else None
        above = [other.name for other in program.nodes if node.name in program.below(other.name)]
        back = None
        if rng.random() < 0.35:
            target = rng.choice([*above, node.name])
            if not looping & {target, *program.below(target)}:
                back = (target, rng.randint(1, 2))
                looping |= {target, *program.below(target)}
        program.nodes[number] = Node(
            node.name, node.kind, node.after, node.turns, node.wanted, node.fails, choice, back
        )


@dataclass
class Expected:
    """How a run ends: results of the steps that ran last, how often each ran, and the steps that can fail it."""

    results: dict[str, Any]
    visits: dict[str, int]
    failing: set[str]
    output: object = None


def expected(program: Program) -> Expected:
    """Run the reference model."""
    results: dict[str, Any] = {}
    status: dict[str, str] = {}
    chosen: dict[str, str] = {}
    visits = dict.fromkeys(program.by_name, 0)
    failing: set[str] = set()
    position = 0
    while position < len(program.nodes):
        node = program.nodes[position]
        position += 1
        if node.name in status:
            continue
        if any(status[name] == "failed" for name in node.after):
            status[node.name] = "failed"  # the run ends before
            continue
        edges = [status[name] != "dead" and chosen.get(name, node.name) == node.name for name in node.after]
        if node.after and node.name not in chosen.values() and not any(edges):
            status[node.name] = "dead"
            continue
        visits[node.name] += 1
        if not node.wanted:
            status[node.name] = "skipped"
            continue
        before = [other.name for other in program.nodes if node.name in program.below(other.name)]
        text = result_of(node.name, {name: results[name] for name in before if status.get(name) == "ran"})
        if node.fails:
            failing.add(node.name)
            status[node.name] = "failed"
            continue
        results[node.name] = shown(node.kind, text)
        status[node.name] = "ran"
        if node.back is not None and visits[node.name] <= node.back[1]:
            again = {node.back[0], *program.below(node.back[0])}
            for name in again:
                status.pop(name, None)
                chosen.pop(name, None)
            position = min(number for number, other in enumerate(program.nodes) if other.name in again)
        elif node.choice is not None and node.kind in ("fn", "async"):
            chosen[node.name] = node.choice
    ran = [name for name in program.by_name if status.get(name) == "ran"]
    last = {
        name: results[name] for name in ran if not any(status[low] == "ran" for low in program.below(name))
    }
    output = next(iter(last.values())) if len(last) == 1 else last or None
    return Expected({name: results[name] for name in ran}, visits, failing, output)
