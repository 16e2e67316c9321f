# mypy: ignore-errors
"""OpenAI's Agents SDK: agents with tools over both of its models."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from agentloom.testing import Drops, Fails, Says, Wants
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen
from tests.adapters.contract.common import HTML, SLOW

set_tracing_disabled(disabled=True)
TEXT = Says("It costs forty dollars.", usage=(11, 3, 7, 2))
TOOLS = Says(tools=[Wants("price", {"item": "fig"}), Wants("price", {"item": "apple"})])
OVER = Says(tools=[Wants("transfer_to_seller", {})])
BUSY = Fails(429, "slow down", code="rate_limit_exceeded", retry_after=0.01)


CLIENTS: list[AsyncOpenAI] = []


def tidy(program: Any) -> Any:
    """The program, which then closes the clients that it has made."""

    @functools.wraps(program)
    async def closing(url: str) -> Any:
        CLIENTS.clear()
        try:
            return await program(url)
        finally:
            for client in CLIENTS:
                await client.close()

    return closing


@function_tool(failure_error_function=None)
async def price(item: str) -> str:
    """The price of an item."""
    if item == "nothing":
        raise LookupError("no such item")
    return f"{item} costs {len(item)}"


def shop(url: str, retries: int = 0, kind: Any = OpenAIChatCompletionsModel) -> Agent[Any]:
    client = AsyncOpenAI(base_url=url + "/v1", api_key="unused", max_retries=retries)
    CLIENTS.append(client)
    model = kind(model="m", openai_client=client)
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


def problem(error: BaseException) -> Any:
    below = error.__cause__
    names = [one.__name__ for one in type(error).__mro__]
    return [names, str(error), None if below is None else problem(below)]


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


TWICE = ["model", "tool", "tool", "model"]
NOTHING = Says(tools=[Wants("price", {"item": "nothing"})])

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
