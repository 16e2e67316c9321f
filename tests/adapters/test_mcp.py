"""MCP clients of the official SDK, against real servers: over stdio, streamable HTTP and in memory."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import sys
import threading
import warnings
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client._memory import InMemoryTransport
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.types import ElicitResult

import agentloom
from agentloom import Trace
from agentloom.adapters.mcp_outer import Connection, Question
from agentloom.replay.diff import diff
from agentloom.store import MemoryStore
from tests.adapters.mcp_shop import served

SHOP = Path(__file__).with_name("mcp_shop.py")

Where = Callable[[], contextlib.AbstractAsyncContextManager[ClientSession]]


@pytest.fixture(autouse=True)
def quiet() -> Generator[None]:
    """The SDK says of some features that a newer protocol has them no more, and logs errors of tools."""
    logging.disable(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning, module="mcp|tests")
        yield
    logging.disable(logging.NOTSET)


class Listening(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextlib.contextmanager
def serving() -> Generator[str]:
    """The shop over streamable HTTP on loopback."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = Listening(uvicorn.Config(served().streamable_http_app(), log_level="critical", lifespan="on"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        assert server.up.wait(20)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        thread.join()


@contextlib.asynccontextmanager
async def by_stdio(count: str) -> Any:
    """A process of its own, which also writes a line that is no message."""
    shop = StdioServerParameters(command=sys.executable, args=[str(SHOP), "noisy"], env={"COUNT": count})
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230
        async with (
            stdio_client(shop, errlog=nowhere) as (reader, writer),
            ClientSession(reader, writer) as session,
        ):
            yield session


@contextlib.asynccontextmanager
async def in_memory() -> Any:
    async with InMemoryTransport(served()) as (reader, writer), ClientSession(reader, writer) as session:
        yield session


@contextlib.asynccontextmanager
async def by_http(url: str) -> Any:
    async with streamable_http_client(url) as (reader, writer), ClientSession(reader, writer) as session:
        yield session


class Told(list[str]):
    """What an application saw, in its order."""

    def see(self, what: Any) -> Any:
        self.append(repr(what))
        return what

    async def attempt(self, work: Awaitable[Any]) -> None:
        try:
            self.see(await work)
        except MCPError as error:
            self.see((type(error), error.args, error.code, error.message, error.data, error.error))


async def shop(session: Any, told: Told) -> None:
    """All that a session does."""

    async def progress(at: float, total: float | None, message: str | None) -> None:
        told.see(("progress", at, total, message))

    told.see(await session.initialize())
    told.see(await session.list_tools())
    told.see(await session.call_tool("total", {"order": 812}))
    told.see(await session.call_tool("refund", {"order": 13}))
    told.see(await session.call_tool("refund", {"order": 12}, meta={"trace": "t-1"}))
    told.see(await session.call_tool("picture", {}))
    told.see(await session.call_tool("slow", {"steps": 3}, progress_callback=progress))
    told.see(await session.list_resource_templates())
    told.see(await session.read_resource("shop://orders/3"))
    told.see(await session.list_prompts())
    told.see(await session.get_prompt("greet", {"name": "Ada"}))
    told.see(await session.send_ping())
    await told.attempt(session.read_resource("nothing://here"))
    await told.attempt(session.get_prompt("nobody"))
    told.see(session.server_info)


Agent = Callable[[Told], Awaitable[None]]


async def thrice(agent: Agent) -> tuple[Told, Told, Told, Trace]:
    """What an agent sees bare, recording and replaying."""
    bare, live, again = Told(), Told(), Told()
    await agent(bare)
    store = MemoryStore()
    run = agentloom.record(_named(agent, live), store=store)
    await run
    report = run.trace.replay(call=lambda: _named(agent, again))
    assert report.verdict == "identical", str(report)
    return bare, live, again, run.trace


async def _named(agent: Agent, told: Told) -> list[str]:
    await agent(told)
    return list(told)


def names(trace: Trace) -> list[str]:
    return [call.name for call in trace.calls]


SHOPPING = [
    "mcp.connect", "mcp.initialize", "mcp.notifications/initialized", "mcp.tools/list", "total", "refund", "refund",
    "picture", "slow", "mcp.resources/templates/list", "mcp.resources/read", "mcp.prompts/list", "mcp.prompts/get",
    "mcp.ping", "mcp.resources/read", "mcp.prompts/get", "mcp.close",
]  # fmt: skip


