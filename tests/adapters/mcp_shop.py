"""An MCP server for the tests: as a program it speaks over stdio. COUNT: a file that each start adds a line to."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.types import ToolAnnotations
from pydantic import BaseModel

__all__ = ["served"]

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c63f8cfc0f01f0005000"
    "1ff89993d1d0000000049454e44ae426082"
)


class Sure(BaseModel):
    """What is asked back."""

    ok: bool


def served(name: str = "shop") -> MCPServer[Any]:
    """A server of its own."""
    server: MCPServer[Any] = MCPServer(name, version="1.0")

    @server.tool(annotations=ToolAnnotations.model_validate({"readOnlyHint": True}))
    def total(order: int) -> int:
        """The total of an order."""
        return order // 20

    @server.tool()
    def refund(order: int) -> str:
        """Give the money back."""
        if order == 13:
            raise ValueError("no such order")
        return f"refunded {order} für dich ✓"

    @server.tool()
    def picture() -> Image:
        return Image(data=PIXEL, format="png")

    @server.tool()
    def die() -> str:
        os._exit(3)

    @server.tool()
    def large(size: int) -> str:
        return "ä" * size

    @server.tool()
    async def forever() -> str:
        await asyncio.Event().wait()
        return "never"

    @server.tool()
    async def slow(steps: int, ctx: Context[Any]) -> str:
        for step in range(steps):
            await ctx.report_progress(step, steps, f"step {step}")
        return "done"

    @server.tool()
    async def asks(ctx: Context[Any]) -> str:
        answer = await ctx.elicit("sure?", Sure)
        return answer.action

    @server.tool()
    async def grows(ctx: Context[Any]) -> str:
        """Has one tool more from now on, and says so."""
        server.add_tool(lambda order: order, name="status", description="The state of an order.")
        await ctx.session.send_tool_list_changed()
        await ctx.notify_tools_changed()
        return "grown"

    @server.resource("shop://orders/{number}")
    def order(number: str) -> str:
        return f"order {number}"

    @server.prompt()
    def greet(name: str) -> str:
        return f"hello {name}"

    return server


if __name__ == "__main__":
    if os.environ.get("COUNT"):
        with open(os.environ["COUNT"], "a", encoding="utf-8") as counted:
            counted.write("started\n")
    if sys.argv[1:] == ["noisy"]:
        print("this is no message", flush=True)
    served().run("stdio")
