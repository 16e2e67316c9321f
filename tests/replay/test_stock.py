"""Replays of runs on a stock loop perform nothing, and other tasks go on meanwhile."""

from __future__ import annotations

import asyncio

from agentloom import record, replaying, tool
from agentloom.store import MemoryStore

performed: list[int] = []


@tool
async def act(number: int) -> int:
    await asyncio.sleep(0.001)
    performed.append(number)
    return number


def test_other_tasks_have_their_turn_while_a_call_is_answered() -> None:
    store = MemoryStore()

    async def main() -> object:
        ready: list[str] = []

        async def aside() -> None:
            ready.append("seen")

        async with record("turns", store=store) as run:
            task = asyncio.create_task(aside())
            await act(1)
            run.output = list(ready)
            await task
        return run

    run = asyncio.run(main())
    assert run.output == ["seen"]  # type: ignore[attr-defined]
    assert performed == [1]
    with replaying(run.trace):  # type: ignore[attr-defined]
        again = asyncio.run(main())
    assert again.report.verdict == "identical"  # type: ignore[attr-defined]
    assert performed == [1]
