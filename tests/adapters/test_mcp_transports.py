"""MCP over server-sent events (the older transport), and results that hold images, sound and documents."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import socket
import threading
import warnings
from collections.abc import Generator
from typing import Any

import pytest
import uvicorn
from mcp import ClientSession
from mcp.client._memory import InMemoryTransport
from mcp.client.sse import sse_client
from mcp.server.mcpserver import Audio, Image, MCPServer
from mcp.types import BlobResourceContents, EmbeddedResource

from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider
from tests.adapters.mcp_shop import PIXEL, served
from tests.adapters.test_mcp import SHOPPING, Listening, Told, names, shop, thrice
from tests.frameworks.proof import recorded, replayed

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")


@contextlib.contextmanager
def serving_events() -> Generator[str]:
    """The shop over server-sent events on loopback."""
    listening = socket.create_server(("127.0.0.1", 0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        app = served().sse_app()
    server = Listening(uvicorn.Config(app, log_level="critical", lifespan="on"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    try:
        assert server.up.wait(20)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/sse"
    finally:
        server.should_exit = True
        server.force_exit = True  # its streams stay open for as long as a client may come back
        thread.join()


def test_events_are_equal_bare_recording_and_replaying() -> None:
    async def main(url: str) -> Any:
        async def agent(told: Told) -> None:
            async with sse_client(url) as (reader, writer), ClientSession(reader, writer) as session:
                await shop(session, told)

        return await thrice(agent)

    with serving_events() as url:
        bare, live, again, trace = asyncio.run(main(url))
    assert bare == live == again
    assert names(trace) == SHOPPING
    target = trace.calls[0].request["target"]
    assert (target["transport"], target["url"].rpartition("/")[2]) == ("sse", "sse")


def test_events_that_nobody_sends() -> None:
    async def main() -> Any:
        async def agent(told: Told) -> None:
            try:
                async with (
                    sse_client("http://127.0.0.1:9/sse") as (reader, writer),
                    ClientSession(reader, writer),
                ):
                    told.see("connected")
            except BaseException as error:  # noqa: BLE001 - whatever it is, it is compared
                told.see((type(error), str(error)))

        return await thrice(agent)

    bare, live, again, _ = asyncio.run(main())
    assert bare == live == again
    assert "connected" not in bare[0]
    assert len(bare) == 1


PICTURE = PIXEL + bytes(range(256)) * 400
SOUND = b"RIFF" + bytes(reversed(range(256))) * 300
PAPER = b"%PDF-1.7\n" + bytes(range(7, 240)) * 350


def studio() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("studio")

    @server.tool(structured_output=False)
    def media() -> list[Any]:
        paper = BlobResourceContents(uri="studio://paper", mime_type="application/pdf", blob=text_of(PAPER))
        return [
            Image(data=PICTURE, format="png"),
            Audio(data=SOUND, format="wav"),
            EmbeddedResource(type="resource", resource=paper),
        ]

    return server


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_images_sound_and_documents_come_back() -> None:
    """What a tool gave goes on to a model: the trace holds it once."""

    async def agent() -> Any:
        import openai

        async with (
            InMemoryTransport(studio()) as (reader, writer),
            ClientSession(reader, writer) as session,
            openai.AsyncOpenAI(base_url=url, api_key="unused") as client,
        ):
            await session.initialize()
            parts: Any = (await session.call_tool("media", {})).content
            image, sound, paper = parts
            content: Any = [
                {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{image.data}"}},
                {"type": "input_audio", "input_audio": {"data": sound.data, "format": "wav"}},
                {"type": "file", "file": {"file_data": paper.resource.blob, "filename": "a.pdf"}},
            ]
            answer = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": content}]
            )
            whole = text_of(PICTURE) == image.data
            return [whole, sound.mime_type, paper.resource.mime_type], answer.choices[0].message.content

    store = MemoryStore()
    with FakeProvider(["seen"]) as fake:
        url = fake.openai_url
        value, trace = recorded(agent, store)
    assert value == ([True, "audio/wav", "application/pdf"], "seen")
    data = store.read(store.runs()[0].run)
    times = [data.count(text_of(one)[:200].encode()) for one in (SOUND, PAPER, PICTURE)]
    assert times == [1, 1, 2]  # a data URL is another text than the base64 in it
    media = next(call for call in trace.calls if call.name == "media")
    assert [part["type"] for part in media.result["content"]] == ["image", "audio", "resource"]
    assert replayed(agent, trace) == value
