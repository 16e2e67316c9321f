from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from agentloom.runtime.hostwork import HostWork, Waiting

Finished = list[tuple[object, BaseException | None]]
_VAR: contextvars.ContextVar[str] = contextvars.ContextVar("var", default="unset")


def begun(
    perform: Callable[[], Awaitable[object]],
    then: Callable[[asyncio.Task[None] | Waiting | None], Coroutine[Any, Any, None]] | None = None,
    *,
    takes: bool = True,
) -> tuple[Finished, asyncio.Task[None] | Waiting | None]:
    """Begin ``perform`` on a loop, do ``then`` with its task, let the loop turn; what was finished, and the task."""
    got: Finished = []

    def finish(value: object, error: BaseException | None) -> bool:
        got.append((value, error))
        return takes

    async def main() -> asyncio.Task[None] | Waiting | None:
        work = HostWork(asyncio.get_running_loop())
        own = asyncio.current_task()
        task = work.begin(perform, contextvars.copy_context(), finish)
        assert asyncio.current_task() is own
        if then is not None:
            await then(task)
        for _ in range(8):
            await asyncio.sleep(0)
        work.close()
        return task

    return got, asyncio.run(main())


def test_work_that_never_waits_is_over_at_once_and_has_no_task() -> None:
    seen: list[object] = []

    async def work() -> int:
        seen.append(asyncio.current_task())
        return 1

    got, task = begun(work)
    assert (got, task, len(seen)) == ([(1, None)], None, 1)


@pytest.mark.parametrize("waits", [False, True])
def test_its_current_task_is_its_own_from_the_first_step_to_the_last(waits: bool) -> None:
    tasks: list[asyncio.Task[Any] | None] = []

    async def work() -> None:
        tasks.append(asyncio.current_task())
        async with asyncio.timeout(30):  # asks in its exit for the task that entered it
            if waits:
                await asyncio.sleep(0)
                await asyncio.sleep(0.001)
            tasks.append(asyncio.current_task())

    async def until(task: asyncio.Task[None] | Waiting | None) -> None:
        if isinstance(task, Waiting):
            await task.task

    got, task = begun(work, until)
    assert got == [(None, None)]
    assert tasks[0] is tasks[1] is not None
    assert (isinstance(task, Waiting) and task.task is tasks[0]) is waits


def test_an_error_is_given_before_and_after_a_wait_and_of_making_the_work() -> None:
    async def at_once() -> None:
        raise LookupError("a")

    async def later() -> None:
        await asyncio.sleep(0)
        raise LookupError("b")

    def no_coroutine() -> Awaitable[object]:
        raise StopIteration("c")

    for work, text in ((at_once, "a"), (later, "b"), (no_coroutine, "c")):
        ((value, error),), _ = begun(work)
        assert (value, str(error)) == (None, text)


def test_what_is_awaited_may_be_no_coroutine() -> None:
    def future() -> Awaitable[object]:
        made: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(made.set_result, "x")
        return made

    assert begun(future)[0] == [("x", None)]


def test_the_work_has_its_own_context_in_every_step() -> None:
    seen: list[str] = []

    async def work() -> None:
        _VAR.set("set in the work")
        await asyncio.sleep(0)
        seen.append(_VAR.get())

    begun(work)
    assert seen == ["set in the work"]
    assert _VAR.get() == "unset"


@pytest.mark.parametrize("turns", [0, 1, 3])
def test_cancelling_reaches_what_the_work_waits_for_however_early_it_comes(turns: int) -> None:
    inner: list[asyncio.Task[None]] = []

    async def forever() -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        inner.append(asyncio.ensure_future(forever()))
        await inner[0]

    async def cancelled(task: asyncio.Task[None] | Waiting | None) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        assert task is not None
        task.cancel()

    ((value, error),), task = begun(work, cancelled, takes=False)
    assert (value, type(error)) == (None, asyncio.CancelledError)
    assert inner[0].cancelled()
    assert isinstance(task, Waiting)
    assert task.task.cancelled()


def test_cancelling_early_is_thrown_into_work_that_waits_for_nothing_in_particular() -> None:
    async def work() -> str:
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            return "cleaned up"
        return "went on"

    async def cancelled(task: asyncio.Task[None] | Waiting | None) -> None:
        assert task is not None
        task.cancel()

    assert begun(work, cancelled)[0] == [("cleaned up", None)]


def test_work_that_leaves_something_with_its_task_does_not_share_it() -> None:
    ended: list[str] = []

    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.add_done_callback(lambda _: ended.append("done"))

    begun(work)
    assert ended == ["done"]


def test_a_spare_task_is_used_again_and_ends_with_the_run() -> None:
    seen: set[object] = set()

    async def work() -> None:
        seen.add(asyncio.current_task())

    async def main() -> None:
        host = HostWork(asyncio.get_running_loop())
        for _ in range(3):
            host.begin(work, contextvars.copy_context(), lambda value, error: True)
        host.close()
        host.close()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert len(seen) == 1


def test_on_a_loop_that_does_not_run_the_work_waits_for_it() -> None:
    loop = asyncio.new_event_loop()
    got: Finished = []

    async def work() -> int:
        await asyncio.sleep(0)
        return 5

    def finish(value: object, error: BaseException | None) -> bool:
        got.append((value, error))
        return True

    task = HostWork(loop).begin(work, contextvars.copy_context(), finish)
    assert got == []
    assert isinstance(task, asyncio.Task)
    loop.run_until_complete(task)
    loop.close()
    assert got == [(5, None)]
