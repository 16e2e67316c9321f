# mypy: ignore-errors
"""pydantic-ai in sync code: parallel tools, async and sync ones, that change the dependencies, and `run_sync`."""

from __future__ import annotations

from dataclasses import dataclass, field

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


@dataclass
class Basket:
    owner: str
    items: list[str] = field(default_factory=list)


def agent(url: str, question: str) -> dict[str, object]:
    model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=url, api_key="unused"))
    shop = Agent(model, deps_type=Basket, instructions="Look up prices.")

    @shop.tool
    async def price(context: RunContext[Basket], item: str) -> str:
        """The price of an item."""
        context.deps.items.append(item)
        return f"{item} costs {len(item)} for {context.deps.owner}"

    @shop.tool_plain
    def stock(item: str) -> int:
        """How many there are."""
        return len(item) * 10

    basket = Basket("Ada")
    result = shop.run_sync(question, deps=basket)
    return {"said": result.output, "basket": sorted(basket.items), "requests": result.usage.requests}
