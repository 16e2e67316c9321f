"""The mark on host work."""

from __future__ import annotations

import asyncio

from agentloom.runtime.work import Work, doing, under_way


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