def test_stdio_is_equal_bare_recording_and_replaying(tmp_path: Path) -> None:
    count = tmp_path / "count"

    async def agent(told: Told) -> None:
        async with by_stdio(str(count)) as session:
            await shop(session, told)
            result = await session.call_tool("large", {"size": 300_000})
            told.see(len(result.content[0].text))
            await told.attempt(session.call_tool("die", {}))
            await told.attempt(session.call_tool("total", {"order": 812}))

    bare, live, again, trace = asyncio.run(thrice(agent))
    assert bare == live == again
    assert len(bare) == 21
    assert bare[-3] == "300000"
    assert "Connection closed" in bare[-2]
    assert [call.status for call in trace.calls][-4:] == ["ok", "error", "error", "ok"]
    target = trace.calls[0].request["target"]
    assert (target["transport"], target["command"], target["env"]) == ("stdio", sys.executable, ["COUNT"])
    assert names(trace) == [*SHOPPING[:-1], "large", "die", "total", "mcp.close"]
    assert count.read_text() == "started\nstarted\n"  # bare and recording: a replay starts nothing


def test_http_is_equal_and_a_replay_connects_to_nothing() -> None:
    async def main(url: str) -> tuple[Told, Told, Told, Trace]:
        async def agent(told: Told) -> None:
            async with by_http(url) as session:
                await shop(session, told)

        return await thrice(agent)

    with serving() as url:
        bare, live, again, trace = asyncio.run(main(url))
    assert bare == live == again
    assert names(trace) == SHOPPING


def test_a_client_of_ones_own_goes_with_the_transport() -> None:
    async def main(url: str) -> tuple[Told, Told, Told, Trace]:
        async def agent(told: Told) -> None:
            async with (
                httpx2.AsyncClient(headers={"authorization": "Bearer abc"}) as client,
                streamable_http_client(url, http_client=client) as (reader, writer),
                ClientSession(reader, writer) as session,
            ):
                await session.initialize()
                told.see(await session.call_tool("total", {"order": 812}))

        return await thrice(agent)

    with serving() as url:
        bare, live, again, trace = asyncio.run(main(url))
    assert bare == live == again
    assert "http" not in {call.kind for call in trace.calls}  # recorded once, above the wire


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_in_memory_runs_outside_and_never_on_replay(mode: str) -> None:
    made: list[str] = []

    async def agent(told: Told) -> None:
        server = served()

        @server.tool()
        def counted() -> str:
            made.append("ran")
            return "counted"

        async with Client(server, mode=mode) as client:
            told.see(await client.list_tools())
            told.see(await client.call_tool("total", {"order": 812}))
            told.see(await client.call_tool("counted", {}))
            told.see(client.server_info)

    bare, live, again, _ = asyncio.run(thrice(agent))
    assert bare == live == again
    assert made == ["ran", "ran"]


def test_what_a_tool_call_is_in_the_trace() -> None:
    async def agent(told: Told) -> None:
        async with in_memory() as session:
            await session.initialize()
            await session.list_tools()
            await session.call_tool("total", {"order": 812})
            await session.call_tool("refund", {"order": 12}, meta={"trace": "t-1"})

    trace = asyncio.run(thrice(agent))[3]
    calls = {call.name: call for call in trace.calls}
    total, refund = calls["total"], calls["refund"]
    assert (total.kind, total.request) == ("tool", {"args": {"order": 812}, "server": "shop"})
    assert total.result["structuredContent"] == {"result": 40}
    assert (total.effect, refund.effect) == ("read", "write")
    assert refund.request == {"args": {"order": 12}, "server": "shop", "meta": {"trace": "t-1"}}
    assert "test_mcp.py" in total.src


def test_arguments_that_differ_are_found(tmp_path: Path) -> None:
    async def agent(order: int) -> None:
        async with in_memory() as session:
            await session.initialize()
            await session.call_tool("refund", {"order": order})

    async def main() -> Any:
        run = agentloom.record(agent(12), store=MemoryStore())
        await run
        return run.trace.replay(call=lambda: agent(14), check=False)

    report = asyncio.run(main())
    assert report.verdict == "diverged"
    assert "refund" in str(report)
    assert "14" in str(report)


