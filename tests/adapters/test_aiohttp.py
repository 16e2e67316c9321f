"""aiohttp's client through its seam: what the contract does not hold."""

from __future__ import annotations

import asyncio
from types import ModuleType
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from agentloom import agent
from agentloom.adapters import aiohttp_outer, aiohttp_seam, sdks
from agentloom.errors import NotSupported
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider
from tests.adapters.seam import tape


async def refused(url: str) -> Any:
    async with aiohttp.ClientSession() as session:
        try:
            await session.ws_connect(url)
        except NotSupported as error:
            return error.message
    return None


def test_a_websocket_is_refused_by_name() -> None:
    done = tape(refused, [])
    assert "a websocket of aiohttp" in done.live


class Strange(aiohttp.BaseConnector):
    """Neither TCP nor unix."""


async def strange(url: str) -> Any:
    async with aiohttp.ClientSession(connector=Strange()) as session:
        try:
            await session.get(url)
        except NotSupported as error:
            return error.message
    return None


def test_a_connector_of_another_kind_is_refused_by_name() -> None:
    done = tape(strange, [])
    assert "Strange" in done.live
    assert "it is no TCP or unix connector" in done.live


async def uploads(url: str) -> Any:
    async def pieces() -> Any:
        for number in range(3):
            yield b"%d " % number

    async with aiohttp.ClientSession() as session:
        async with session.post(url + "/x", data=pieces()) as one:
            first = await one.json()
        async with session.post(url + "/x", data=b"y" * 200_000, headers={"X-Api-Key": "very-secret"}) as two:
            return first["text"], (await two.json())["text"], one.request_info.method


def test_bodies_that_come_in_pieces_are_one_request() -> None:
    sdks.watch()
    with FakeProvider(["a", "b"], others=True) as fake:
        trace = agent(uploads).run(fake.url, store=MemoryStore())
    assert trace.replay().verdict == "identical"
    assert [call.request["text"][:6] for call in trace.calls] == ["0 1 2 ", "yyyyyy"]
    assert "very-secret" not in str([call.request for call in trace.calls])


async def same_connection(url: str) -> Any:
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(url + "/x") as answer:
                await answer.read()
    return "done"


def test_connections_are_kept_outside_and_closed_with_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    sdks.watch()
    made: list[Any] = []
    original = aiohttp.TCPConnector._create_connection

    async def counting(self: Any, *args: Any) -> Any:
        made.append(self)
        return await original(self, *args)

    monkeypatch.setattr(aiohttp.TCPConnector, "_create_connection", counting)
    with FakeProvider(["a", "b", "c"], others=True) as fake:
        agent(same_connection).run(fake.url, store=MemoryStore())
    assert len(made) == 1
    assert made[0].closed


def over_a_socket_file(path: str) -> Any:
    async def program(_: str) -> Any:
        connector = aiohttp.UnixConnector(path)
        async with aiohttp.ClientSession(connector=connector) as session, session.get("http://h/x") as answer:
            return await answer.text()

    return program


def test_a_unix_socket(tmp_path: Any) -> None:
    sdks.watch()
    path = str(tmp_path / "s")
    program = over_a_socket_file(path)

    async def live() -> Any:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(text="hello")

        app = web.Application()
        app.router.add_get("/x", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.UnixSite(runner, path).start()
        trace = await agent(program).arun("", store=MemoryStore())
        await runner.cleanup()
        return trace

    trace = asyncio.run(live())
    assert trace.output == "hello"
    assert trace.replay().verdict == "identical"


async def expects(url: str) -> Any:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url + "/x", data=b"abc", expect100=True) as answer,
    ):
        return (await answer.json())["text"]


def test_a_client_that_waits_for_continue() -> None:
    sdks.watch()
    with FakeProvider(["a"], others=True) as fake:
        trace = agent(expects).run(fake.url, store=MemoryStore())
    assert (trace.output, trace.replay().verdict) == ("a", "identical")


def test_a_release_without_the_methods_is_refused_by_name() -> None:
    module: Any = ModuleType("aiohttp")
    module.BaseConnector = type("BaseConnector", (), {})
    module.client_proto = module
    module.ResponseHandler = module.StreamReader = module.BaseConnector
    module.__version__ = "99.0"
    with pytest.raises(NotSupported, match=r"aiohttp 99\.0 .*BaseConnector\.connect"):
        aiohttp_seam.install(module)


def as_it_is(value: object) -> object:
    return value


async def asks(url: str) -> Any:
    async with aiohttp.ClientSession() as session:
        async with session.post(url + "/x", json={"q": 1}) as answer:
            whole = await answer.json()
        async with session.post(url + "/x", json={"q": 2}) as answer:
            pieces = b"".join([piece async for piece in answer.content.iter_any()])
        async with session.post(url + "/x", json={"q": 3}) as answer:
            return whole["text"], pieces, answer.status


def test_an_answer_in_one_piece_is_the_outcome_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    sdks.watch()
    with FakeProvider(["a", "b", "c"] * 2, others=True) as fake:
        trace = agent(asks).run(fake.url, store=MemoryStore())
        with monkeypatch.context() as patch:
            patch.setattr(aiohttp_outer, "Whole", as_it_is)  # as earlier versions recorded it
            earlier = agent(asks).run(fake.url, store=MemoryStore())
    assert [entry["kind"] for entry in trace.journal.entries if "call" in entry] == ["request", "outcome"] * 3
    assert [entry["kind"] for entry in earlier.journal.entries if "call" in entry] == [
        "request", "chunks", "outcome",
    ] * 3  # fmt: skip
    for one in (trace, earlier):
        report = one.replay()
        assert report.verdict == "identical", report
