"""The openai SDK: chat completions, Responses, embeddings, legacy completions, Azure, files and audio."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pydantic

from agentloom.testing import Drops, Fails, Raw, Says, Wants
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen
from tests.adapters.contract.common import BUSY, HTML, SLOW, errors, raised

MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
TEXT = Says("It costs forty dollars.", usage=(11, 3, 7, 2), logprobs=[-0.1, -0.2, -0.3, -0.4])
TOOLS = Says(tools=[Wants("lookup", {"id": 812}), Wants("refund", '{"broken": ')])
ODD = Raw(
    b'{"id":"x","object":"chat.completion","created":1,"model":"m","new_field":{"a":[1,2.50,1e3]},"choices":[{"index":0,'
    b'"finish_reason":"eos","message":{"role":"assistant","content":"caf\\u00e9 \\ud83d","vendor":true}}],"usage":null}'
)
LATER = Fails(503, "come back", retry_after=0.7)
FORECAST = Says('{"city": "Riga", "degrees": -3.5}')


class Forecast(pydantic.BaseModel):
    city: str
    degrees: float


@contextlib.contextmanager
def client(url: str, **options: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url + "/v1", api_key="unused", **{"max_retries": 0, **options}) as made:
        yield made


@contextlib.asynccontextmanager
async def aclient(url: str, **options: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(
        base_url=url + "/v1", api_key="unused", **{"max_retries": 0, **options}
    ) as made:
        yield made


def whole(url: str) -> Any:
    with client(url) as c:
        return [
            seen(c.chat.completions.create(model="m", messages=MESSAGES, user="u", logprobs=True))
            for _ in range(3)
        ]


async def whole_async(url: str) -> Any:
    async with aclient(url) as c:
        asked = [c.chat.completions.create(model="m", messages=MESSAGES, user="u") for _ in range(3)]
        return [seen(await one) for one in asked]


def parse(url: str) -> Any:
    with client(url) as c:
        return seen(
            c.chat.completions.parse(model="m", messages=MESSAGES, response_format=Forecast)
            .choices[0]
            .message.parsed
        )


async def parse_async(url: str) -> Any:
    async with aclient(url) as c:
        made = await c.chat.completions.parse(model="m", messages=MESSAGES, response_format=Forecast)
        return seen(made.choices[0].message.parsed)


def stream(url: str) -> Any:
    with client(url) as c:
        asked: Any = {"include_usage": True}
        chunks = c.chat.completions.create(model="m", messages=MESSAGES, stream=True, stream_options=asked)
        return [seen(one) for one in chunks], seen(chunks.response)


async def stream_async(url: str) -> Any:
    async with aclient(url) as c:
        asked: Any = {"include_usage": True}
        chunks = await c.chat.completions.create(
            model="m", messages=MESSAGES, stream=True, stream_options=asked
        )
        return [seen(one) async for one in chunks], seen(chunks.response)


def helper(url: str) -> Any:
    with client(url) as c, c.chat.completions.stream(model="m", messages=MESSAGES) as events:
        return [event.type for event in events], seen(
            events.get_final_completion().choices[0].message.content
        )


async def helper_async(url: str) -> Any:
    async with aclient(url) as c, c.chat.completions.stream(model="m", messages=MESSAGES) as events:
        kinds = [event.type async for event in events]
        return kinds, seen((await events.get_final_completion()).choices[0].message.content)


def early(url: str) -> Any:
    with client(url) as c, c.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks:
        found = [seen(next(iter(chunks))) for _ in range(2)]
    return found, chunks.response.is_closed


async def early_async(url: str) -> Any:
    found: list[Any] = []
    async with (
        aclient(url) as c,
        await c.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks,
    ):
        async for one in chunks:
            found.append(seen(one))
            if len(found) == 2:
                break
    return found, chunks.response.is_closed


def failing(url: str) -> Any:
    with client(url) as c:
        return raised(openai.OpenAIError, c.chat.completions.create, model="m", messages=MESSAGES)


async def failing_async(url: str) -> Any:
    async with aclient(url) as c:
        try:
            await c.chat.completions.create(model="m", messages=MESSAGES)
        except openai.OpenAIError as error:
            return seen(error)
    return "no error"


def failing_stream(url: str) -> Any:
    found: list[Any] = []
    with client(url) as c:
        try:
            for one in c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                found.append(seen(one))  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append(seen(error))
    return found


async def failing_stream_async(url: str) -> Any:
    found: list[Any] = []
    async with aclient(url) as c:
        try:
            async for one in await c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                found.append(seen(one))  # noqa: PERF401 - what came before an error counts
        except Exception as error:  # noqa: BLE001 - as above
            found.append(seen(error))
    return found


def retried(url: str) -> Any:
    with client(url, max_retries=2) as c:
        answer = c.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
        return seen(answer.parse()), answer.retries_taken


async def retried_async(url: str) -> Any:
    async with aclient(url, max_retries=2) as c:
        answer = await c.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
        return seen(answer.parse()), answer.retries_taken


def limited(url: str) -> Any:
    with client(url, timeout=0.2) as c:
        return raised(openai.APITimeoutError, c.chat.completions.create, model="m", messages=MESSAGES)


async def cancelled(url: str) -> Any:
    async with aclient(url) as c:
        first = asyncio.create_task(c.chat.completions.create(model="m", messages=MESSAGES))
        try:
            await asyncio.wait_for(c.chat.completions.create(model="m", messages=MESSAGES), 0.7)
        except TimeoutError:
            first.cancel()
            done = await asyncio.gather(first, return_exceptions=True)
            after = await c.chat.completions.create(model="m", messages=MESSAGES)
            return [type(one).__name__ for one in done], after.choices[0].message.content
    return "no timeout"


def raw(url: str) -> Any:
    with client(url) as c:
        answer = c.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
        said = [answer.status_code, answer.request_id, answer.text, answer.http_version]
        with c.chat.completions.with_streaming_response.create(model="m", messages=MESSAGES) as piecewise:
            lines = list(piecewise.iter_lines())
        return [seen(answer.parse()), seen(answer.http_response), said, lines, seen(piecewise.http_response)]


async def raw_async(url: str) -> Any:
    async with aclient(url) as c:
        answer = await c.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
        said = [answer.status_code, answer.request_id, answer.text, answer.http_version]
        async with c.chat.completions.with_streaming_response.create(model="m", messages=MESSAGES) as pieces:
            lines = [line async for line in pieces.iter_lines()]
        return [seen(answer.parse()), seen(answer.http_response), said, lines, seen(pieces.http_response)]


CHAT = Seam(
    "openai chat",
    [
        Case("sync", whole, [TEXT, TOOLS, ODD], ["model"] * 3),
        Case("sync", parse, [FORECAST], ["model"], "parse"),
        Case("async", whole_async, [TEXT, TOOLS, ODD], ["model"] * 3),
        Case("async", parse_async, [FORECAST], ["model"], "parse"),
        Case("stream", stream, [TEXT], ["model"]),
        Case("stream", stream, [TOOLS], ["model"], "of tools"),
        Case("stream", helper, [TEXT], ["model"], "helper"),
        Case("stream", stream_async, [TEXT], ["model"]),
        Case("stream", helper_async, [TEXT], ["model"], "helper"),
        Case("left early", early, [TEXT], ["model"]),
        Case("left early", early_async, [TEXT], ["model"]),
        *errors(
            (failing, failing_async, failing_stream, failing_stream_async),
            {"429": BUSY, "not JSON": HTML, "dropped": Drops()},
        ),
        *errors(
            (failing_stream, failing_stream_async),
            {
                "broken stream": Says("one two three", break_after=2),
                "error in a stream": Says("one two three", error_after=2),
            },
        ),
        *(
            Case(
                "retry", program, [first, second, TEXT], ["model", "sleep"] * 2 + ["model"], name, waits=waits
            )
            for name, first, second, waits in (
                ("of 429 and a drop", BUSY, Drops(), False),
                ("after 0.7 s", LATER, BUSY, True),
            )
            for program in (retried, retried_async)
        ),
        Case("cancel", limited, [SLOW], ["model"], "by a time limit"),
        Case("cancel", cancelled, [SLOW, SLOW, TEXT], ["model"] * 3, waits=True),
        Case("raw", raw, [TEXT, TEXT], ["model"] * 2),
        Case("raw", raw_async, [TEXT, TEXT], ["model"] * 2),
    ],
)


# -- Responses -----------------------------------------------------------------------------------------------------


def r_whole(url: str) -> Any:
    with client(url) as c:
        made = c.responses.create(model="m", input="hello")
        parsed = c.responses.parse(model="m", input="hello", text_format=Forecast)
        return seen(made), made.output_text, seen(parsed.output_parsed)


async def r_whole_async(url: str) -> Any:
    async with aclient(url) as c:
        made = await c.responses.create(model="m", input="hello")
        parsed = await c.responses.parse(model="m", input="hello", text_format=Forecast)
        return seen(made), made.output_text, seen(parsed.output_parsed)


def r_retrieve(url: str) -> Any:
    with client(url) as c:
        return raised(openai.NotFoundError, c.responses.retrieve, response_id="resp_abcdefgh1234")


def r_stream(url: str) -> Any:
    with client(url) as c:
        events = [seen(one) for one in c.responses.create(model="m", input="hello", stream=True)]
        with c.responses.stream(model="m", input="hello") as helped:
            kinds = [event.type for event in helped]
            return events, kinds, helped.get_final_response().output_text


async def r_stream_async(url: str) -> Any:
    async with aclient(url) as c:
        events = [seen(one) async for one in await c.responses.create(model="m", input="hello", stream=True)]
        async with c.responses.stream(model="m", input="hello") as helped:
            kinds = [event.type async for event in helped]
            return events, kinds, (await helped.get_final_response()).output_text


def r_early(url: str) -> Any:
    with client(url) as c, c.responses.create(model="m", input="hello", stream=True) as events:
        return [seen(next(iter(events))) for _ in range(3)]


async def r_early_async(url: str) -> Any:
    found: list[Any] = []
    async with aclient(url) as c, c.responses.stream(model="m", input="hello") as events:
        async for one in events:
            found.append(one.type)
            if len(found) == 3:
                break
    return found


def r_failing(url: str) -> Any:
    found: list[Any] = []
    with client(url) as c:
        for _ in range(2):
            try:
                for one in c.responses.create(model="m", input="hello", stream=True):
                    found.append(seen(one))  # noqa: PERF401 - what came before an error counts
            except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
                found.append(seen(error))
    return found


async def r_failing_async(url: str) -> Any:
    found: list[Any] = []
    async with aclient(url) as c:
        for _ in range(2):
            try:
                async for one in await c.responses.create(model="m", input="hello", stream=True):
                    found.append(seen(one))  # noqa: PERF401 - what came before an error counts
            except Exception as error:  # noqa: BLE001 - as above
                found.append(seen(error))
    return found


def r_retried(url: str) -> Any:
    with client(url, max_retries=2) as c:
        return seen(c.responses.create(model="m", input="hello"))


async def r_cancelled(url: str) -> Any:
    async with aclient(url) as c:
        try:
            async with asyncio.timeout(0.7):
                await c.responses.create(model="m", input="hello")
        except TimeoutError as error:
            return type(error).__name__
    return "no timeout"


def r_raw(url: str) -> Any:
    with client(url) as c:
        answer = c.responses.with_raw_response.create(model="m", input="hello")
        return seen(answer.parse()), seen(answer.http_response), answer.request_id


RESPONSES = Seam(
    "openai responses",
    [
        Case("sync", r_whole, [TEXT, FORECAST], ["model"] * 2),
        Case("sync", r_retrieve, [Fails(404, "none")], ["http"], "retrieve"),
        Case("async", r_whole_async, [TOOLS, FORECAST], ["model"] * 2),
        Case("stream", r_stream, [TEXT, TEXT], ["model"] * 2),
        Case("stream", r_stream_async, [TOOLS, TEXT], ["model"] * 2),
        Case("left early", r_early, [TEXT], ["model"]),
        Case("left early", r_early_async, [TEXT], ["model"]),
        *(
            Case("error", program, [first, second], ["model"] * 2, name)
            for name, first, second in (
                ("refused", BUSY, HTML),
                ("broken", Says("a b c", break_after=4), Says("a b c", error_after=3)),
            )
            for program in (r_failing, r_failing_async)
        ),
        Case("retry", r_retried, [BUSY, TEXT], ["model", "sleep", "model"]),
        Case("cancel", r_cancelled, [SLOW], ["model"], waits=True),
        Case("raw", r_raw, [TEXT], ["model"]),
    ],
)


# -- the rest ------------------------------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
IMAGE = Raw(b'{"created":1,"data":[{"b64_json":"iVBORw0KGgo="}],"usage":{"total_tokens":3}}')
MODERATED = Raw(
    b'{"id":"modr-1","model":"omni","results":[{"flagged":false,"categories":{},"category_scores":{}}]}'
)
SOUND = Raw(bytes(range(256)) * 40, 200, {"content-type": "audio/mpeg"})
HEARD = Raw(b'{"text":"hello","usage":{"type":"duration","seconds":1}}')
LISTED = Raw(b'{"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"o"}]}')


def others(url: str) -> Any:
    with client(url) as c:
        return [
            seen(c.embeddings.create(model="e", input=["a b", "c"], encoding_format="float")),
            seen(c.completions.create(model="m", prompt="once")),
            seen(c.moderations.create(input="x")),
            seen(c.images.generate(model="i", prompt="a cat")),
            seen(c.images.edit(model="i", image=("a.png", PNG, "image/png"), prompt="a dog")),
            seen(c.audio.speech.create(model="t", voice="alloy", input="hello").read()),
            seen(c.audio.transcriptions.create(model="w", file=("a.mp3", b"\xff\xf3" * 50))),
            [seen(one) for one in c.models.list()],
        ]


async def others_async(url: str) -> Any:
    async with aclient(url) as c:
        spoken = await c.audio.speech.create(model="t", voice="alloy", input="hello")
        return [
            seen(spoken.content),
            seen(await c.embeddings.create(model="e", input="a b", encoding_format="base64")),
            seen(await c.completions.create(model="m", prompt="once")),
            seen(await c.images.edit(model="i", image=("a.png", PNG, "image/png"), prompt="a dog")),
            [seen(one) async for one in c.models.list()],
        ]


def others_stream(url: str) -> Any:
    with client(url) as c:
        old = [seen(one) for one in c.completions.create(model="m", prompt="once", stream=True)]
        with c.audio.speech.with_streaming_response.create(model="t", voice="alloy", input="x") as spoken:
            return old, seen(b"".join(spoken.iter_bytes()))


def others_early(url: str) -> Any:
    with client(url) as c, c.completions.create(model="m", prompt="once", stream=True) as chunks:
        return seen(next(iter(chunks)))


def others_failing(url: str) -> Any:
    found: list[Any] = []
    with client(url) as c:
        for ask in (
            lambda: c.embeddings.create(model="e", input="x"),
            lambda: c.images.generate(model="i", prompt="x"),
            lambda: c.files.content("file-abcdefgh12"),
        ):
            try:
                found.append(seen(ask()))
            except openai.OpenAIError as error:
                found.append(seen(error))
    return found


def others_retried(url: str) -> Any:
    with client(url, max_retries=1) as c:
        return seen(c.moderations.create(input="x"))


async def others_cancelled(url: str) -> Any:
    async with aclient(url) as c:
        try:
            await asyncio.wait_for(c.embeddings.create(model="e", input="x"), 0.7)
        except TimeoutError as error:
            return type(error).__name__
    return "no timeout"


def others_raw(url: str) -> Any:
    with client(url) as c:
        answer = c.embeddings.with_raw_response.create(model="e", input="a b", encoding_format="float")
        return seen(answer.parse()), seen(answer.http_response)


OTHERS = Seam(
    "openai, other endpoints",
    [
        Case(
            "sync",
            others,
            [Says("a b"), TEXT, MODERATED, IMAGE, IMAGE, SOUND, HEARD, LISTED],
            ["model", "model", *["http"] * 6],
        ),
        Case("async", others_async, [SOUND, Says("a b"), TEXT, IMAGE, LISTED]),
        Case("stream", others_stream, [TEXT, SOUND], ["model", "http"]),
        Case("left early", others_early, [TEXT], ["model"]),
        Case("error", others_failing, [BUSY, HTML, Drops()], ["model", "http", "http"]),
        Case("retry", others_retried, [BUSY, MODERATED], ["http", "sleep", "http"]),
        Case("cancel", others_cancelled, [SLOW], ["model"], waits=True),
        Case("raw", others_raw, [Says("a b")], ["model"]),
    ],
)


@contextlib.contextmanager
def azure(url: str, **options: Any) -> Iterator[openai.AzureOpenAI]:
    with openai.AzureOpenAI(
        azure_endpoint=url, api_key="unused", api_version="2024-10-21", **{"max_retries": 0, **options}
    ) as made:
        yield made


def a_whole(url: str) -> Any:
    with azure(url) as c:
        return seen(c.chat.completions.create(model="mine", messages=MESSAGES))


async def a_whole_async(url: str) -> Any:
    async with openai.AsyncAzureOpenAI(azure_endpoint=url, api_key="unused", api_version="2024-10-21") as c:
        return seen(await c.chat.completions.create(model="mine", messages=MESSAGES))


def a_stream(url: str) -> Any:
    with azure(url) as c:
        chunks = c.chat.completions.create(model="mine", messages=MESSAGES, stream=True)
        return [seen(one) for one in chunks]


def a_early(url: str) -> Any:
    with azure(url) as c, c.chat.completions.create(model="mine", messages=MESSAGES, stream=True) as chunks:
        return seen(next(iter(chunks)))


def a_failing(url: str) -> Any:
    with azure(url) as c:
        return raised(openai.OpenAIError, c.chat.completions.create, model="mine", messages=MESSAGES)


def a_retried(url: str) -> Any:
    with azure(url, max_retries=1) as c:
        return seen(c.chat.completions.create(model="mine", messages=MESSAGES))


def a_limited(url: str) -> Any:
    with azure(url, timeout=0.2) as c:
        return raised(openai.APITimeoutError, c.chat.completions.create, model="mine", messages=MESSAGES)


def a_raw(url: str) -> Any:
    with azure(url) as c:
        answer = c.chat.completions.with_raw_response.create(model="mine", messages=MESSAGES)
        return seen(answer.parse()), seen(answer.http_response)


AZURE = Seam(
    "openai Azure",
    [
        Case("sync", a_whole, [TEXT], ["model"]),
        Case("async", a_whole_async, [TOOLS], ["model"]),
        Case("stream", a_stream, [TEXT], ["model"]),
        Case("left early", a_early, [TEXT], ["model"]),
        Case("error", a_failing, [BUSY], ["model"]),
        Case("retry", a_retried, [BUSY, TEXT], ["model", "sleep", "model"]),
        Case("cancel", a_limited, [SLOW], ["model"], "by a time limit"),
        Case("raw", a_raw, [TEXT], ["model"]),
    ],
)

SEAMS = [CHAT, RESPONSES, OTHERS, AZURE]
