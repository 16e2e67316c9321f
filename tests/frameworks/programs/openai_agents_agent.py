# mypy: ignore-errors
"""OpenAI Agents SDK: parallel tools, a hand-off, and three runs at once whose events are read as they come."""

from __future__ import annotations

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(disabled=True)


@function_tool
async def price(item: str) -> str:
    """The price of an item."""
    return f"{item} costs {len(item)}"


@function_tool
def stock(item: str) -> int:
    """How many there are."""
    return len(item) * 10


async def one(shop: Agent, question: str) -> str:
    result = await Runner.run(shop, question)
    return f"{result.last_agent.name}: {result.final_output}"


async def streamed(shop: Agent, question: str) -> str:
    result = Runner.run_streamed(shop, question)
    kinds = [event.type async for event in result.stream_events()]
    return f"{len(kinds)} events: {result.final_output}"


async def agent(url: str, question: str) -> list[str]:
    async with AsyncOpenAI(base_url=url, api_key="unused", max_retries=0) as client:
        model = OpenAIChatCompletionsModel(model="m", openai_client=client)
        clerk = Agent(name="clerk", instructions="Add up.", model=model)
        shop = Agent(name="shop", instructions="Sell.", model=model, tools=[price, stock], handoffs=[clerk])
        return await asyncio.gather(
            one(shop, f"{question} a"), streamed(shop, f"{question} b"), one(shop, f"{question} c")
        )
