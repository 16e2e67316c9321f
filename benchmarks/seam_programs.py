"""Programs that make calls through one SDK or HTTP client each, as they stand in unmodified agents.

Each makes one client, keeps its connection, and calls the server at ``url`` so many times. The same function is run
bare, recorded and replayed.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["NEEDS", "OFF", "PROGRAMS", "Program"]

MESSAGES: list[Any] = [
    {"role": "system", "content": "You help with orders. " * 20},
    {"role": "user", "content": "What does order 812 cost, and when does it arrive?"},
]
BODY = {"q": MESSAGES}
Program = Callable[[str, int], Any]


def openai_sync(url: str, calls: int) -> Any:
    import openai

    with openai.OpenAI(base_url=url + "/v1", api_key="unused") as c:
        for _ in range(calls):
            c.chat.completions.create(model="m", messages=MESSAGES)


async def openai_async(url: str, calls: int) -> Any:
    import openai

    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="unused") as c:
        for _ in range(calls):
            await c.chat.completions.create(model="m", messages=MESSAGES)


def openai_stream(url: str, calls: int) -> Any:
    import openai

    with openai.OpenAI(base_url=url + "/v1", api_key="unused") as c:
        for _ in range(calls):
            for _ in c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                pass


async def openai_async_stream(url: str, calls: int) -> Any:
    import openai

    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="unused") as c:
        for _ in range(calls):
            async for _ in await c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                pass


def anthropic_sync(url: str, calls: int) -> Any:
    import anthropic

    with anthropic.Anthropic(base_url=url, api_key="unused") as c:
        for _ in range(calls):
            c.messages.create(model="m", max_tokens=9, messages=MESSAGES[1:])


async def anthropic_async(url: str, calls: int) -> Any:
    import anthropic

    async with anthropic.AsyncAnthropic(base_url=url, api_key="unused") as c:
        for _ in range(calls):
            await c.messages.create(model="m", max_tokens=9, messages=MESSAGES[1:])


def anthropic_stream(url: str, calls: int) -> Any:
    import anthropic

    with anthropic.Anthropic(base_url=url, api_key="unused") as c:
        for _ in range(calls):
            for _ in c.messages.create(model="m", max_tokens=9, messages=MESSAGES[1:], stream=True):
                pass


def _google(url: str) -> Any:
    from google import genai
    from google.genai import types

    return genai.Client(api_key="unused", http_options=types.HttpOptions(base_url=url))


def google_sync(url: str, calls: int) -> Any:
    with _google(url) as c:
        for _ in range(calls):
            c.models.generate_content(model="g", contents="hello")


async def google_async(url: str, calls: int) -> Any:
    c = _google(url)
    for _ in range(calls):
        await c.aio.models.generate_content(model="g", contents="hello")
    await c.aio.aclose()


def google_stream(url: str, calls: int) -> Any:
    with _google(url) as c:
        for _ in range(calls):
            for _ in c.models.generate_content_stream(model="g", contents="hello"):
                pass


def litellm_sync(url: str, calls: int) -> Any:
    import litellm

    for _ in range(calls):
        litellm.completion(model="openai/m", messages=MESSAGES, api_base=url + "/v1", api_key="unused")


async def litellm_async(url: str, calls: int) -> Any:
    import litellm

    for _ in range(calls):
        await litellm.acompletion(model="openai/m", messages=MESSAGES, api_base=url + "/v1", api_key="unused")


def httpx_sync(url: str, calls: int) -> Any:
    import httpx

    with httpx.Client() as c:
        for _ in range(calls):
            c.post(url + "/x", json=BODY).json()


async def httpx_async(url: str, calls: int) -> Any:
    import httpx

    async with httpx.AsyncClient() as c:
        for _ in range(calls):
            (await c.post(url + "/x", json=BODY)).json()


def httpx2_sync(url: str, calls: int) -> Any:
    import httpx2

    with httpx2.Client() as c:
        for _ in range(calls):
            c.post(url + "/x", json=BODY).json()


async def httpx2_async(url: str, calls: int) -> Any:
    import httpx2

    async with httpx2.AsyncClient() as c:
        for _ in range(calls):
            (await c.post(url + "/x", json=BODY)).json()


def requests_sync(url: str, calls: int) -> Any:
    import requests

    with requests.Session() as c:
        for _ in range(calls):
            c.post(url + "/x", json=BODY, timeout=9).json()


def urllib_sync(url: str, calls: int) -> Any:
    import json
    import urllib.request

    headers = {"content-type": "application/json"}
    for _ in range(calls):
        asked = urllib.request.Request(url + "/x", json.dumps(BODY).encode(), headers)
        with urllib.request.urlopen(asked, timeout=9) as answer:
            json.load(answer)


async def aiohttp_async(url: str, calls: int) -> Any:
    import aiohttp

    async with aiohttp.ClientSession() as c:
        for _ in range(calls):
            async with c.post(url + "/x", json=BODY) as answer:
                await answer.json()


def langchain_sync(url: str, calls: int) -> Any:
    """A tool of LangChain that asks the server: the tool is the call, its request is part of it."""
    import httpx2
    from langchain_core.tools import tool

    with httpx2.Client() as c:

        @tool
        def lookup(order: int) -> dict[str, Any]:
            """What an order costs."""
            found: dict[str, Any] = c.post(url + "/x", json={"order": order}).json()
            return found

        for order in range(calls):
            lookup.invoke({"order": order})


async def mcp_async(_: str, calls: int) -> Any:
    """A tool of an MCP server, over stdio."""
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    shop = StdioServerParameters(command=sys.executable, args=["-m", "benchmarks.seams", "--mcp"])
    async with stdio_client(shop) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        for order in range(calls):
            await session.call_tool("total", {"order": order})


PROGRAMS: dict[str, Program] = {
    name.replace("_", " "): one
    for name, one in list(globals().items())
    if name.endswith(("_sync", "_async", "_stream")) and inspect.isfunction(one)
}
"""By the name of the seam and the manner of the call."""

OFF = ("openai sync", "httpx2 async", "requests sync", "aiohttp async")
"""Of these it is measured that they cost nothing more where agentloom is off."""

NEEDS: dict[str, str] = {"google": "google.genai", "langchain": "langchain_core", "urllib": "urllib.request"}
"""What a program imports, by the first word of its name, where that is another one."""
