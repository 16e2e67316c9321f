"""An agent on the `mcp` SDK: the model wants a tool that a server has, which is a process of its own (this file).

Run it as it is, or recorded with ``agentloom run mcp_orders.py``.
"""

from __future__ import annotations

import asyncio
import json
import sys

import openai
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.server.mcpserver import MCPServer
from mcp.types import TextContent, Tool

server = MCPServer("orders")


@server.tool()
def look_up(order: int) -> str:
    """What is in an order."""
    return f"order {order}: one pair of shoes, 40 dollars"


def offered(tool: Tool) -> openai.types.chat.ChatCompletionToolParam:
    return {"type": "function", "function": {"name": tool.name, "parameters": tool.input_schema}}


async def main() -> None:
    shop = StdioServerParameters(command=sys.executable, args=[__file__, "serve"])
    async with (
        openai.AsyncOpenAI() as client,
        stdio_client(shop) as (reader, writer),
        ClientSession(reader, writer) as session,
    ):
        await session.initialize()
        tools = [offered(tool) for tool in (await session.list_tools()).tools]
        messages: list[openai.types.chat.ChatCompletionMessageParam] = [
            {"role": "user", "content": "What does order 812 cost?"}
        ]
        while True:
            said = await client.chat.completions.create(model="gpt-4o", messages=messages, tools=tools)
            message = said.choices[0].message
            if not message.tool_calls:
                print(message.content)
                return
            messages.append(message.model_dump(exclude_none=True))  # type: ignore[arg-type]
            for call in message.tool_calls:
                if call.type != "function":
                    continue
                result = await session.call_tool(call.function.name, json.loads(call.function.arguments))
                text = "".join(part.text for part in result.content if isinstance(part, TextContent))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        server.run("stdio")
    else:
        asyncio.run(main())
