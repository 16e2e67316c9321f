"""What the cases of frameworks share: agents of a shop, whose tool tells prices."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any

from openai import AsyncOpenAI

from agentloom.testing import Says, Wants
from agentloom.testing.sdk_seen import seen

TEXT = Says("It costs forty dollars.", usage=(11, 3, 7, 2))
TOOLS = Says(tools=[Wants("price", {"item": "fig"}), Wants("price", {"item": "apple"})])
NOTHING = Says(tools=[Wants("price", {"item": "nothing"})])
TWICE = ["model", "tool", "tool", "model"]
"""The calls of an agent that gets ``TOOLS``, then ``TEXT``."""
_clients: list[AsyncOpenAI] = []


def client_of(url: str, retries: int) -> AsyncOpenAI:
    """A client, which ``tidy`` closes."""
    client = AsyncOpenAI(base_url=url + "/v1", api_key="unused", max_retries=retries)
    _clients.append(client)
    return client


def tidy(program: Callable[[str], Awaitable[Any]]) -> Callable[[str], Any]:
    """The program, which then closes the clients that it has made."""

    @functools.wraps(program)
    async def closing(url: str) -> Any:
        _clients.clear()
        try:
            return await program(url)
        finally:
            for client in _clients:
                await client.close()

    return closing


def problem(error: BaseException) -> Any:
    """What is seen of an error and of those behind it."""
    below = error.__cause__
    names = [one.__name__ for one in type(error).__mro__]
    return [names, str(error), seen(getattr(error, "body", None)), None if below is None else problem(below)]
