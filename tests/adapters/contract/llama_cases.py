# mypy: ignore-errors
"""LlamaIndex: a function agent with tools in a workflow, over its OpenAI-like model."""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from llama_index.llms.openai_like import OpenAILike

from agentloom.testing import Drops
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen
from tests.adapters.contract.common import BUSY, HTML, SLOW
from tests.adapters.contract.shop import TEXT, TOOLS, TWICE

HELLO = [ChatMessage(role="user", content="hello")]


async def price(item: str) -> str:
    """The price of an item."""
    return f"{item} costs {len(item)}"


def model(url: str, retries: int = 0) -> OpenAILike:
    return OpenAILike(
        model="m", api_base=url + "/v1", api_key="unused", is_chat_model=True, is_function_calling_model=True,
        max_retries=retries, reuse_client=True,
    )  # fmt: skip


def facts(answer: Any) -> Any:
    message = answer.message
    calls = message.additional_kwargs.get("tool_calls") or []
    return [
        message.role.value,
        message.content,
        getattr(answer, "delta", None),
        seen(answer.raw),
        [seen(c) for c in calls],
    ]


class Shop(Workflow):
    """Asks the agent in a step."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(timeout=60, **options)
        self.agent = FunctionAgent(name="seller", llm=model(url), tools=[price])

    @step
    async def ask(self, event: StartEvent) -> StopEvent:
        answer = await self.agent.run(event.question)
        return StopEvent(result=[str(answer), [call.tool_name for call in answer.tool_calls]])


def whole(url: str) -> Any:
    return facts(model(url).chat(HELLO))


async def whole_async(url: str) -> Any:
    return await Shop(url).run(question="hello")


def stream(url: str) -> Any:
    return [facts(one) for one in model(url).stream_chat(HELLO)]


async def stream_async(url: str) -> Any:
    handler = FunctionAgent(name="seller", llm=model(url), tools=[price]).run("hello")
    told = [event.delta async for event in handler.stream_events() if isinstance(event, AgentStream)]
    return told, str(await handler)


def early(url: str) -> Any:
    return facts(next(iter(model(url).stream_chat(HELLO))))


async def early_async(url: str) -> Any:
    async for one in await model(url).astream_chat(HELLO):
        return facts(one)
    return None


async def failing(url: str) -> Any:
    found: list[Any] = []
    for _ in range(3):
        try:
            found.append(await Shop(url).run(question="hello"))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append([[one.__name__ for one in type(error).__mro__], str(error)])
    return found


async def retried(url: str) -> Any:
    return facts(await model(url, 2).achat(HELLO))


async def cancelled(url: str) -> Any:
    try:
        await asyncio.wait_for(model(url).achat(HELLO), 0.7)
    except TimeoutError:
        return facts(await model(url).achat(HELLO))
    return "no timeout"


SEAMS = [
    Seam(
        "LlamaIndex",
        [
            Case("sync", whole, [TEXT], ["model"]),
            Case("async", whole_async, [TOOLS, TEXT], TWICE),
            Case("stream", stream, [TEXT], ["model"]),
            Case("stream", stream_async, [TOOLS, TEXT], TWICE),
            Case("left early", early, [TEXT], ["model"]),
            Case("left early", early_async, [TEXT], ["model"]),
            Case("error", failing, [BUSY, HTML, Drops()], ["model"] * 3),
            Case("retry", retried, [BUSY, TEXT]),
            Case("cancel", cancelled, [SLOW, TEXT], ["model"] * 2, waits=True),
        ],
        lacks={"raw": "its `raw` is the SDK's object, which is compared"},
    )
]
