# mypy: ignore-errors
"""A pydantic-ai agent whose parallel tools, async and sync, ask another agent."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Bill(BaseModel):
    lines: list[str]
    made: datetime


async def agent(url: str, question: str) -> Bill:
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="unused"))
    shop = Agent(model, deps_type=str, instructions="Look up prices.")
    checker = Agent(model, instructions="Check the price.")

    @shop.tool
    async def price(context: RunContext[str], item: str) -> str:
        """The price of an item."""
        checked = await checker.run(f"check: {item} for {context.deps}")
        return f"{item} costs {len(item)} ({checked.output})"

    @shop.tool_plain
    def stock(item: str) -> int:
        """How many there are."""
        return len(item) * 10

    result = await shop.run(question, deps="Ada")
    return Bill(lines=result.output.split(" / "), made=datetime.now(UTC))
