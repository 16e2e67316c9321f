"""A replay that ends behind a call: what comes later may be anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from agentloom import Trace, agent, tool
from agentloom.errors import TargetError
from agentloom.store import MemoryStore

LATE = [1]


@tool
async def find(number: int) -> int:
    return number


@agent
async def in_turn() -> list[int]:
    return [await find(1), await find(2), await find(2 + LATE[0])]


@agent
def in_sync() -> list[int]:
    return [sync_find(1), sync_find(2), sync_find(2 + LATE[0])]


@tool
def sync_find(number: int) -> int:
    return number


@agent
async def at_once() -> list[int]:
    await find(0)
    return list(await asyncio.gather(*(find(number + LATE[0]) for number in range(3))))


@pytest.fixture(autouse=True)
def as_ever() -> Iterator[None]:
    LATE[:] = [1]
    yield
    LATE[:] = [1]


@pytest.fixture(params=[in_turn, in_sync])
def trace(request: pytest.FixtureRequest) -> Trace:
    recorded: Trace = request.param.run(store=MemoryStore())
    LATE[:] = [7]
    return recorded


def test_what_comes_later_is_not_replayed(trace: Trace) -> None:
    assert trace.replay(check=False).verdict == "diverged"
    report = trace.replay(until=2)
    assert (report.verdict, report.counts.exact) == ("identical", 2)
    assert "up to call 2 of 3: the rest was not replayed" in report.notes
    assert "output" not in report.compared


def test_up_to_the_last_call_is_all_of_it(trace: Trace) -> None:
    LATE[:] = [1]
    report = trace.replay(until=3)
    assert (report.verdict, report.counts.exact) == ("identical", 3)
    assert "output" in report.compared
    assert not any("up to call" in note for note in report.notes)


def test_a_difference_before_it_is_found(trace: Trace) -> None:
    assert trace.replay(until=3, check=False).verdict == "diverged"


def test_of_calls_that_are_made_at_once() -> None:
    trace = at_once.run(store=MemoryStore())
    assert trace.replay(until=2).counts.exact == 2


@pytest.mark.parametrize("until", [0, -1, 4])
def test_a_call_that_is_not_there(trace: Trace, until: int) -> None:
    with pytest.raises(TargetError, match=rf"has no call {until}"):
        trace.replay(until=until)
