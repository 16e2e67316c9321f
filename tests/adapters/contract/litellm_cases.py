"""litellm: OpenAI's protocol through openai's client, Anthropic's through its own; httpx and aiohttp below."""

from __future__ import annotations

import asyncio
import os
from typing import Any

os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # importing it would fetch prices

import litellm

from agentloom.testing import Drops, Says, Wants
from agentloom.testing.sdk_contract import Case, Seam
from tests.adapters.contract.common import BUSY, HTML, SLOW

MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
TEXT = Says("It costs forty dollars.", usage=(11, 3, 7, 2))
TOOLS = Says(tools=[Wants("lookup", {"id": 812})])


def openai_like(url: str, **more: Any) -> dict[str, Any]:
    return {
        "model": "openai/m",
        "messages": MESSAGES,
        "api_base": url + "/v1",
        "api_key": "unused",
        "max_retries": 0,
        **more,
    }


def anthropic_like(url: str, **more: Any) -> dict[str, Any]:
    return {
        "model": "anthropic/claude-x",
        "messages": MESSAGES,
        "api_base": url + "/v1/messages",
        "api_key": "unused",
        **more,
    }


def ask_once(url: str, model: str) -> None:
    """Ask ``model`` of a server of OpenAI's protocol at ``url``, which ends in its version."""
    litellm.completion(f"openai/{model}", MESSAGES, api_base=url, api_key="unused")


def facts(answer: Any) -> Any:
    """What litellm's objects say. Those that it stamps itself (when it was made, how long it took) are left out."""
    made = answer.model_dump(exclude={"created"})
    if "fake" not in str(made.get("id")):
        made["id"] = "its own"
    return [type(answer).__qualname__, made, sorted(answer.model_fields_set - {"created"})]


def problem(error: BaseException) -> Any:
    names = ("status_code", "message", "model", "llm_provider")
    return [
        f"{type(error).__module__}.{type(error).__qualname__}",
        str(error),
        [str(getattr(error, name, None)) for name in names],
    ]


def embed(url: str) -> dict[str, Any]:
    return {"model": "openai/e", "input": ["a b"], "api_base": url + "/v1", "api_key": "unused"}


def whole(url: str) -> Any:
    return [
        facts(litellm.completion(**openai_like(url))),
        facts(litellm.completion(**openai_like(url))),
        facts(litellm.completion(**anthropic_like(url))),
        facts(litellm.embedding(**embed(url), encoding_format="float")),
    ]


async def whole_async(url: str) -> Any:
    return [
        facts(await litellm.acompletion(**openai_like(url))),
        facts(await litellm.acompletion(**anthropic_like(url))),
        facts(await litellm.aembedding(**embed(url), encoding_format="float")),
    ]


def stream(url: str) -> Any:
    return [
        [facts(one) for one in litellm.completion(**ask(url, stream=True))]
        for ask in (openai_like, anthropic_like)
    ]


async def stream_async(url: str) -> Any:
    return [
        [facts(one) async for one in await litellm.acompletion(**ask(url, stream=True))]
        for ask in (openai_like, anthropic_like)
    ]


def early(url: str) -> Any:
    return [
        facts(next(iter(litellm.completion(**ask(url, stream=True)))))
        for ask in (openai_like, anthropic_like)
    ]


async def early_async(url: str) -> Any:
    async for one in await litellm.acompletion(**openai_like(url, stream=True)):
        return facts(one)
    return None


def failing(url: str) -> Any:
    found: list[Any] = []
    for ask in (openai_like, anthropic_like, openai_like, openai_like):
        try:
            found.append(facts(litellm.completion(**ask(url))))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append(problem(error))
    return found


async def failing_async(url: str) -> Any:
    found: list[Any] = []
    for ask in (openai_like, anthropic_like, openai_like, openai_like):
        try:
            found.append(facts(await litellm.acompletion(**ask(url))))
        except Exception as error:  # noqa: BLE001 - as above
            found.append(problem(error))
    return found


def retried(url: str) -> Any:
    return facts(litellm.completion(**openai_like(url, max_retries=2)))


async def cancelled(url: str) -> Any:
    try:
        await asyncio.wait_for(litellm.acompletion(**openai_like(url)), 0.7)
    except TimeoutError:
        return facts(await litellm.acompletion(**openai_like(url)))
    return "no timeout"


SEAMS = [
    Seam(
        "litellm",
        [
            Case("sync", whole, [TEXT, TOOLS, TEXT, Says("a b")], ["model"] * 4),
            Case("async", whole_async, [TEXT, TOOLS, Says("a b")], ["model"] * 3),
            Case("stream", stream, [TEXT, TOOLS], ["model"] * 2),
            Case("stream", stream_async, [TOOLS, TEXT], ["model"] * 2),
            Case("left early", early, [TEXT, TEXT], ["model"] * 2),
            Case("left early", early_async, [TEXT], ["model"]),
            Case("error", failing, [BUSY, BUSY, HTML, Drops()]),
            Case("error", failing_async, [BUSY, BUSY, HTML, Drops()]),
            Case("retry", retried, [BUSY, Drops(), TEXT], ["model", "sleep"] * 2 + ["model"]),
            Case("cancel", cancelled, [SLOW, TEXT], ["model"] * 2, waits=True),
        ],
        lacks={"raw": "it gives no raw response"},
    )
]
