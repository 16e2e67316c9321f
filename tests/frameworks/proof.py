"""Records one call of a program and replays it in the same process, where nothing that has an effect may run again."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import agentloom
from agentloom import Trace
from agentloom.store import open_store

__all__ = ["both", "kinds", "recorded", "replayed"]


def recorded(make: Callable[[], Any], store: Any = None, **options: Any) -> tuple[Any, Trace]:
    """The result of ``make()`` (a coroutine or a plain call; an exception is the result, too), and the trace."""
    store = store or open_store(":memory:")

    async def run() -> Any:
        return await agentloom.record(make(), name="agent", store=store, **options)

    def call() -> Any:
        with agentloom.record("agent", store=store, **options) as block:
            block.output = make()
        return block.output

    try:
        value: Any = asyncio.run(run()) if inspect.iscoroutinefunction(make) else call()
    except Exception as error:  # noqa: BLE001 - the outcome that is compared
        value = error
    return value, Trace(store.read(store.runs()[0].run))


def replayed(make: Callable[[], Any], trace: Trace) -> Any:
    """What the program has on replay, which must be identical."""
    given: list[Any] = []

    async def awaited() -> Any:
        given.append(await make())
        return given[0]

    def called() -> Any:
        given.append(make())
        return given[0]

    report = trace.replay(call=awaited if inspect.iscoroutinefunction(make) else called, check=False)
    assert report.verdict == "identical", str(report)
    return given[0] if given else None


def both(make: Callable[[], Any], ran: list[Any], **options: Any) -> tuple[Any, Trace]:
    """Records and replays; ``ran`` collects what the world saw, which a replay must not add to. The result and trace
    of the recording."""
    value, trace = recorded(make, **options)
    count = len(ran)
    again = replayed(make, trace)
    assert len(ran) == count, f"ran again on replay: {ran[count:]}"
    if not isinstance(value, Exception):
        assert again == value
    return value, trace


def kinds(trace: Trace) -> list[str]:
    """``kind name`` of each call."""
    return [f"{call.kind} {call.name}" for call in trace.calls]
