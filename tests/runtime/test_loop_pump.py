"""Pumping: order, quiescence, what is restored, what exceptions do."""

from __future__ import annotations

import asyncio
import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agentloom.errors import Diverged
from agentloom.runtime.loop import SPIN_ROUNDS, InnerLoop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


@pytest.fixture
def loop() -> Iterator[InnerLoop]:
    made = InnerLoop()
    yield made
    made.close()


def test_callbacks_run_in_order_until_nothing_is_ready_and_time_stands_still(loop: InnerLoop) -> None:
    seen: list[Any] = []

    def first() -> None:
        seen.append("a")
        loop.call_soon(seen.append, "c")

    loop.call_soon(first)
    loop.call_soon(seen.append, "b")
    loop.call_later(0, seen.append, "timer")
    assert loop.pump() is True
    assert seen == ["a", "b", "c"]
    assert loop.vt == 0


def test_pumping_an_idle_loop_is_nothing(loop: InnerLoop) -> None:
    assert loop.pump() is True


def test_a_cancelled_callback_does_not_run(loop: InnerLoop) -> None:
    seen: list[str] = []
    loop.call_soon(seen.append, "no").cancel()
    loop.pump()
    assert seen == []


def test_pumped_from_inside_a_task_of_another_loop() -> None:
    """Current task and running loop are right inside, and the outer ones are back afterwards."""

    async def outer() -> None:
        inner = InnerLoop()
        outer_loop, outer_task = asyncio.get_running_loop(), asyncio.current_task()
        seen: list[Any] = []

        async def body() -> str:
            seen.append((asyncio.get_running_loop() is inner, asyncio.current_task() is task))
            await asyncio.sleep(0)
            seen.append((asyncio.get_running_loop() is inner, asyncio.current_task() is task))
            return "done"

        task = inner.create_task(body())
        inner.pump()
        assert task.result() == "done"
        assert seen == [(True, True), (True, True)]
        assert asyncio.get_running_loop() is outer_loop
        assert asyncio.current_task() is outer_task
        inner.close()
        await asyncio.sleep(0)

    asyncio.run(outer())


def test_two_inner_loops_pumped_in_turn_keep_their_tasks_apart() -> None:
    loops = [InnerLoop(), InnerLoop()]
    seen: list[tuple[int, bool]] = []

    async def body(index: int) -> None:
        for _ in range(3):
            seen.append((index, asyncio.current_task() is tasks[index]))
            await asyncio.sleep(0)

    tasks = [loop.create_task(body(i)) for i, loop in enumerate(loops)]
    while not all(task.done() for task in tasks):
        for loop in loops:
            loop.pump(rounds=1)
    assert seen == [(0, True), (1, True)] * 3
    for loop in loops:
        loop.close()


def test_no_loop_is_running_after_a_pump_from_nowhere(loop: InnerLoop) -> None:
    loop.call_soon(lambda: None)
    loop.pump()
    with pytest.raises(RuntimeError, match="no running event loop"):
        asyncio.get_running_loop()
    assert not loop.is_running()


def test_a_pump_inside_its_own_pump_is_refused(loop: InnerLoop) -> None:
    refused: list[str] = []

    def callback() -> None:
        loop.call_soon(lambda: None)
        with pytest.raises(RuntimeError, match="already being pumped") as caught:
            loop.pump()
        refused.append(str(caught.value))

    loop.call_soon(callback)
    loop.pump()
    assert len(refused) == 1


def test_stop_ends_the_pump_after_the_round(loop: InnerLoop) -> None:
    seen: list[str] = []

    def first() -> None:
        loop.stop()
        loop.call_soon(seen.append, "next round")

    loop.call_soon(first)
    loop.call_soon(seen.append, "this round")
    assert loop.pump() is False
    assert seen == ["this round"]
    assert loop.stopping


