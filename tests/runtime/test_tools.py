"""Tools: just functions outside a run, recorded calls inside one."""

from __future__ import annotations

import asyncio

import pytest

from agentloom import agent, tool
from agentloom.errors import NotSupported
from agentloom.runtime.tools import wrap_tool
from agentloom.store import MemoryStore

RAN: list[object] = []


@tool(effect="read", name="find")
def lookup(order: int, deep: bool = False, *more: int, **named: int) -> dict[str, object]:
    """Find an order."""
    RAN.append((order, deep, more, named))
    return {"order": order}


@tool
async def refund(order: int) -> str:
    RAN.append(order)
    await asyncio.sleep(0)
    return "ok"


@agent
async def support() -> tuple[object, str]:
    return lookup(812, True, 1, 2, x=3), await refund(812)


def test_outside_a_run_a_tool_is_the_function() -> None:
    RAN.clear()
    assert lookup(1) == {"order": 1}
    assert asyncio.run(refund(2)) == "ok"
    assert RAN == [(1, False, (), {}), 2]
    assert lookup.__name__ == "lookup"
    assert lookup.__doc__ == "Find an order."


def test_a_call_is_recorded_by_parameter_name_with_its_effect() -> None:
    RAN.clear()
    trace = support.run(store=MemoryStore())
    assert RAN == [(812, True, (1, 2), {"x": 3}), 812]
    found, refunded = trace.calls
    assert (found.name, found.effect, refunded.name, refunded.effect) == ("find", "read", "refund", "write")
    assert found.request["args"] == {"order": 812, "deep": True, "more": (1, 2), "named": {"x": 3}}
    RAN.clear()
    assert trace.replay().verdict == "identical"
    assert RAN == []


def test_wrong_arguments_fail_as_they_do_without_agentloom() -> None:
    @agent
    def wrong() -> None:
        lookup()  # type: ignore[call-arg]

    with pytest.raises(TypeError, match="order"):
        wrong.run(store=MemoryStore())


def test_an_unknown_effect_is_refused() -> None:
    with pytest.raises(ValueError, match="pure, read, write"):
        tool(effect="reads")(len)  # type: ignore[call-overload]


def test_a_generator_is_not_supported_and_says_what_to_do() -> None:
    def pieces() -> object:
        yield 1

    with pytest.raises(NotSupported) as caught:
        wrap_tool(pieces)
    assert "return a list" in (caught.value.hint or "")
