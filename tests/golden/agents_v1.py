"""The agents behind the golden traces of format 1. Never edited: their code is part of what must replay for ever.

`python -m tests.golden.record_v1 NAME` wrote each trace, once. A new capability gets a new agent and a new trace.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime as dt
import decimal
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import agentloom
from agentloom import State, Workflow, agent, register, sync, tool


class Backend:
    """Answers model calls; a replay never asks it."""

    def __init__(self) -> None:
        self.asked = 0

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.asked += 1
        said = f"answer {self.asked} to {len(request['messages'])} messages"
        return {
            "content": said,
            "tool_calls": [],
            "finish_reason": "stop",
            "usage": {"input": 7, "output": 3},
        }

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(0.001)
        return self.complete_sync(request)

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        self.asked += 1
        for word in ("one ", "two ", "three"):
            yield {"content": word}

    async def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        for delta in self.stream_sync(request):
            await asyncio.sleep(0.001)
            yield delta


@register
@dataclasses.dataclass
class Order:
    """A user's type that a tool returns."""

    number: int
    total: decimal.Decimal
    lines: tuple[str, ...]


class Refused(Exception):
    """What a tool raises."""


@tool(effect="read")
def lookup(number: int) -> Order:
    if number == 13:
        raise Refused("no such order", number)
    return Order(number, decimal.Decimal("40.10"), ("a", "b"))


@tool(effect="write", idempotent=True)
async def refund(number: int, amount: float = 0.5) -> dict[str, Any]:
    await asyncio.sleep(0.002 / (number + 1))
    return {"ok": True, "number": number, "amount": amount, "nothing": None}


@agent
def golden_sync(number: int) -> dict[str, Any]:
    """Tools, an error, ambient values, a growing history, memory, threads, a stream left early."""
    order = lookup(number)
    try:
        lookup(13)
    except Refused as refused:
        reason = list(refused.args)
    messages = [{"role": "user", "content": "x" * 300}]
    for _ in range(3):
        messages.append(sync.model("golden", messages).message)
    sync.memory.put("last", {"order": number})
    with sync.model("golden", messages, stream=True) as stream:
        first = next(iter(stream))
    both = sync.parallel(lambda: lookup(1).number, lambda: sync.step(sum, [1, 2, 3]))
    sync.note({"why": "golden"})
    return {
        "total": order.total,
        "reason": reason,
        "turns": len(messages),
        "first": first,
        "both": both,
        "at": sync.now(),
        "draw": sync.random(),
        "id": sync.uuid(),
    }


@agent
async def golden_async(numbers: list[int]) -> dict[str, Any]:
    """gather, a race, a task group, as_completed, timeouts, cancellation, a stream, a child agent."""
    gathered = await asyncio.gather(*(refund(number) for number in numbers))
    done, pending = await asyncio.wait(
        [asyncio.ensure_future(refund(number, 1.5)) for number in numbers],
        return_when=asyncio.FIRST_COMPLETED,
    )
    for task in pending:
        task.cancel()
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(refund(number, 2.5)) for number in numbers]
    order = [(await next_one)["number"] for next_one in asyncio.as_completed([refund(n) for n in numbers])]
    timed_out = False
    try:
        async with asyncio.timeout(0.003):
            await agentloom.sleep(60)
    except TimeoutError:
        timed_out = True
    stream = await agentloom.model("golden", "hello", stream=True)
    words = [word async for word in stream]
    return {
        "gathered": len(gathered),
        "won": sorted(task.result()["number"] for task in done),
        "grouped": [task.result()["amount"] for task in tasks],
        "order": order,
        "timed_out": timed_out,
        "words": words,
        "child": await golden_child(numbers[0]),
        "parallel": await agentloom.parallel(*(golden_child(number) for number in numbers)),
    }


@agent
async def golden_child(number: int) -> dt.datetime:
    """A child agent."""
    await refund(number, 9.0)
    return await agentloom.now()


def decide(state: State) -> str:
    """A deterministic step."""
    return "long" if len(state["first"]) > 5 and state.input else "short"


def golden_workflow() -> Workflow:
    """A model step, a deterministic step, a model step."""
    graph = Workflow("golden_workflow")
    graph.step("first", model="golden", temperature=0)
    graph.step("route", fn=decide)
    graph.step("last", model="golden", prompt="{route}: {input}", system="Be brief.")
    return graph


AGENTS: dict[str, Any] = {
    "sync": golden_sync,
    "async": golden_async,
    "workflow": golden_workflow(),
}
INPUTS: dict[str, Any] = {"sync": 812, "async": [3, 1, 2], "workflow": "what about my order?"}
