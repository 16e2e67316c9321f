"""Tasks and futures: numbers instead of addresses, names per loop, the hook of each new task."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agentloom.runtime.loop import Future, InnerLoop, Task
from agentloom.runtime.loop_tasks import install

if TYPE_CHECKING:
    from collections.abc import Iterator

_place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="root")


@pytest.fixture
def loop() -> Iterator[InnerLoop]:
    made = InnerLoop()
    yield made
    for task in asyncio.all_tasks(made):
        task.cancel()
    made.pump()
    made.close()


def put(context: contextvars.Context, place: str) -> None:
    context.run(_place.set, place)


async def forever() -> None:
    await asyncio.get_running_loop().create_future()


def test_a_task_hashes_by_its_number_and_is_named_by_it(loop: InnerLoop) -> None:
    tasks = [loop.create_task(forever()) for _ in range(3)]
    assert [hash(t) for t in tasks] == [1, 2, 3]
    assert [t.get_name() for t in tasks] == ["Task-1", "Task-2", "Task-3"]
    assert isinstance(tasks[0], Task)
    assert loop.create_task(forever(), name="mine").get_name() == "mine"


def test_futures_are_numbered_when_first_hashed(loop: InnerLoop) -> None:
    first, second = loop.create_future(), loop.create_future()
    assert isinstance(first, Future)
    assert (hash(second), hash(first), hash(second)) == (1, 2, 1)
    assert first != second


def test_a_set_of_tasks_iterates_alike_on_every_loop() -> None:
    orders: list[list[str]] = []
    for _ in range(3):
        loop = InnerLoop()
        tasks = {loop.create_task(forever()) for _ in range(40)}
        orders.append([task.get_name() for task in tasks])
        for task in tasks:
            task.cancel()
        loop.pump()
        loop.close()
    assert orders[0] == orders[1] == orders[2]


def test_the_future_of_a_gather_is_numbered_too(loop: InnerLoop) -> None:
    gathered: list[Any] = []

    async def main() -> None:
        gathered.extend(asyncio.gather(asyncio.sleep(1)) for _ in range(2))
        await asyncio.wait({*gathered})

    loop.run_until_complete(main())
    assert sorted(hash(g) for g in gathered) == [1, 2]
    assert hash(gathered[0]) == hash(gathered[0])


def test_the_stock_loop_hashes_by_address_as_before() -> None:
    install()

    async def main() -> None:
        gathered = asyncio.gather(asyncio.sleep(0))
        assert hash(gathered) == object.__hash__(gathered)
        assert {await done for done in asyncio.as_completed([asyncio.sleep(0, i) for i in range(5)])} == {
            *range(5)
        }
        await gathered

    asyncio.run(main())


def test_as_completed_starts_bare_coroutines_in_argument_order(loop: InnerLoop) -> None:
    started: list[int] = []

    async def child(index: int) -> int:
        started.append(index)
        return index

    async def main() -> list[int]:
        coroutines = [child(i) for i in range(60)]
        return [await following for following in asyncio.as_completed(coroutines)]

    assert loop.run_until_complete(main()) == list(range(60))
    assert started == list(range(60))


def test_a_task_group_cancels_in_one_order_on_every_loop() -> None:
    def cancelled_in() -> list[int]:
        order: list[int] = []

        async def child(index: int) -> None:
            try:
                await forever()
            except asyncio.CancelledError:
                order.append(index)
                raise

        async def main() -> None:
            async with asyncio.TaskGroup() as group:
                for index in range(30):
                    group.create_task(child(index))
                await asyncio.sleep(0)
                raise LookupError

        with asyncio.Runner(loop_factory=InnerLoop) as runner, pytest.raises(ExceptionGroup):
            runner.run(main())
        return order

    first = cancelled_in()
    assert sorted(first) == list(range(30))
    assert cancelled_in() == first


def test_all_tasks_iterates_alike_whatever_other_loops_do() -> None:
    orders: list[list[str]] = []
    others = [InnerLoop() for _ in range(7)]
    for round_ in range(3):
        loop = InnerLoop()
        for i in range(30):
            loop.create_task(forever())
            for other in others[: round_ * 3]:
                other.create_task(forever())
                if i % 2:
                    loop.create_future()
        orders.append([task.get_name() for task in asyncio.all_tasks(loop)])
        others.append(loop)
    assert orders[0] == orders[1] == orders[2]
    for loop in others:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.pump()
        loop.close()


def test_salt_keeps_the_hashes_of_two_loops_apart() -> None:
    loop = InnerLoop(salt=3)
    task = loop.create_task(forever())
    assert hash(task) == (3 << 32) + 1
    assert task.get_name() == "Task-1"
    task.cancel()
    loop.pump()
    loop.close()


def test_the_hook_sees_each_task_in_order_in_the_creators_context() -> None:
    seen: list[tuple[str, str]] = []

    def on_new_task(context: contextvars.Context) -> None:
        place = f"{_place.get()}/{len(seen)}"
        seen.append((_place.get(), place))
        context.run(_place.set, place)

    loop = InnerLoop(on_new_task=on_new_task)
    places: list[str] = []

    async def leaf() -> None:
        places.append(_place.get())

    async def branch() -> None:
        places.append(_place.get())
        await asyncio.gather(leaf(), leaf())

    loop.run_until_complete(branch())
    loop.close()
    assert seen == [("root", "root/0"), ("root/0", "root/0/1"), ("root/0", "root/0/2")]
    assert places == ["root/0", "root/0/1", "root/0/2"]
    assert _place.get() == "root"


def test_the_hook_gets_the_context_that_the_program_gave() -> None:
    contexts: list[contextvars.Context] = []
    loop = InnerLoop(on_new_task=contexts.append)
    context = contextvars.copy_context()
    loop.run_until_complete(loop.create_task(asyncio.sleep(0), context=context))
    loop.close()
    assert contexts == [context]


def test_a_task_of_the_programs_own_factory_runs_in_the_scope_of_the_hook() -> None:
    loop = InnerLoop(on_new_task=lambda context: put(context, "given"))

    def factory(loop: asyncio.AbstractEventLoop, coro: Any, **kwargs: Any) -> asyncio.Task[Any]:
        return asyncio.Task(coro, loop=loop, **kwargs)

    loop.set_task_factory(factory)

    async def where() -> str:
        return _place.get()

    async def main() -> tuple[str, str, str]:
        plain = loop.create_task(where(), name="plain")
        given = loop.create_task(where(), context=contextvars.copy_context())
        return await plain, await given, plain.get_name()

    assert loop.run_until_complete(main()) == ("given", "given", "plain")
    loop.close()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with 3.12")
def test_eager_tasks_are_the_loops_own_and_start_at_once() -> None:
    loop = InnerLoop(on_new_task=lambda context: put(context, "eager"))
    loop.set_task_factory(getattr(asyncio, "eager_task_factory"))  # noqa: B009  # not in 3.11's stubs
    seen: list[str] = []

    async def child() -> None:
        seen.append(_place.get())

    async def main() -> None:
        task = loop.create_task(child())
        assert seen == ["eager"]
        assert isinstance(task, Task)
        assert task.done()

    loop.run_until_complete(main())
    loop.close()


def test_a_task_that_the_program_constructs_itself_is_numbered(loop: InnerLoop) -> None:
    task: Task[None] = Task(forever(), loop=loop)
    assert hash(task) == 1
    assert hash(loop.create_task(forever())) == 2


def test_a_closed_loop_takes_no_task() -> None:
    loop = InnerLoop()
    loop.close()
    coroutine = forever()
    with pytest.raises(RuntimeError, match="closed"):
        loop.create_task(coroutine)
    coroutine.close()
