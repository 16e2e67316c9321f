# mypy: ignore-errors
"""pydantic-ai agents with tools over its OpenAI model."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from agentloom.testing import Drops, Says, Wants
from agentloom.testing.sdk_contract import Case, Seam
from tests.adapters.contract.common import BUSY, HTML, SLOW
from tests.adapters.contract.shop import TEXT, TOOLS, TWICE, client_of, problem, tidy

AGAIN = ("timestamp", "run_id", "conversation_id", "id", "part_id")  # drawn, or the time


class Bill(BaseModel):
    """What an agent may have to answer."""

    total: int


def shop(url: str, retries: int = 0, **options: Any) -> Agent[Any, Any]:
    model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client_of(url, retries)))
    made = Agent(model, instructions="Look up prices.", **options)

    @made.tool_plain
    async def price(item: str) -> str:
        """The price of an item."""
        if item == "again":
            raise ModelRetry("ask for another item")
        return f"{item} costs {len(item)}"

    return made


def facts(result: Any) -> Any:
    messages = ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json")
    output = result.output
    usage = result.usage
    return [type(output).__name__, str(output), plain(messages), usage.requests, usage.input_tokens]


def plain(value: Any) -> Any:
    """Without what is drawn or tells the time."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in AGAIN}
    return [plain(one) for one in value] if isinstance(value, list) else value


def whole(url: str) -> Any:
    return facts(shop(url).run_sync("hello"))


@tidy
async def whole_async(url: str) -> Any:
    return facts(await shop(url).run("hello"))


@tidy
async def typed(url: str) -> Any:
    return facts(await shop(url, output_type=Bill).run("hello"))


@tidy
async def stream(url: str) -> Any:
    async with shop(url).run_stream("hello") as result:
        texts = [text async for text in result.stream_text(debounce_by=None)]
        return texts, plain(ModelMessagesTypeAdapter.dump_python(result.all_messages(), mode="json"))


@tidy
async def nodes(url: str) -> Any:
    async with shop(url).iter("hello") as run:
        found = [type(node).__name__ async for node in run]
        return found, facts(run.result)


@tidy
async def early(url: str) -> Any:
    async with shop(url).run_stream("hello") as result:
        async for text in result.stream_text(delta=True, debounce_by=None):
            return text
    return None


@tidy
async def failing(url: str) -> Any:
    found: list[Any] = []
    for _ in range(3):
        try:
            found.append(facts(await shop(url).run("hello")))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append(problem(error))
    return found


@tidy
async def failing_stream(url: str) -> Any:
    found: list[Any] = []
    try:
        async with shop(url).run_stream("hello") as result:
            async for text in result.stream_text(delta=True, debounce_by=None):
                found.append(text)  # noqa: PERF401 - what came before an error counts
    except Exception as error:  # noqa: BLE001 - as above
        found.append(problem(error))
    return found


@tidy
async def retried(url: str) -> Any:
    return facts(await shop(url, 2).run("hello"))


@tidy
async def asked_again(url: str) -> Any:
    return facts(await shop(url, retries=0).run("hello"))


@tidy
async def cancelled(url: str) -> Any:
    try:
        await asyncio.wait_for(shop(url).run("hello"), 0.7)
    except TimeoutError:
        return facts(await shop(url).run("hello"))
    return "no timeout"


REFUSED = Says(tools=[Wants("price", {"item": "again"})])
BILL = Says(tools=[Wants("final_result", {"total": 40})])

SEAMS = [
    Seam(
        "pydantic-ai",
        [
            Case("sync", whole, [TOOLS, TEXT], TWICE, block=True),
            Case("async", whole_async, [TOOLS, TEXT], TWICE),
            Case("async", typed, [TOOLS, BILL], TWICE, "typed output"),
            Case("stream", stream, [TOOLS, TEXT], TWICE),
            Case("stream", nodes, [TOOLS, TEXT], TWICE, "node by node"),
            Case("left early", early, [TEXT], ["model"]),
            Case("error", failing, [BUSY, HTML, Drops()], ["model"] * 3),
            Case("error", failing_stream, [Says("a b c", break_after=2)], ["model"], "broken stream"),
            Case("retry", retried, [BUSY, Drops(), TEXT], ["model", "sleep"] * 2 + ["model"]),
            Case("retry", asked_again, [REFUSED, TEXT], ["model", "tool", "model"], "asked of the model"),
            Case("cancel", cancelled, [SLOW, TEXT], ["model"] * 2, waits=True),
        ],
        lacks={"raw": "it gives no raw response"},
    )
]
