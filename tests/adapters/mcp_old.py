# mypy: disable-error-code="attr-defined, untyped-decorator, no-any-unimported, unused-ignore"
"""What releases 1.x of the MCP SDK do bare, recording and replaying: a program for their own environment.

``python mcp_old.py`` says as JSON what was equal; ``python mcp_old.py serve`` is the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
import threading
import warnings
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import mcp
import uvicorn
from mcp.client import streamable_http
from mcp.server import fastmcp
from mcp.server.fastmcp import Context
from mcp.shared import memory

import agentloom
from agentloom.store import MemoryStore

old: Any = mcp  # typed for the releases 2.x
types: Any = mcp.types


def served() -> Any:
    server = fastmcp.FastMCP("shop")

    @server.tool(annotations=types.ToolAnnotations(readOnlyHint=True))
    def total(order: int) -> int:
        return order // 20

    @server.tool()
    def refund(order: int) -> dict[str, Any]:
        if order == 13:
            raise ValueError("no such order")
        return {"order": order, "why": None, "text": "für dich ✓"}

    @server.tool()
    def die() -> str:
        os._exit(3)

    @server.tool()
    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool()
    async def slow(steps: int, ctx: Context) -> str:
        for step in range(steps):
            await ctx.report_progress(step, steps, f"step {step}")
        await ctx.info("slow is done")
        return "done"

    @server.tool()
    async def asks(ctx: Context) -> str:
        said = await ctx.session.create_message(
            messages=[types.SamplingMessage(role="user", content=types.TextContent(type="text", text="?"))],
            max_tokens=5,
        )
        return str(said.content.text)

    return server


class Seen(list[str]):
    """What the application saw."""

    def see(self, what: Any) -> None:
        self.append(repr(what))

    async def attempt(self, work: Any) -> None:
        try:
            self.see(await work)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            self.see((type(error).__name__, str(error), getattr(error, "error", None)))


async def shop(session: Any, seen: Seen) -> None:
    async def progress(at: float, total: float | None, message: str | None = None) -> None:
        seen.see(("progress", at, total, message))

    seen.see(await session.list_tools())
    seen.see(await session.call_tool("total", {"order": 812}))
    seen.see(await session.call_tool("refund", {"order": 12}))
    seen.see(await session.call_tool("refund", {"order": 13}))
    seen.see(await session.call_tool("slow", {"steps": 3}, progress_callback=progress))
    await seen.attempt(session.read_resource("nothing://here"))
    await seen.attempt(session.call_tool("forever", {}, read_timeout_seconds=timedelta(seconds=0.05)))
    seen.see(await asyncio.gather(*(session.call_tool("total", {"order": 20 * n}) for n in range(5))))


async def stdio(seen: Seen) -> None:
    server = old.StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230
        async with (
            old.stdio_client(server, errlog=nowhere) as (reader, writer),
            old.ClientSession(reader, writer) as session,
        ):
            seen.see(await session.initialize())
            await shop(session, seen)
            await seen.attempt(session.call_tool("die", {}))
            await seen.attempt(session.call_tool("total", {"order": 812}))


async def in_memory(seen: Seen) -> None:
    async def sampled(context: Any, params: Any) -> Any:
        seen.see(params)
        text = types.TextContent(type="text", text="because")
        return types.CreateMessageResult(role="assistant", content=text, model="m")

    async def logged(params: Any) -> None:
        seen.see(params)

    connected: Any = memory.create_connected_server_and_client_session
    async with connected(served(), sampling_callback=sampled, logging_callback=logged) as session:
        await shop(session, seen)
        seen.see(await session.call_tool("asks", {}))


async def http(seen: Seen) -> None:
    client: Any = streamable_http.streamablehttp_client
    async with (
        client(os.environ["SHOP"]) as (reader, writer, number),
        old.ClientSession(reader, writer) as session,
    ):
        seen.see(number())
        seen.see(await session.initialize())
        seen.see(isinstance(number(), str))
        await shop(session, seen)


async def over(seen: Seen) -> None:
    """A session that is used when its block is over."""
    server = old.StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230
        async with old.stdio_client(server, errlog=nowhere) as (reader, writer):
            async with old.ClientSession(reader, writer) as session:
                await session.initialize()
            await seen.attempt(session.call_tool("total", {"order": 812}))


async def gone(seen: Seen) -> None:
    client: Any = streamable_http.streamablehttp_client
    try:
        async with (
            client("http://127.0.0.1:9/mcp") as (reader, writer, _),
            old.ClientSession(reader, writer) as session,
        ):
            await session.initialize()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is compared
        seen.see((type(error).__name__, str(error)))


@contextlib.contextmanager
def serving() -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(served().streamable_http_app(), log_level="critical", lifespan="on")
    )
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()


AGENTS = (stdio, in_memory, http, over, gone)


async def compared(agent: Any, bare: Seen) -> dict[str, Any]:
    async def run(seen: Seen) -> None:
        await agent(seen)

    live, again = Seen(), Seen()
    recorded = agentloom.record(run(live), store=MemoryStore())
    await recorded
    report = recorded.trace.replay(call=lambda: run(again), check=False)
    return {
        "verdict": report.verdict,
        "report": "" if report.verdict == "identical" else str(report),
        "seen": [len(bare), len(live), len(again)],
        "differ": [told for told in zip(bare, live, again, strict=False) if len(set(told)) > 1],
        "calls": [call.name for call in recorded.trace.calls],
    }


async def main() -> dict[str, Any]:
    bare = {agent: Seen() for agent in AGENTS}
    for agent in AGENTS:  # before the first run: nothing is patched yet
        await agent(bare[agent])
    return {agent.__name__: await compared(agent, bare[agent]) for agent in AGENTS}


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        served().run("stdio")
    else:
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore", DeprecationWarning)
        with serving() as url:
            os.environ["SHOP"] = url
            print(json.dumps(asyncio.run(main())))
