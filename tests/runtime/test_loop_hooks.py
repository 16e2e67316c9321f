"""Async generators belong to the loop that iterates them first, also where one pair of hooks serves two loops."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

import agentloom
from agentloom.runtime.loop import InnerLoop
from agentloom.runtime.loop_hooks import hold_hooks


class Around:
    """The hooks of a loop around, which remember what they were called with."""

    def __init__(self) -> None:
        self.begun: list[Any] = []
        self.dropped: list[str] = []

    def firstiter(self, generator: Any) -> None:
        self.begun.append(generator.__name__)

    def finalizer(self, generator: Any) -> None:
        self.dropped.append(generator.__name__)


@pytest.fixture
def around() -> Iterator[Around]:
    before = sys.get_asyncgen_hooks()
    made = Around()
    sys.set_asyncgen_hooks(made.firstiter, made.finalizer)
    yield made
    sys.set_asyncgen_hooks(*before)


@pytest.fixture
def loop() -> Iterator[InnerLoop]:
    made = InnerLoop()
    yield made
    made.pump()  # generators that the test has dropped
    made.close()


async def items() -> AsyncIterator[int]:
    yield 1
    yield 2


def begun() -> Any:
    """A generator that was asked for its first item."""
    generator: Any = items()
    with pytest.raises(StopIteration):
        generator.__anext__().send(None)
    return generator


def owned(loop: InnerLoop) -> list[str]:
    return [generator.__name__ for generator in loop._asyncgens]


def pumped(loop: InnerLoop, work: Any) -> None:
    loop.call_soon(work)
    loop.pump()


def test_a_generator_belongs_to_the_loop_that_is_pumped_or_to_the_one_around(
    loop: InnerLoop, around: Around
) -> None:
    release = hold_hooks(loop)
    kept: list[Any] = [begun()]
    assert (around.begun, owned(loop)) == (["items"], [])
    pumped(loop, lambda: kept.append(begun()))
    assert (around.begun, owned(loop)) == (["items"], ["items"])
    release()
    kept.append(begun())
    assert (around.begun, owned(loop)) == (["items"] * 2, ["items"])


def test_a_dropped_generator_comes_to_the_loop_it_began_in_whoever_has_its_turn(
    loop: InnerLoop, around: Around
) -> None:
    release = hold_hooks(loop)
    theirs, ours = [begun()], list[Any]()
    pumped(loop, lambda: ours.append(begun()))
    pumped(loop, theirs.clear)
    assert (around.dropped, len(loop._ready)) == (["items"], 0)
    ours.clear()
    assert (around.dropped, len(loop._ready)) == (["items"], 1)  # it is closed in a task of the loop
    loop.pump()
    later = [begun()]
    pumped(loop, lambda: ours.append(begun()))
    release()
    later.clear()
    assert (around.dropped, len(loop._ready)) == (["items"] * 2, 0)
    ours.clear()
    assert (around.dropped, len(loop._ready)) == (["items"] * 2, 1)
    loop.pump()


def test_a_generator_where_another_one_was_that_ended_is_its_own_loops(
    loop: InnerLoop, around: Around
) -> None:
    """Generators that end are not dropped: what is known of their places is stale."""
    release = hold_hooks(loop)
    places: set[int] = set()
    for number in range(200):
        theirs = begun()
        places.add(object.__hash__(theirs))
        with pytest.raises(StopIteration):
            theirs.aclose().send(None)
        del theirs
        ours: list[Any] = []
        pumped(loop, lambda ours=ours: ours.append(begun()))
        known = object.__hash__(ours[0]) in places
        ours.clear()
        assert (around.dropped, len(loop._ready)) == ([], 1)
        loop.pump()
        if known and number:
            break
    else:
        pytest.skip("no generator came where another one was")
    release()


def test_hooks_are_as_before_afterwards_and_pumping_leaves_them(loop: InnerLoop, around: Around) -> None:
    release = hold_hooks(loop)
    held, during = sys.get_asyncgen_hooks(), list[Any]()
    pumped(loop, lambda: during.append(sys.get_asyncgen_hooks()))
    assert during == [held]
    assert sys.get_asyncgen_hooks() == held
    assert hold_hooks(loop)() is None  # once is enough, and whoever began ends it
    assert sys.get_asyncgen_hooks() == held
    release()
    assert sys.get_asyncgen_hooks() == (around.firstiter, around.finalizer)
    pumped(loop, lambda: during.append(sys.get_asyncgen_hooks()))
    assert during[1] == (loop._asyncgen_firstiter_hook, loop._asyncgen_finalizer_hook)


def test_without_a_loop_around_each_pump_sets_hooks_of_its_own(loop: InnerLoop) -> None:
    before = sys.get_asyncgen_hooks()
    assert before == (None, None)
    release = hold_hooks(loop)
    assert (sys.get_asyncgen_hooks(), loop.hooked) == (before, 0)
    kept: list[Any] = []
    pumped(loop, lambda: kept.append(begun()))
    assert owned(loop) == ["items"]
    release()
    assert sys.get_asyncgen_hooks() == before


def test_another_thread_that_pumps_sets_hooks_of_its_own(loop: InnerLoop, around: Around) -> None:
    release = hold_hooks(loop)
    kept: list[Any] = []
    thread = threading.Thread(target=pumped, args=(loop, lambda: kept.append(begun())))
    thread.start()
    thread.join()
    release()
    assert (around.begun, owned(loop)) == ([], ["items"])


@pytest.mark.parametrize("waits", [False, True])
def test_a_tools_dropped_generator_is_closed_on_the_loop_of_host_work(tmp_path: Path, waits: bool) -> None:
    closed: list[tuple[str, bool]] = []

    async def numbers(whose: str) -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            await asyncio.sleep(0)
            closed.append((whose, isinstance(asyncio.get_running_loop(), InnerLoop)))

    async def first(whose: str) -> int:
        async for number in numbers(whose):
            return number
        return 0

    @agentloom.tool(effect="read")
    async def look() -> int:
        if waits:
            await asyncio.sleep(0)
        found = await first("tool")
        gc.collect()
        return found

    @agentloom.agent
    async def asking() -> int:
        found = await first("agent") + await look()
        await asyncio.sleep(0.01)
        return found

    asking.run(store=tmp_path)
    assert sorted(closed) == [("agent", True), ("tool", False)]
