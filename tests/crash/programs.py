"""Agents whose tools leave their effects in a database, for processes that are killed while these run.

Every effect has a name of its own in its run, so that whoever looks into the database knows whether a call happened.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import agentloom
import agentloom.sync
from agentloom import Retry, agent, idempotency_key, tool
from agentloom.api.workflow import State, Workflow
from agentloom.errors import Interrupted
from agentloom.runtime.boundary import open_async, open_inline
from agentloom.runtime.calls import CallSpec

__all__ = ["AT", "PROGRAMS", "World"]

SCHEMA = """
create table effects (name text, how text);
create table bookings (key text primary key, name text);
create table tries (name text);
create table keys (name text, key text);
"""


class World:
    """The database in which the tools leave their effects. Each use opens it anew: a process may die in any of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        with contextlib.closing(self._open()) as db:
            db.executescript(SCHEMA)

    def _open(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("pragma synchronous=off")  # the machine goes on: only processes die here
        return db

    def run(self, statement: str, *values: str) -> list[tuple[Any, ...]]:
        """One statement, in a transaction of its own."""
        db = self._open()
        try:
            return db.execute(statement, values).fetchall()
        finally:
            db.close()

    def happened(self, name: str) -> bool:
        """Whether the effect is there."""
        return bool(self.run("select 1 from effects where name = ?", name))


class At:
    """Where the process is, and who is told: ``before`` an effect, and ``after`` it."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.passes: Callable[[str], None] = lambda _: None

    def do(self, name: str, statement: str, *values: str) -> None:
        self.passes("before")
        if self.world is not None:
            self.world.run(statement, *values)
        self.passes("after")


AT = At()


def _charge(name: str) -> str:
    AT.do(name, "insert into effects values (?, 'charge')", name)
    return f"charged {name}"


def _book(name: str) -> str:
    key = idempotency_key()
    if AT.world is not None:
        AT.world.run("insert into keys values (?, ?)", name, key)
    AT.do(name, "insert or ignore into bookings values (?, ?)", key, name)
    return f"booked {name}"


def _unsure(name: str) -> str:
    """Fails until it was tried three times; only then there is an effect."""
    if AT.world is not None:
        AT.world.run("insert into tries values (?)", name)
        if AT.world.run("select count(*) from tries where name = ?", name)[0][0] < 3:
            raise ConnectionError(f"{name} is down")
    return _charge(name)


@tool
def charge(name: str) -> str:
    return _charge(name)


@tool(idempotent=True)
def book(name: str) -> str:
    return _book(name)


@tool(effect="read")
def look(name: str) -> str:
    AT.passes("read")
    return f"saw {name}"


@tool
def unsure(name: str) -> str:
    return _unsure(name)


@tool
async def acharge(name: str) -> str:
    await asyncio.sleep(0)
    done = _charge(name)
    await asyncio.sleep(0)
    return done


@tool(idempotent=True)
async def abook(name: str) -> str:
    await asyncio.sleep(0)
    return _book(name)


@tool(effect="read")
async def alook(name: str) -> str:
    await asyncio.sleep(0.0005)
    return f"saw {name}"


@tool
async def aunsure(name: str) -> str:
    await asyncio.sleep(0)
    return _unsure(name)


@agent
def plain() -> list[str]:
    """One call after the other."""
    out = [look("stock")]
    for number in range(3):
        out += [charge(f"c{number}"), book(f"b{number}")]
    agentloom.sync.now()
    agentloom.sync.note("all charged")
    out.append(str(agentloom.sync.random() < 2))
    return [*out, charge("last")]


@agent
async def gathers() -> list[str]:
    """Many at once."""

    async def branch(name: str) -> list[str]:
        first = await alook(name)
        return [
            first,
            await acharge(f"{name} one"),
            await abook(f"{name} two"),
            await acharge(f"{name} three"),
        ]

    out: list[str] = []
    for part in await asyncio.gather(*map(branch, "abc")):
        out += part
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(acharge(name)) for name in ("left", "right")]
    return [*out, *(task.result() for task in tasks)]


@agent
def threads() -> list[str]:
    """Several threads."""

    def branch(name: str) -> Callable[[], list[str]]:
        return lambda: [charge(f"{name} one"), book(f"{name} two"), look(name), charge(f"{name} three")]

    out: list[str] = []
    for part in agentloom.sync.parallel(*map(branch, "xyz")):
        out += part
    return out


STREAM = CallSpec("model", "m", {"messages": []}, stream=True)
WORDS = ("one", "two", "three", "four")


async def _awords(_: object) -> AsyncIterator[object]:
    for word in WORDS:
        await asyncio.sleep(0)
        yield word


def _words(_: object) -> Iterator[object]:
    yield from WORDS


@agent
async def streams() -> list[str]:
    """What is read of a stream is acted on while it is read; where it broke off it is read again from the start."""
    done: dict[str, str] = {}
    for _ in range(99):
        try:
            async for word in open_async(STREAM, _awords):
                if str(word) not in done:
                    done[str(word)] = await acharge(str(word))
        except Interrupted:
            continue
        return [*done.values(), await acharge("end")]
    raise RuntimeError("never read to its end")


@agent
def streams_sync() -> list[str]:
    """The same without a loop."""
    done: dict[str, str] = {}
    for _ in range(99):
        try:
            for word in open_inline(STREAM, _words):
                if str(word) not in done:
                    done[str(word)] = charge(str(word))
        except Interrupted:
            continue
        return [*done.values(), charge("end")]
    raise RuntimeError("never read to its end")


@agent
async def child(name: str) -> str:
    return await acharge(f"{name} in") + await abook(f"{name} also")


@agent
async def children() -> list[str]:
    """Agents in an agent."""
    first = await child("first")
    rest = await asyncio.gather(child("second"), child("third"))
    return [first, *rest, await acharge("parent")]


@agent
async def retries() -> list[str]:
    """Calls that fail and are made again."""
    policy = Retry(attempts=30, delay=0.0001, longest=0.0001, on=ConnectionError)
    first = await agentloom.retrying(policy, aunsure, "first")
    rest = await asyncio.gather(*(agentloom.retrying(policy, aunsure, name) for name in ("second", "third")))
    return [first, *rest, await acharge("last")]


@agent
def retries_sync() -> list[str]:
    """The same without a loop."""
    policy = Retry(attempts=30, delay=0.0001, longest=0.0001, on=ConnectionError)
    return [agentloom.sync.retrying(policy, unsure, name) for name in ("first", "second")]


@agent
async def people() -> list[Any]:
    """Waits for somebody between its effects."""
    first = await acharge("first")
    said = await agentloom.ask("Go on?", choices=["yes", "no"])
    both = await asyncio.gather(agentloom.signal("word"), agentloom.ask("How much?"), abook("meanwhile"))
    return [
        first,
        said,
        await acharge("second"),
        *both,
        await agentloom.signal("word"),
        await acharge("third"),
    ]


@agent
def people_sync() -> list[Any]:
    """The same without a loop."""
    first = charge("first")
    said = agentloom.sync.ask("Go on?", choices=["yes", "no"])
    words = [agentloom.sync.signal("word"), charge("second"), agentloom.sync.signal("word")]
    return [first, said, *words, charge("third")]


@agent
def people_threads() -> list[Any]:
    """Several threads, each of which waits for somebody."""

    def branch(name: str) -> Callable[[], list[Any]]:
        return lambda: [charge(f"{name} one"), agentloom.sync.ask(f"{name}?"), charge(f"{name} two")]

    return [charge("first"), *agentloom.sync.parallel(*map(branch, "pq")), agentloom.sync.signal("word")]


def _workflow() -> Workflow:
    graph = Workflow("steps")
    graph.step("first", tool=charge, args={"name": "first"})

    @graph.step("between", after="first")
    def between(state: State) -> str:
        return f"{state['first']} then"

    for name in ("left", "right"):
        graph.step(name, tool=acharge, args={"name": name}, after="between")
    graph.step("booked", tool=book, args={"name": "booked"}, after="between")
    graph.step("last", tool=charge, args={"name": "last"}, after=["left", "right", "booked"])
    return graph


PROGRAMS: dict[str, Any] = {
    "plain": plain,
    "gathers": gathers,
    "threads": threads,
    "streams": streams,
    "streams-sync": streams_sync,
    "children": children,
    "retries": retries,
    "retries-sync": retries_sync,
    "people": people,
    "people-sync": people_sync,
    "people-threads": people_threads,
    "workflow": _workflow(),
}