def test_a_timeout_and_a_cancellation() -> None:
    async def agent(told: Told) -> None:
        async with in_memory() as session:
            await session.initialize()
            await told.attempt(session.call_tool("forever", {}, read_timeout_seconds=0.05))
            with anyio.move_on_after(0.05) as limit:
                await session.call_tool("forever", {})
            told.see(limit.cancelled_caught)
            waiting = asyncio.ensure_future(session.call_tool("forever", {}))
            await asyncio.sleep(0.01)
            waiting.cancel()
            told.see(await asyncio.gather(waiting, return_exceptions=True))
            told.see(await session.call_tool("total", {"order": 812}))

    bare, live, again, trace = asyncio.run(thrice(agent))
    assert bare == live == again
    assert [call.status for call in trace.calls if call.name == "forever"] == ["cancelled"] * 3


def test_a_server_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def agent(told: Told) -> None:
        try:
            async with stdio_client(StdioServerParameters(command="/no/such/program")):
                told.see("never")
        except OSError as error:
            told.see(error)
        try:
            async with by_http(f"http://127.0.0.1:{port}/mcp") as session:
                try:
                    await session.initialize()
                except asyncio.CancelledError:
                    told.see("cancelled by the transport")
                    raise
        except ExceptionGroup as group:
            told.see(group)

    bare, live, again, _ = asyncio.run(thrice(agent))
    assert bare == live == again
    assert "ConnectError" in bare[-1]


def test_requests_of_the_server_are_answered_in_the_run() -> None:
    async def agent(told: Told) -> None:
        async def answer(context: Any, params: Any) -> ElicitResult:
            told.see(params)
            return ElicitResult(action="accept", content={"ok": True})

        async def heard(message: Any) -> None:
            told.see(message)

        async with Client(
            served(), mode="legacy", elicitation_callback=answer, message_handler=heard
        ) as client:
            told.see(await client.call_tool("asks", {}))
            told.see(await client.call_tool("grows", {}))
            told.see(await client.list_tools())

    bare, live, again, trace = asyncio.run(thrice(agent))
    assert bare == live == again
    assert "ToolListChangedNotification" in "".join(bare)
    answered = next(call for call in trace.calls if call.name == "mcp.answer")
    assert answered.effect == "write"
    assert answered.request["result"]["action"] == "accept"


def test_requests_of_the_server_without_a_callback_are_refused_as_the_sdk_does() -> None:
    async def agent(told: Told) -> None:
        async with in_memory() as session:
            await session.initialize()
            await told.attempt(session.call_tool("asks", {}))

    bare, live, again, _ = asyncio.run(thrice(agent))
    assert bare == live == again


def test_a_cache_of_the_sdk_hears_of_changes() -> None:
    async def agent(told: Told) -> None:
        async with Client(served()) as client:
            told.see(len((await client.list_tools()).tools))
            await client.call_tool("grows", {})
            told.see([tool.name for tool in (await client.list_tools()).tools])

    bare, live, again, _ = asyncio.run(thrice(agent))
    assert bare == live == again
    assert "status" in bare[1]


def test_sessions_at_once_are_told_apart_by_first_appearance() -> None:
    async def agent(told: Told) -> None:
        async with Client(served()) as one, Client(served()) as two:
            await asyncio.gather(one.list_tools(), two.list_tools())
            found = await asyncio.gather(
                *(client.call_tool("total", {"order": 20 * n}) for n in range(8) for client in (one, two))
            )
            told.see(found)

    bare, live, again, trace = asyncio.run(thrice(agent))
    assert bare == live == again
    servers = {call.request["server"] for call in trace.calls if call.name == "total"}
    assert servers == {"shop", "shop#2"}


def test_a_block_on_a_stock_loop() -> None:
    store = MemoryStore()

    async def handle() -> list[str]:
        told = Told()
        with agentloom.record("handle", store=store) as run:
            async with in_memory() as session:
                await session.initialize()
                told.see(await session.call_tool("total", {"order": 812}))
            run.output = list(told)
        return told

    live = asyncio.run(handle())
    trace = Trace(store.read(store.runs()[0].run))
    with agentloom.replaying(trace):
        assert asyncio.run(handle()) == live


