"""Agents for what is measured per run and per process: one call, and many calls of one size."""

from __future__ import annotations

from agentloom import agent, tool


@tool(effect="read")
def look(q: str, n: int) -> dict[str, object]:
    """A result of about 350 bytes that is another for each ``n``."""
    return {"q": q, "n": n, "text": f"order {n} is on its way, {n * 7919 % 1000} km to go; " * 6}


@tool(effect="read")
async def look_async(q: str, n: int) -> dict[str, object]:
    """As ``look``."""
    return {"q": q, "n": n, "text": f"order {n} is on its way, {n * 7919 % 1000} km to go; " * 6}


@agent
def calls(count: int) -> int:
    """``count`` calls of one size, one after the other."""
    return sum(1 for n in range(count) if look("status of order", n)["n"] == n)


@agent
async def calls_async(count: int) -> int:
    """As ``calls``, awaited."""
    found = 0
    for n in range(count):
        found += (await look_async("status of order", n))["n"] == n
    return found
