"""Whole runs for the store fault loop: a sync agent, an async one, a workflow and a script.

All are careless: they go on after any ``Exception``. Each tells through ``TELL`` what it did and what it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import agentloom
from agentloom import agent, sync, tool
from agentloom.api.workflow import State, Workflow
from agentloom.runtime.boundary import open_async
from agentloom.runtime.calls import Call, CallSpec

__all__ = ["PROGRAMS", "SCRIPT", "TELL", "got"]

TELL: list[Callable[[str], None]] = []
"""Who is told, the last of them; a line each."""


def tell(line: str) -> None:
    if TELL:
        TELL[-1](line)


def got(value: object) -> None:
    """The agent's code has this value in its hands."""
    tell(f"got {value}")


@tool
def effect(name: str) -> str:
    tell(f"did {name}")
    if name.startswith("bad"):
        raise ValueError(f"no {name}")
    return f"{name} done"


@tool
async def aeffect(name: str) -> str:
    tell(f"did {name}")
    await asyncio.sleep(0)
    return f"{name} done"


def again(work: Callable[[], object], times: int = 1000) -> None:
    """Tries until it works, as many agents do; a thousand times is for ever here."""
    for _ in range(times):
        try:
            got(work())
        except ValueError:
            tell("caught")
            return
        except Exception:  # noqa: BLE001 - what careless agents do
            continue
        return
    tell("spun")


@agent
def child(name: str) -> str:
    again(lambda: effect(f"{name}1"))
    return f"{name} child"


@agent
def careless() -> str:
    again(lambda: effect("one"))
    again(lambda: effect("bad two"))
    again(lambda: child("three"))
    again(lambda: sync.parallel(lambda: effect("left"), lambda: effect("right"))[0])
    again(lambda: sync.note("noted"))
    again(lambda: effect("last"))
    return "fine"


async def chunks(_: Call) -> AsyncIterator[object]:
    tell("did stream")
    for number in range(3):
        yield f"chunk{number} done"


@agent
async def careless_async() -> str:
    async def again_async(name: str) -> None:
        for _ in range(1000):
            try:
                got(await aeffect(name))
            except Exception:  # noqa: BLE001 - what careless agents do
                continue
            return
        tell("spun")

    async def reads(count: int) -> None:
        try:
            async with open_async(CallSpec("model", "s", {}, stream=True), chunks) as stream:
                for _ in range(count):
                    got(await anext(stream))
        except StopAsyncIteration:
            pass

    await asyncio.gather(again_async("a"), again_async("b"), reads(9), return_exceptions=True)
    try:
        await asyncio.wait_for(agentloom.sleep(60), 0.001)
    except TimeoutError:
        tell("late")
    await asyncio.gather(reads(2), again_async("c"))
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(again_async("d"))
            group.create_task(again_async("e"))
    except ExceptionGroup:
        tell("caught")
    await again_async("last")
    return "fine"


def _workflow() -> Workflow:
    graph = Workflow("careful")
    graph.step("first", tool=effect, args={"name": "first"})

    @graph.step("between", after="first")
    def between(state: State) -> str:
        got(state["first"])
        return "between done"

    graph.step("left", tool=effect, args={"name": "left"}, after="between")
    graph.step("right", tool=effect, args={"name": "right"}, after="between")
    graph.step("last", tool=effect, args={"name": "last"}, after=["left", "right"])
    return graph


PROGRAMS: dict[str, Any] = {"sync": careless, "async": careless_async, "workflow": _workflow()}

SCRIPT = """
import sys
from agentloom import sync, tool
from tests.faults.programs import again, effect

again(lambda: effect("one"))
print("printed")
again(lambda: sync.now() and "")
again(lambda: effect("bad two"))
again(lambda: effect("last"))
sys.exit(0)
"""
