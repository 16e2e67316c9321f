"""The anthropic SDK: messages, helpers, counting, beta, Vertex and Bedrock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anthropic

from agentloom.testing import Drops, Fails, Raw, Says, Wants
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen
from tests.adapters.contract.common import HTML, SLOW, errors, raised

MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
ASK: dict[str, Any] = {"model": "m", "max_tokens": 50, "messages": MESSAGES}
TEXT = Says("It costs forty dollars.", reasoning="hm, prices", usage=(11, 3, 7, 2))
TOOLS = Says(tools=[Wants("lookup", {"id": 812, "deep": {"a": [1, 2.5]}})])
ODD = Raw(
    b'{"id":"msg_1","type":"message","role":"assistant","model":"m","new":{"a":1.50},"content":[{"type":"strange","x":1},'
    b'{"type":"text","text":"caf\\u00e9","citations":null}],"stop_reason":"paused","stop_sequence":null,'
    b'"usage":{"input_tokens":1,"output_tokens":2,"novel":3}}'
)
BUSY = Fails(429, "slow down", retry_after=0.01)
OVER = Fails(529, "Overloaded", code="overloaded_error", retry_after=0.7)
COUNTED = Raw(b'{"input_tokens": 42}')


@contextlib.contextmanager
def client(url: str, **options: Any) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=url, api_key="unused", **{"max_retries": 0, **options}) as made:
        yield made


@contextlib.asynccontextmanager
async def aclient(url: str, **options: Any) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(
        base_url=url, api_key="unused", **{"max_retries": 0, **options}
    ) as made:
        yield made


def whole(url: str) -> Any:
    with client(url) as c:
        return [seen(c.messages.create(**ASK, metadata={"user_id": "u"})) for _ in range(3)]


async def whole_async(url: str) -> Any:
    async with aclient(url) as c:
        return [seen(await c.messages.create(**ASK)) for _ in range(3)]


def beta(url: str) -> Any:
    with client(url) as c:
        made = c.beta.messages.create(**ASK, betas=["some-beta-2025-01-01"])
        return seen(made), seen(c.messages.count_tokens(model="m", messages=MESSAGES))


async def beta_async(url: str) -> Any:
    async with aclient(url) as c:
        made = await c.beta.messages.create(**ASK, betas=["some-beta-2025-01-01"])
        return seen(made), seen(await c.messages.count_tokens(model="m", messages=MESSAGES))


def stream(url: str) -> Any:
    with client(url) as c:
        events = c.messages.create(**ASK, stream=True)
        return [seen(one) for one in events], seen(events.response)


async def stream_async(url: str) -> Any:
    async with aclient(url) as c:
        events = await c.messages.create(**ASK, stream=True)
        return [seen(one) async for one in events], seen(events.response)


def helper(url: str) -> Any:
    with client(url) as c, c.messages.stream(**ASK) as events:
        kinds = [event.type for event in events]
        return kinds, seen(events.get_final_message()), events.request_id


def text_helper(url: str) -> Any:
    with client(url) as c, c.messages.stream(**ASK) as events:
        return list(events.text_stream), events.get_final_text()


async def helper_async(url: str) -> Any:
    async with aclient(url) as c, c.messages.stream(**ASK) as events:
        kinds = [event.type async for event in events]
        return kinds, seen(await events.get_final_message())


def early(url: str) -> Any:
    with client(url) as c, c.messages.create(**ASK, stream=True) as events:
        return [seen(next(iter(events))) for _ in range(3)]


async def early_async(url: str) -> Any:
    async with aclient(url) as c, c.messages.stream(**ASK) as events:
        async for text in events.text_stream:
            return text
    return None


def failing(url: str) -> Any:
    with client(url) as c:
        return raised(anthropic.AnthropicError, c.messages.create, **ASK)


async def failing_async(url: str) -> Any:
    async with aclient(url) as c:
        try:
            await c.messages.create(**ASK)
        except anthropic.AnthropicError as error:
            return seen(error)
    return "no error"


def failing_stream(url: str) -> Any:
    found: list[Any] = []
    with client(url) as c:
        try:
            for one in c.messages.create(**ASK, stream=True):
                found.append(seen(one))  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append(seen(error))
    return found


async def failing_stream_async(url: str) -> Any:
    found: list[Any] = []
    async with aclient(url) as c:
        try:
            async with c.messages.stream(**ASK) as events:
                async for one in events:
                    found.append(one.type)  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - as above
            found.append(seen(error))
    return found


def retried(url: str) -> Any:
    with client(url, max_retries=2) as c:
        answer = c.messages.with_raw_response.create(**ASK)
        return seen(answer.parse()), answer.retries_taken


async def retried_async(url: str) -> Any:
    async with aclient(url, max_retries=2) as c:
        return seen(await c.messages.create(**ASK))


def limited(url: str) -> Any:
    with client(url, timeout=0.2) as c:
        return raised(anthropic.APITimeoutError, c.messages.create, **ASK)


async def cancelled(url: str) -> Any:
    async with aclient(url) as c:
        try:
            await asyncio.wait_for(c.messages.create(**ASK), 0.7)
        except TimeoutError:
            return (await c.messages.create(**ASK)).content[-1].type
    return "no timeout"


def raw(url: str) -> Any:
    with client(url) as c:
        answer = c.messages.with_raw_response.create(**ASK)
        with c.messages.with_streaming_response.create(**ASK) as pieces:
            text = pieces.read()
        return [seen(answer.parse()), seen(answer.http_response), answer.request_id, seen(text)]


async def raw_async(url: str) -> Any:
    async with aclient(url) as c:
        answer = await c.messages.with_raw_response.create(**ASK)
        async with c.messages.with_streaming_response.create(**ASK) as pieces:
            text = await pieces.read()
        made: Any = answer.parse()
        return [
            seen(await made if asyncio.iscoroutine(made) else made),
            seen(answer.http_response),
            seen(text),
        ]


def bedrock(url: str) -> Any:
    options: Any = {"aws_access_key": "unused", "aws_secret_key": "unused", "aws_region": "us-east-1"}
    with anthropic.AnthropicBedrock(base_url=url, max_retries=0, **options) as c:
        return seen(c.messages.create(**ASK))


def vertex(url: str) -> Any:
    options: Any = {"access_token": "unused", "project_id": "p", "region": "us-east5"}
    with anthropic.AnthropicVertex(base_url=url + "/v1", max_retries=0, **options) as c:
        whole = seen(c.messages.create(**ASK))
        return whole, [seen(one) for one in c.messages.create(**ASK, stream=True)]


WHOLE = Raw(
    b'{"id":"msg_2","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hello"}],'
    b'"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2}}'
)
STREAMED = Raw(
    b'event: message_start\r\ndata: {"type":"message_start","message":{"id":"msg_3","type":"message",'
    b'"role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\r\n'
    b'\r\nevent: message_stop\r\ndata: {"type": "message_stop"}\r\n\r\n',
    200,
    {"content-type": "text/event-stream"},
)

MESSAGES_SEAM = Seam(
    "anthropic messages",
    [
        Case("sync", whole, [TEXT, TOOLS, ODD], ["model"] * 3),
        Case("sync", beta, [TEXT, COUNTED], ["model", "http"], "beta, count_tokens"),
        Case("sync", bedrock, [WHOLE], ["model"], "Bedrock"),
        Case("sync", vertex, [WHOLE, STREAMED], ["model"] * 2, "Vertex"),
        Case("async", whole_async, [TEXT, TOOLS, ODD], ["model"] * 3),
        Case("async", beta_async, [TEXT, COUNTED], ["model", "http"], "beta, count_tokens"),
        Case("stream", stream, [TEXT], ["model"]),
        Case("stream", stream, [TOOLS], ["model"], "of tools"),
        Case("stream", helper, [TEXT], ["model"], "helper"),
        Case("stream", text_helper, [TEXT], ["model"], "text helper"),
        Case("stream", stream_async, [TOOLS], ["model"]),
        Case("stream", helper_async, [TOOLS], ["model"], "helper"),
        Case("left early", early, [TEXT], ["model"]),
        Case("left early", early_async, [TEXT], ["model"]),
        *errors(
            (failing, failing_async, failing_stream, failing_stream_async),
            {"429": BUSY, "not JSON": HTML, "dropped": Drops()},
        ),
        *errors(
            (failing_stream, failing_stream_async),
            {
                "broken stream": Says("one two three", break_after=4),
                "error in a stream": Says("one two three", error_after=4),
            },
        ),
        Case("retry", retried, [OVER, BUSY, TEXT], ["model", "sleep"] * 2 + ["model"], waits=True),
        Case("retry", retried_async, [BUSY, Drops(), TEXT], ["model", "sleep"] * 2 + ["model"]),
        Case("cancel", limited, [SLOW], ["model"], "by a time limit"),
        Case("cancel", cancelled, [SLOW, TEXT], ["model"] * 2, waits=True),
        Case("raw", raw, [TEXT, TEXT], ["model"] * 2),
        Case("raw", raw_async, [TEXT, TEXT], ["model"] * 2),
    ],
)

SEAMS = [MESSAGES_SEAM]
