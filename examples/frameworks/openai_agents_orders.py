"""OpenAI Agents SDK: a hand-off to an agent with a tool, run_sync."""

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(disabled=True)
model = OpenAIChatCompletionsModel(model="gpt-4o", openai_client=AsyncOpenAI(max_retries=0))


@function_tool
def look_up(order: int) -> str:
    """What an order is."""
    print("looking up", order)
    return f"order {order}: $40.00"


clerk = Agent(name="clerk", instructions="Look orders up.", model=model, tools=[look_up])
desk = Agent(name="desk", instructions="Hand over to the clerk.", model=model, handoffs=[clerk])
result = Runner.run_sync(desk, "What is order 812?")
print(result.last_agent.name, result.final_output)
