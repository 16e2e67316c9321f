# mypy: ignore-errors
"""OpenAI's Agents SDK: agents with tools over both of its models."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)

from agentloom.testing import Drops, Says, Wants
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen
from tests.adapters.contract.common import BUSY, HTML, SLOW
from tests.adapters.contract.shop import NOTHING, TEXT, TOOLS, TWICE, client_of, problem, tidy

set_tracing_disabled(disabled=True)
OVER = Says(tools=[Wants("transfer_to_seller", {})])


@function_tool(failure_error_function=None)
async def price(item: str) -> str:
    """The price of an item."""
    if item == "nothing":
        raise LookupError("no such item")
    return f"{item} costs {len(item)}"


def shop(url: str, retries: int = 0, kind: Any = OpenAIChatCompletionsModel) -> Agent[Any]:
    model = kind(model="m", openai_client=client_of(url, retries))
    seller = Agent(name="seller", instructions="Sell.", model=model, tools=[price])
    return Agent(name="shop", instructions="Look up prices.", model=model, tools=[price], handoffs=[seller])


def facts(result: Any) -> Any:
    used = result.context_wrapper.usage
    return [
        result.final_output,
        result.last_agent.name,
        [type(item).__name__ for item in result.new_items],
        seen(result.to_input_list()),
        [seen(one.output) for one in result.raw_responses],
        [used.requests, used.input_tokens, used.output_tokens],
    ]


def whole(url: str) -> Any:
    return facts(Runner.run_sync(shop(url), "hello"))


@tidy
async def whole_async(url: str) -> Any:
    return facts(await Runner.run(shop(url), "hello"))


@tidy
async def responses(url: str) -> Any:
    return facts(await Runner.run(shop(url, kind=OpenAIResponsesModel), "hello"))


def event(one: Any) -> Any:
    raw = getattr(one, "data", None)
    return [one.type, getattr(one, "name", None), getattr(raw, "type", None), getattr(raw, "delta", None)]


@tidy
async def stream(url: str) -> Any:
    result = Runner.run_streamed(shop(url), "hello")
    return [event(one) async for one in result.stream_events()], facts(result)


@tidy
async def early(url: str) -> Any:
    result = Runner.run_streamed(shop(url), "hello")
    async for one in result.stream_events():
        if one.type == "raw_response_event":
            result.cancel()
            return event(one)
    return None


@tidy
async def failing(url: str) -> Any:
    found: list[Any] = []
    for _ in range(4):  # the model's errors, then the tool's
        try:
            found.append(facts(await Runner.run(shop(url), "hello")))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append(problem(error))
    return found


@tidy
async def failing_stream(url: str) -> Any:
    found: list[Any] = []
    try:
        async for one in Runner.run_streamed(shop(url), "hello").stream_events():
            found.append(event(one))  # noqa: PERF401 - what came before an error counts
    except Exception as error:  # noqa: BLE001 - as above
        found.append(problem(error))
    return found


@tidy
async def retried(url: str) -> Any:
    return facts(await Runner.run(shop(url, 2), "hello"))


@tidy
async def cancelled(url: str) -> Any:
    try:
        await asyncio.wait_for(Runner.run(shop(url), "hello"), 0.7)
    except TimeoutError:
        return facts(await Runner.run(shop(url), "hello"))
    return "no timeout"


SEAMS = [
    Seam(
        "OpenAI Agents SDK",
        [
            Case("sync", whole, [TOOLS, TEXT], TWICE, block=True),
            Case("async", whole_async, [TOOLS, TEXT], TWICE),
            Case("async", whole_async, [OVER, TOOLS, TEXT], ["model", *TWICE], "hand-off"),
            Case("async", responses, [TOOLS, TEXT], TWICE, "Responses"),
            Case("stream", stream, [TOOLS, TEXT], TWICE),
            Case("left early", early, [TEXT], ["model"]),
            Case("error", failing, [BUSY, HTML, Drops(), NOTHING], ["model"] * 4 + ["tool"]),
            Case("error", failing_stream, [Says("a b c", break_after=2)], ["model"], "broken stream"),
            Case("retry", retried, [BUSY, Drops(), TEXT], ["model", "sleep"] * 2 + ["model"]),
            Case("cancel", cancelled, [SLOW, TEXT], ["model"] * 2, waits=True),
        ],
        lacks={"raw": "its responses are the model's items, which are compared"},
    )
]
