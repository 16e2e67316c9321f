# mypy: ignore-errors
"""OpenAI Agents SDK in sync code: parallel tools, async and sync ones, an agent as a tool, and `run_sync` twice."""

from __future__ import annotations

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


def agent(url: str, question: str) -> list[str]:
    client = AsyncOpenAI(base_url=url, api_key="unused", max_retries=0)
    model = OpenAIChatCompletionsModel(model="m", openai_client=client)
    shop = Agent(name="shop", instructions="Sell.", model=model, tools=[price, stock])
    checker = Agent(name="checker", instructions="Check.", model=model)
    first = Runner.run_sync(shop, question)
    second = Runner.run_sync(checker, f"check: {first.final_output}")
    return [first.final_output, second.final_output, first.last_agent.name]
