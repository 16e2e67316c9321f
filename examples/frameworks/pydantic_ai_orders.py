"""pydantic-ai: tools that change the dependencies which they share with the agent."""

from dataclasses import dataclass, field

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel


@dataclass
class Case:
    """What tools and agent share."""

    ticket: str
    done: list[str] = field(default_factory=list)


support = Agent(OpenAIChatModel("gpt-4o"), deps_type=Case, instructions="Be brief.")


@support.tool_plain
async def look_up(order: int) -> str:
    """What an order is."""
    print("looking up", order)
    return f"order {order}: $40.00"


@support.tool
def refund(context: RunContext[Case], order: int) -> str:
    """Pays an order back."""
    context.deps.done.append(f"refund {order}")
    return f"refunded {order}"


case = Case("T-17")
print(support.run_sync("Refund order 812.", deps=case).output, case.done)
