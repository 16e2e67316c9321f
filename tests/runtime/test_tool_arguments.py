"""Tools that change their arguments in place are told."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from agentloom import record, register, tool
from agentloom.runtime.tools import wrap_tool
from agentloom.store import MemoryStore


@register
@dataclass
class Order:
    number: int
    lines: list[str]


def put(d: dict[str, Any]) -> None:
    d["x"] = 1


def reorder(items: list[int]) -> None:
    items.sort()


def change_below(order: Order) -> None:
    order.lines.append("one more")


def keep_a_function(given: dict[str, Any]) -> None:
    given["f"] = put


def extend(*items: list[int], **more: list[int]) -> None:
    more["m"].append(1)


CHANGES: list[tuple[Callable[..., Any], str, Callable[[Any], Any]]] = [
    (put, "d", lambda made: made({"y": 2})),
    (reorder, "items", lambda made: made([3, 1, 2])),
    (change_below, "order", lambda made: made(Order(1, []))),
    (keep_a_function, "given", lambda made: made(given={})),
    (extend, "more", lambda made: made([1], m=[])),
]


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records]


@pytest.mark.parametrize(("function", "name", "use"), CHANGES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_change_is_told_once(
    caplog: pytest.LogCaptureFixture,
    function: Callable[..., Any],
    name: str,
    use: Callable[[Any], Any],
) -> None:
    made = wrap_tool(function)
    with caplog.at_level(logging.WARNING, "agentloom.recording"), record("run", store=MemoryStore()):
        use(made)
        use(made)
    (said,) = told(caplog)
    assert said.startswith(f"tool {function.__name__} changed its argument {name} in place: ")


def test_an_async_tool(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    async def put_later(d: dict[str, int]) -> int:
        await asyncio.sleep(0)
        d["x"] = 1
        return len(d)

    async def main() -> list[Any]:
        given: dict[str, int] = {}
        return [await put_later(given), given]

    with caplog.at_level(logging.WARNING, "agentloom.recording"):
        assert asyncio.run(record(main(), store=MemoryStore())) == [1, {}]
    assert "tool put_later changed its argument d in place" in told(caplog)[0]


def test_tools_that_change_nothing_are_not(caplog: pytest.LogCaptureFixture) -> None:
    def total(items: list[float], order: Order, text: str = "x", *, more: dict[str, Any]) -> float:
        items = [*items, 1.0]
        return sum(items) + len(order.lines) + len(more)

    made = wrap_tool(total)
    with caplog.at_level(logging.WARNING, "agentloom.recording"), record("run", store=MemoryStore()):
        for _ in range(60):
            assert made([1.0, float("inf")], Order(1, ["a"]), more={"nan": float("nan"), "set": {1, 2}}) > 0
    assert not told(caplog)
