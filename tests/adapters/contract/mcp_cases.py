# mypy: ignore-errors
"""MCP clients of the official SDK: sessions with a server in memory and with a process over stdio."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client._memory import InMemoryTransport
from mcp.shared.exceptions import MCPError

from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen
from tests.adapters.mcp_shop import served

SHOP = Path(__file__).parents[1] / "mcp_shop.py"


@contextlib.asynccontextmanager
async def in_memory() -> Any:
    async with InMemoryTransport(served()) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        yield session


@contextlib.asynccontextmanager
async def by_stdio() -> Any:
    shop = StdioServerParameters(command=sys.executable, args=[str(SHOP), "noisy"])
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230
        async with (
            stdio_client(shop, errlog=nowhere) as (reader, writer),
            ClientSession(reader, writer) as session,
        ):
            await session.initialize()
            yield session


async def whole(session: Any) -> Any:
    return [
        seen(await session.list_tools()),
        seen(await session.call_tool("total", {"order": 812})),
        seen(await session.call_tool("picture", {})),
        seen(await session.read_resource("shop://orders/3")),
        seen(await session.get_prompt("greet", {"name": "Ada"})),
        [
            seen(one)
            for one in await asyncio.gather(
                *(session.call_tool("total", {"order": 20 * n}) for n in range(3))
            )
        ],
    ]


async def stream(session: Any) -> Any:
    """What comes before a result: progress."""
    told: list[Any] = []

    async def progress(at: float, total: float | None, message: str | None) -> None:
        told.append([at, total, message])

    result = await session.call_tool("slow", {"steps": 4}, progress_callback=progress)
    return told, seen(result)


async def early(session: Any) -> Any:
    """Leaves while a call is under way, after its first progress."""
    first = anyio.Event()

    async def progress(at: float, total: float | None, message: str | None) -> None:
        first.set()

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: session.call_tool("slow", {"steps": 4}, progress_callback=progress))
        group.start_soon(lambda: session.call_tool("forever", {}))
        await first.wait()
        group.cancel_scope.cancel()
    return seen(await session.call_tool("total", {"order": 20}))


async def failing(session: Any) -> Any:
    found: list[Any] = [seen(await session.call_tool("refund", {"order": 13}))]
    for ask in (
        lambda: session.read_resource("nothing://here"),
        lambda: session.get_prompt("nobody"),
        lambda: session.call_tool("total", {"order": "no number"}),
    ):
        try:
            found.append(seen(await ask()))
        except MCPError as error:
            found.append(seen(error))
    return found


async def cancelled(session: Any) -> Any:
    found: list[Any] = []
    try:
        await asyncio.wait_for(session.call_tool("forever", {}), 0.7)
    except TimeoutError:
        found.append("cancelled")
    try:
        await session.call_tool("forever", {}, read_timeout_seconds=0.2)
    except MCPError as error:
        found.append(seen(error))
    return found, seen(await session.call_tool("total", {"order": 20}))


def over(connect: Any, program: Any) -> Any:
    """The program with a session of that transport; the URL of a provider is nothing to it."""

    async def called(url: str) -> Any:
        async with connect() as session:
            return await program(session)

    return called


PROGRAMS = {"async": whole, "stream": stream, "left early": early, "error": failing, "cancel": cancelled}
LACKS = {
    "sync": "the SDK has no sync clients",
    "retry": "it tries nothing again",
    "raw": "its results are the server's messages",
}
SEAMS = [
    Seam(
        f"MCP ({name})",
        [Case(aspect, over(connect, one), [], waits=aspect == "cancel") for aspect, one in PROGRAMS.items()],
        LACKS,
    )
    for name, connect in {"in memory": in_memory, "stdio": by_stdio}.items()
]
