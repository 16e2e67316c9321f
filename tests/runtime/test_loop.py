"""The program runs the loop itself: repeatedly, under a driver, in virtual time; executors; other threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from agentloom.errors import NotSupported
from agentloom.runtime.loop import Deadlock, InnerLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)


@pytest.fixture
def loop() -> Iterator[InnerLoop]:
    made = InnerLoop()
    yield made
    made.close()


def test_run_until_complete_works_again_and_again(loop: InnerLoop) -> None:
    assert [loop.run_until_complete(asyncio.sleep(1, i)) for i in range(3)] == [0, 1, 2]
    assert loop.time() == 3.0
    assert not loop.is_running()


def test_runner_timeout_queue_semaphore_condition_barrier_and_task_group() -> None:
    async def main() -> list[Any]:
        seen: list[Any] = []
        queue: asyncio.Queue[int] = asyncio.Queue(1)
        semaphore, barrier, condition = asyncio.Semaphore(1), asyncio.Barrier(2), asyncio.Condition()

        async def produce() -> None:
            for i in range(3):
                async with semaphore:
                    await queue.put(i)
            await barrier.wait()
            async with condition:
                condition.notify_all()

        async def consume() -> None:
            seen.extend([await queue.get() for _ in range(3)])
            async with condition:
                await barrier.wait()
                await condition.wait()
            seen.append("notified")

        async with asyncio.TaskGroup() as group:
            group.create_task(produce())
            group.create_task(consume())
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.sleep(2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(5), 0.5)
        seen.append(asyncio.get_running_loop().time())
        return seen

    with asyncio.Runner(loop_factory=InnerLoop) as runner:
        assert runner.run(main()) == [0, 1, 2, "notified", 1.5]


def test_no_clock_is_ever_read(loop: InnerLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    def clock() -> float:
        raise AssertionError("a clock was read")

    for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns"):
        monkeypatch.setattr(time, name, clock)

    async def main() -> float:
        async with asyncio.timeout(5):
            await asyncio.gather(*(asyncio.sleep(i) for i in range(3)))
        return asyncio.get_running_loop().time()

    for debug in (False, True):
        loop.set_debug(debug)
        loop.run_until_complete(main())
    assert loop.time() == 4.0


def test_the_driver_makes_progress_for_run_until_complete(loop: InnerLoop) -> None:
    steps: list[str] = []
    future = loop.create_future()

    def drive(driven: InnerLoop, done: Callable[[], bool]) -> None:
        while True:
            driven.pump()
            if done():
                return
            steps.append("event")
            future.set_result(len(steps))

    loop.drive = drive

    async def main() -> Any:
        return await future

    assert loop.run_until_complete(main()) == 1
    assert steps == ["event"]
    assert not loop.stopping


def test_run_forever_ends_at_stop(loop: InnerLoop) -> None:
    loop.call_later(2, loop.stop)
    loop.run_forever()
    assert loop.time() == 2.0
    seen: list[str] = []
    loop.call_soon(seen.append, "once")
    loop.stop()
    loop.run_forever()
    assert seen == ["once"]


def test_stop_before_the_end_is_an_error_as_on_the_stock_loop(loop: InnerLoop) -> None:
    async def main() -> None:
        loop.stop()
        await asyncio.sleep(1)

    task = loop.create_task(main())
    with pytest.raises(RuntimeError, match="stopped before Future completed"):
        loop.run_until_complete(task)
    loop.run_until_complete(task)


def test_a_loop_that_can_never_go_on_says_so(loop: InnerLoop) -> None:
    task = loop.create_task(asyncio.Event().wait())
    with pytest.raises(Deadlock, match="can never happen"):
        loop.run_until_complete(task)
    task.cancel()
    loop.pump()


def test_a_program_that_polls_sees_its_timer_fire(loop: InnerLoop) -> None:
    async def main() -> int:
        rounds = 0
        event = asyncio.Event()
        loop.call_later(1, event.set)
        while not event.is_set():
            rounds += 1
            await asyncio.sleep(0)
        return rounds

    assert loop.run_until_complete(main()) == loop.run_until_complete(main())


def test_a_loop_does_not_run_inside_another(loop: InnerLoop) -> None:
    async def main() -> None:
        coroutine = asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="while another loop is running"):
            loop.run_until_complete(coroutine)
        coroutine.close()

    asyncio.run(main())


class TestExecutor:
    def test_it_runs_inline_in_a_copy_of_the_context_with_no_loop_running(self, loop: InnerLoop) -> None:
        def work(x: int) -> tuple[int, int, int, bool]:
            seen = _variable.get()
            _variable.set(99)
            return x, seen, threading.get_ident(), asyncio._get_running_loop() is None

        async def main() -> None:
            _variable.set(7)
            expected = (1, 7, threading.get_ident(), True)
            assert await loop.run_in_executor(None, work, 1) == expected
            assert await asyncio.to_thread(work, 1) == expected
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                assert await loop.run_in_executor(pool, work, 1) == expected
            assert _variable.get() == 7
            assert asyncio.get_running_loop() is loop

        loop.run_until_complete(main())

    def test_another_program_may_run_inside(self, loop: InnerLoop) -> None:
        def work() -> int:
            with asyncio.Runner(loop_factory=InnerLoop) as runner:
                return runner.run(asyncio.sleep(1, 5))

        async def main() -> int:
            return await asyncio.to_thread(work)

        assert loop.run_until_complete(main()) == 5

    def test_it_gives_way_once_so_that_others_run(self, loop: InnerLoop) -> None:
        async def main() -> int:
            ended = loop.create_task(asyncio.sleep(0))
            calls = 0
            while not ended.done():
                await asyncio.to_thread(int)
                calls += 1
            return calls

        assert loop.run_until_complete(main()) < 4

    @pytest.mark.parametrize("kind", [LookupError, KeyboardInterrupt, SystemExit, asyncio.CancelledError])
    def test_what_it_raises_reaches_who_awaits(self, loop: InnerLoop, kind: type[BaseException]) -> None:
        def work() -> None:
            raise kind

        async def main() -> None:
            with pytest.raises(kind):
                await asyncio.to_thread(work)

        loop.run_until_complete(main())

    def test_stop_iteration_cannot_travel_in_a_future(self, loop: InnerLoop) -> None:
        async def main() -> None:
            with pytest.raises(RuntimeError, match="StopIteration") as caught:
                await asyncio.to_thread(next, iter(()))
            assert isinstance(caught.value.__cause__, StopIteration)

        loop.run_until_complete(main())

    def test_a_cancelled_call_stays_cancelled(self, loop: InnerLoop) -> None:
        async def main() -> None:
            future = loop.run_in_executor(None, int)
            future.cancel()
            await asyncio.sleep(0)
            assert future.cancelled()

        loop.run_until_complete(main())

    def test_the_runtime_may_perform_it(self) -> None:
        performed: list[object] = []

        def run_inline(thunk: Callable[[], object]) -> object:
            performed.append(thunk())
            return "instead"

        loop = InnerLoop(run_inline=run_inline)
        future = loop.run_in_executor(None, int, "12")
        assert loop.run_until_complete(future) == "instead"  # type: ignore[comparison-overlap]
        assert performed == [12]
        loop.close()

    def test_it_is_refused_after_its_shutdown(self, loop: InnerLoop) -> None:
        loop.run_until_complete(loop.shutdown_default_executor())
        with pytest.raises(RuntimeError, match="shutdown"):
            loop.run_in_executor(None, int)


class TestOtherThreads:
    @staticmethod
    def in_thread(work: Callable[[], object]) -> object:
        with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="stranger") as pool:
            return pool.submit(work).result()

    def test_their_callbacks_are_refused_by_name(self, loop: InnerLoop) -> None:
        with pytest.raises(
            NotSupported, match=r"call_soon_threadsafe from thread 'stranger_0'.*\n.*to_thread"
        ):
            self.in_thread(lambda: loop.call_soon_threadsafe(print))

    def test_the_driver_may_take_them(self, loop: InnerLoop) -> None:
        taken: list[Any] = []

        def inject(callback: Any, args: Any, context: Any) -> asyncio.Handle:
            taken.append((callback, args))
            return asyncio.Handle(callback, args, loop, context)

        loop.inject = inject
        self.in_thread(lambda: loop.call_soon_threadsafe(print, 1))
        assert taken == [(print, (1,))]
        assert loop.pump() is True

    def test_the_loops_own_thread_is_the_one_that_pumps_it(self, loop: InnerLoop) -> None:
        seen: list[str] = []
        loop.call_soon_threadsafe(seen.append, "maker")
        loop.pump()

        def pump_there() -> None:
            loop.call_soon(lambda: loop.call_soon_threadsafe(seen.append, "pumper"))
            loop.pump()

        self.in_thread(pump_there)
        assert seen == ["maker", "pumper"]


def test_a_closed_loop_takes_nothing() -> None:
    loop = InnerLoop()
    loop.call_later(1, print)
    loop.close()
    loop.close()
    assert loop.next_timer() is None
    for schedule in (loop.call_soon, loop.call_soon_threadsafe):
        with pytest.raises(RuntimeError, match="closed"):
            schedule(print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.call_later(1, print)
    with pytest.raises(RuntimeError, match="closed"):
        loop.run_forever()


def test_an_unclosed_loop_warns() -> None:
    with pytest.warns(ResourceWarning, match="unclosed event loop"):
        InnerLoop().__del__()
