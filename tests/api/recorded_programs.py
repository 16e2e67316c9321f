"""Functions that tests record: found again by their names."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import time
import uuid
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any

from agentloom import tool

shuffled = Random(1)
"""Where tools take the time that they need from: not the run's."""


@dataclasses.dataclass
class Answer:
    text: str
    total: int


@tool(effect="read")
async def look(number: int) -> int:
    await asyncio.sleep(shuffled.random() / 200)
    return number * 2


async def research(first: int, *rest: int, flag: bool = False, **more: str) -> Answer:
    done: list[int] = []

    async def one(number: int) -> None:
        done.append(await look(number))

    await asyncio.gather(*(one(number) for number in range(first)))
    return Answer(f"{done} {time.time()} {uuid.uuid4()} {flag} {more}", sum(done) + sum(rest))


class Thing:
    """Something that no trace can give back."""

    async def ask(self, number: int) -> tuple[Thing, int]:
        return self, await look(number)


async def passed_on(thing: Any) -> Any:
    await look(1)
    return thing


async def fails(number: int) -> None:
    await look(number)
    raise KeyError("gone") from ValueError(number)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """An async test, run in a loop of its own."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    async def wrapper(*args: Any) -> Any:
        return await function(*args)

    return wrapper


@decorated
async def under_a_wrapper(number: int) -> int:
    return await look(number)


plain_look = look
