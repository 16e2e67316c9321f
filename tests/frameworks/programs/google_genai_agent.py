# mypy: ignore-errors
"""google-genai: functions that the SDK calls by itself, async and sync ones, in two chats at once, and a stream."""

from __future__ import annotations

import asyncio

from google import genai
from google.genai import types


def price(item: str) -> str:
    """The price of an item."""
    return f"{item} costs {len(item)}"


async def stock(item: str) -> int:
    """How many there are."""
    return len(item) * 10


async def converse(client: genai.Client, question: str) -> str:
    config = types.GenerateContentConfig(tools=[price, stock])
    chat = client.aio.chats.create(model="m", config=config)
    first = await chat.send_message(question)
    second = await chat.send_message("thanks")
    return f"{first.text} | {second.text}"


async def streamed(client: genai.Client, question: str) -> str:
    chunks = await client.aio.models.generate_content_stream(model="m", contents=question)
    return "".join([chunk.text or "" async for chunk in chunks])


async def agent(url: str, question: str) -> list[str]:
    options = types.HttpOptions(base_url=url.removesuffix("/v1"))
    client = genai.Client(api_key="unused", http_options=options)
    return await asyncio.gather(
        converse(client, f"{question} a"),
        streamed(client, f"{question} b"),
        converse(client, f"{question} c"),
    )