def test_left_early_by_an_error_of_the_agent() -> None:
    async def agent(told: Told) -> None:
        try:
            async with in_memory() as session:
                await session.initialize()
                raise KeyError("mine")
        except ExceptionGroup as group:
            told.see(group)

    bare, live, again, trace = asyncio.run(thrice(agent))
    assert bare == live == again
    assert names(trace)[-1] == "mcp.close"


def test_other_tools_than_before_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    logging.disable(logging.NOTSET)

    async def look(*more: str) -> None:
        server = served("till")
        for name in more:
            server.add_tool(lambda order: order, name=name)
        async with Client(server) as client:
            await client.list_tools()

    async def main() -> None:
        for tools in ((), (), ("status",), ("status",)):
            await agentloom.record(look(*tools), store=MemoryStore())

    with caplog.at_level(logging.WARNING, logger="agentloom.drift"):
        asyncio.run(main())
    told = [record.getMessage() for record in caplog.records if record.name == "agentloom.drift"]
    assert len(told) == 1
    assert told[0].startswith("the tools of server till changed since run ")
    assert told[0].endswith(": tool status was added")


def test_a_diff_says_in_words_which_tools_are_others() -> None:
    async def look(*more: str) -> None:
        server = served()
        for name in more:
            server.add_tool(lambda order: order, name=name)
        async with Client(server) as client:
            await client.list_tools()

    async def main() -> list[Trace]:
        traces: list[Trace] = []
        for tools in ((), ("status",)):
            run = agentloom.record(look(*tools), store=MemoryStore())
            await run
            traces.append(run.trace)
        return traces

    one, two = asyncio.run(main())
    found = diff(one.journal, two.journal)
    assert "the server serves other tools (tool status was added)" in str(found)
    assert found.rows[2].served == ("tool status was added",)


def test_a_session_before_and_after_its_block() -> None:
    async def agent(told: Told) -> None:
        async with InMemoryTransport(served()) as (reader, writer):
            session = ClientSession(reader, writer)
            for when in ("before", "within", "after"):
                try:
                    if when == "within":
                        async with session:
                            await session.initialize()
                            told.see(await session.call_tool("total", {"order": 812}))
                    else:
                        await session.call_tool("total", {"order": 812})
                except (RuntimeError, MCPError) as error:
                    told.see(error)

    bare, live, again, _ = asyncio.run(thrice(agent))
    assert bare == live == again
    assert len(bare) == 3


def test_a_run_that_goes_on_live_says_the_handshake_again() -> None:
    """As where a run is resumed: the connection of the beginning is not there any more."""
    said: list[str] = []

    async def main() -> Any:
        server = served()

        async def opener(stack: contextlib.AsyncExitStack, fault: Any) -> Any:
            reader, writer = await stack.enter_async_context(InMemoryTransport(server))
            dispatcher: Any = JSONRPCDispatcher(reader, writer)
            for name in ("send_raw_request", "notify"):
                setattr(dispatcher, name, _noted(getattr(dispatcher, name), said))
            return dispatcher

        client = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"},
        }
        connection = Connection(opener, MCPError)
        connection.handshake += [
            ("request", Question("initialize", client)),
            ("notification", Question("notifications/initialized", None)),
        ]
        result, _ = await connection.whole(
            Question("tools/call", {"name": "total", "arguments": {"order": 812}})
        )
        await connection.close()
        with pytest.raises(MCPError, match="Connection closed"):
            await connection.whole(Question("ping", None))
        return result

    assert asyncio.run(main())["structuredContent"] == {"result": 40}
    assert said == ["initialize", "notifications/initialized", "tools/call"]


def _noted(method: Any, said: list[str]) -> Any:
    async def noted(name: str, *args: Any, **kwargs: Any) -> Any:
        said.append(name)
        return await method(name, *args, **kwargs)

    return noted


def test_a_subscription_gets_its_events_again() -> None:
    async def agent(told: Told) -> None:
        async with Client(served()) as client:
            async with client.listen(tools_list_changed=True) as events:
                await client.call_tool("grows", {})
                async for event in events:
                    told.see(event)
                    break
            told.see([tool.name for tool in (await client.list_tools()).tools][-1])

    bare, live, again, trace = asyncio.run(thrice(agent))
    assert bare == live == again
    assert bare[0] == "ToolsListChanged()"
    assert "mcp.subscriptions/listen" in names(trace)
