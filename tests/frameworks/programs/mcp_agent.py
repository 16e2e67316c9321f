# mypy: ignore-errors
"""MCP: a loop of tools over two servers at once, one a process (this file), one in memory; progress."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.server.mcpserver import Context, MCPServer
from openai import AsyncOpenAI

shop = MCPServer("shop")


@shop.tool()
async def price(item: str, ctx: Context) -> str:
    await ctx.report_progress(1, 2, item)
    return f"{item} costs {len(item)}"


@shop.tool()
def stock(item: str) -> str:
    return str(len(item) * 10)


async def answer(model: AsyncOpenAI, server: Any, question: str, seen: list[str]) -> str:
    async def progress(done: float, total: Any, message: Any) -> None:
        seen.append(message)

    async def call(wanted: Any) -> dict[str, str]:
        asked, given = wanted.function, json.loads(wanted.function.arguments)
        result = await server.call_tool(asked.name, given, progress_callback=progress)
        return {"role": "tool", "tool_call_id": wanted.id, "content": result.content[0].text}

    listed = (await server.list_tools()).tools
    forms = ({"name": tool.name, "parameters": tool.input_schema} for tool in listed)
    tools = [{"type": "function", "function": form} for form in forms]
    messages = [{"role": "user", "content": question}]
    while True:
        said = await model.chat.completions.create(model="m", messages=messages, tools=tools)
        message = said.choices[0].message
        if not message.tool_calls:
            return message.content
        messages += [message.model_dump(), *await asyncio.gather(*map(call, message.tool_calls))]


async def agent(url: str, question: str) -> list[Any]:
    seen, model = [], AsyncOpenAI(base_url=url, api_key="unused")
    here = stdio_client(StdioServerParameters(command=sys.executable, args=[__file__]))
    async with model, Client(shop) as near, here as streams, ClientSession(*streams) as far:
        await far.initialize()
        return [await asyncio.gather(*(answer(model, one, question, seen) for one in (far, near))), seen]


if __name__ == "__main__":
    shop.run("stdio")
