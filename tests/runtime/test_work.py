"""The mark on host work."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentloom import agent, tool
from agentloom.runtime.work import Work, doing, under_way
from agentloom.store import MemoryStore


def test_the_mark_is_there_inside_only_and_nests() -> None:
    assert under_way() is None
    with doing(Work("outer")) as outer:
        with doing(Work("inner")) as inner:
            assert under_way() is inner
        assert under_way() is outer
    assert under_way() is None


def test_tasks_and_worker_threads_carry_it() -> None:
    async def main() -> list[Work | None]:
        with doing(Work("tool")):
            task = asyncio.create_task(asyncio.sleep(0, None))
            threaded = asyncio.create_task(asyncio.to_thread(under_way))
        await task
        return [under_way(), await threaded]

    outside, inside = asyncio.run(main())
    assert outside is None
    assert inside is not None
    assert inside.what == "tool"


@pytest.mark.parametrize("flavour", ["async", "sync"])
def test_what_a_tool_does_is_host_work_and_what_the_agent_does_is_not(flavour: str) -> None:
    seen: list[Work | None] = []

    @tool
    def look() -> None:
        seen.append(under_way())

    @tool
    async def look_later() -> None:
        seen.append(under_way())

    async def patient() -> None:
        look()
        await look_later()
        seen.append(under_way())

    def plain() -> None:
        look()
        seen.append(under_way())

    made: Any = agent(patient if flavour == "async" else plain)
    made.run(store=MemoryStore())
    assert [work is not None for work in seen] == (
        [True, True, False] if flavour == "async" else [True, False]
    )