def test_a_program_that_polls_ends_the_pump_after_a_fixed_number_of_rounds(loop: InnerLoop) -> None:
    rounds = 0

    async def poll() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            await asyncio.sleep(0)

    task = loop.create_task(poll())
    assert loop.pump() is False
    assert rounds == SPIN_ROUNDS
    assert loop.pump(rounds=7) is False
    assert rounds == SPIN_ROUNDS + 7
    task.cancel()
    assert loop.pump() is True


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_leaves_the_pump_and_the_rest_stays_ready(
    loop: InnerLoop, kind: type[BaseException]
) -> None:
    seen: list[str] = []

    async def interrupted() -> None:
        raise kind

    task = loop.create_task(interrupted())
    loop.call_soon(seen.append, "later")
    with pytest.raises(kind):
        loop.pump()
    assert isinstance(task.exception(), kind)
    assert seen == []
    assert not loop.is_running()
    loop.pump()
    assert seen == ["later"]


def test_control_flow_stays_in_its_task(loop: InnerLoop) -> None:
    """Other BaseExceptions are the task's result, as on the stock loop."""

    async def diverged() -> None:
        raise Diverged

    task = loop.create_task(diverged())
    assert loop.pump() is True
    assert isinstance(task.exception(), Diverged)


def test_an_exception_of_a_callback_goes_to_the_handler_and_the_rest_runs(loop: InnerLoop) -> None:
    reports: list[dict[str, Any]] = []
    seen: list[str] = []
    loop.set_exception_handler(lambda _loop, context: reports.append(context))

    def broken() -> None:
        raise LookupError("broken")

    handle = loop.call_soon(broken)
    loop.call_soon(seen.append, "after")
    loop.pump()
    assert seen == ["after"]
    (report,) = reports
    assert report["handle"] is handle
    assert isinstance(report["exception"], LookupError)
    assert report["message"].startswith("Exception in callback test_an_exception_of_a_callback")


def test_generator_hooks_are_the_loops_while_pumping_and_restored_after(loop: InnerLoop) -> None:
    before = sys.get_asyncgen_hooks()
    during: list[Any] = []
    loop.call_soon(lambda: during.append(sys.get_asyncgen_hooks()))
    loop.pump()
    assert during[0] != before
    assert sys.get_asyncgen_hooks() == before


def test_a_dropped_generator_is_closed_in_a_task_of_the_loop(loop: InnerLoop) -> None:
    closed: list[str] = []

    async def items() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            task = asyncio.current_task()
            assert task is not None
            closed.append(task.get_name())

    async def main() -> None:
        async for _ in items():
            break

    loop.create_task(main())
    loop.pump()
    assert closed == ["Task-2"]


def test_shutdown_asyncgens_closes_in_the_order_of_first_use() -> None:
    """The stock loop keeps them in a set by address."""
    closed: list[int] = []

    async def items(index: int) -> AsyncIterator[int]:
        try:
            yield index
        finally:
            closed.append(index)

    kept = [items(i) for i in range(50)]

    async def main() -> None:
        for generator in kept:
            await anext(generator)

    with asyncio.Runner(loop_factory=InnerLoop) as runner:
        runner.run(main())
    assert closed == list(range(50))


def test_a_pending_task_that_is_collected_is_reported_and_runs_nothing(loop: InnerLoop) -> None:
    reports: list[str] = []
    loop.set_exception_handler(lambda _loop, context: reports.append(context["message"]))

    async def forever() -> None:
        await loop.create_future()

    loop.create_task(forever())
    loop.pump()
    gc.collect()
    assert reports == ["Task was destroyed but it is pending!"]
    assert loop.pump() is True


def test_debug_mode_names_where_a_callback_came_from(loop: InnerLoop) -> None:
    loop.set_debug(True)
    reports: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _loop, context: reports.append(context))
    loop.call_soon(lambda: 1 / 0)
    loop.pump()
    assert reports[0]["source_traceback"][-1].name == "test_debug_mode_names_where_a_callback_came_from"
    with pytest.raises(TypeError, match="a callable object was expected"):
        loop.call_soon("not callable")  # type: ignore[arg-type]
