# mypy: ignore-errors
"""litellm without a framework: two conversations at once, each with its loop of tools, and a stream."""

from __future__ import annotations

import asyncio
import json
import os

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import litellm

TOOLS = [{"type": "function", "function": {"name": "price", "parameters": {"type": "object"}}}]


def price(item: str) -> str:
    return f"{item} costs {len(item)}"


async def converse(url: str, question: str) -> str:
    where = {"model": "openai/m", "api_base": url, "api_key": "unused"}
    messages = [{"role": "user", "content": question}]
    while True:
        answer = await litellm.acompletion(messages=messages, tools=TOOLS, **where)
        message = answer.choices[0].message
        if not message.tool_calls:
            return message.content
        messages.append(message.model_dump())
        for call in message.tool_calls:
            found = price(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})


async def streamed(url: str, question: str) -> str:
    chunks = await litellm.acompletion(
        model="openai/m",
        api_base=url,
        api_key="unused",
        messages=[{"role": "user", "content": question}],
        stream=True,
    )
    return "".join([chunk.choices[0].delta.content or "" async for chunk in chunks])


async def agent(url: str, question: str) -> list[str]:
    return await asyncio.gather(
        converse(url, f"{question} a"), streamed(url, f"{question} b"), converse(url, f"{question} c")
    )
