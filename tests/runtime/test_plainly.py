"""Calls performed at once take and give the forms of recorded ones."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agentloom.errors import ValueRefused
from agentloom.runtime import plainly
from agentloom.runtime.calls import Call, CallSpec


def spec(**request: Any) -> CallSpec:
    return CallSpec("step", "s", request)


def test_the_request_is_a_copy_and_so_is_the_result() -> None:
    given = {"a": [1, (2, 3)]}
    seen: list[Any] = []

    def perform(call: Call) -> object:
        seen.append(call.tree)
        return given

    found = plainly.call(spec(given=given), perform)
    assert found == given
    assert found is not given
    assert found["a"] is not given["a"]
    assert type(found["a"][1]) is tuple
    assert seen == [{"given": {"a": [1, {"$tuple": [2, 3]}]}}]
    with pytest.raises(ValueRefused, match="argument of step s"):
        plainly.call(spec(given=object()), perform)
    with pytest.raises(ValueRefused):
        plainly.copied([object()])


def test_streams_are_read_closed_and_end() -> None:
    closed: list[str] = []

    def items(_: Call) -> Iterator[object]:
        try:
            yield 1
            yield (2,)
        finally:
            closed.append("sync")

    async def items_later(_: Call) -> AsyncIterator[object]:
        try:
            yield 1
            yield (2,)
        finally:
            closed.append("async")

    assert list(plainly.PlainStream(spec(), items)) == [1, (2,)]
    with plainly.PlainStream(spec(), items) as left:
        assert next(left) == 1
    assert list(left) == []
    plainly.PlainStream(spec(), items).close()
    assert closed == ["sync"] * 2

    async def main() -> None:
        assert [item async for item in plainly.PlainAsyncStream(spec(), items_later)] == [1, (2,)]
        async with plainly.PlainAsyncStream(spec(), items_later) as left:
            assert await anext(left) == 1
        assert [item async for item in left] == []
        await plainly.PlainAsyncStream(spec(), items_later).aclose()

    asyncio.run(main())
    assert closed == ["sync"] * 2 + ["async"] * 2


def test_side_by_side_all_come_to_their_end_and_the_first_error_is_raised() -> None:
    ended: list[int] = []

    def one(number: int, error: BaseException | None = None) -> int:
        ended.append(number)
        if error is not None:
            raise error
        return number

    assert plainly.side_by_side([lambda: one(1), lambda: one(2)]) == [1, 2]
    assert plainly.side_by_side([]) == []
    with pytest.raises(KeyError):
        plainly.side_by_side([lambda: one(1, KeyError()), lambda: one(2, ValueError()), lambda: one(3)])
    with pytest.raises(KeyboardInterrupt):
        plainly.side_by_side([lambda: one(1, KeyError()), lambda: one(2, KeyboardInterrupt())])
    assert sorted(ended) == [1, 1, 1, 2, 2, 2, 3]
