"""Case 5: isinstance, with, early close, headers, raw responses and parse are the same bare, recorded and replayed."""

from __future__ import annotations

import json
from typing import Any

import openai
import pydantic
import pytest

from tests.cases.three import aclient, client, three_times
from tests.cases.wire import Sent, seen

HEADERS = {
    "content-type": "application/json",
    "x-request-id": "req_1",
    "openai-processing-ms": "31",
    "x-ratelimit-remaining-tokens": "99",
    "x-groq-region": "dls",
    "x-generation-id": "gen-1",
    "cf-cache-status": "DYNAMIC",
    "server": "cloudflare",
    "set-cookie": "__cf_bm=very-secret; path=/",
    "x-auth-token": "very-secret",
}
ROME = '{"city": "Rome", "n": 3}'
BODY: dict[str, Any] = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m", "some_new_field": {"a": [1, 2.0, "é"]},
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ROME}}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
}  # fmt: skip
PRETTY = Sent(json.dumps(BODY, indent=2, ensure_ascii=False).encode() + b"\n", headers=HEADERS)
EVENTS = b"".join(
    b"data: %s\n\n"
    % json.dumps(
        {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m",
         "choices": [{"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None}]}
    ).encode()
    for word in ("a", "b", "c", "d")
) + b"data: [DONE]\n\n"  # fmt: skip
STREAM = Sent(EVENTS, headers=HEADERS | {"content-type": "text/event-stream"}, slice=40)
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SECRETS = ("set-cookie", "x-auth-token")
WIRE = ("date", "server", "transfer-encoding", "connection", "content-length")


def headers(response: Any) -> list[list[str]]:
    """The headers that a program can rely on: credentials are never written, and framing belongs to the wire."""
    return [
        [name, value] for name, value in sorted(response.headers.items()) if name not in (*SECRETS, *WIRE)
    ]


class City(pydantic.BaseModel):
    city: str
    n: int


def types(url: str) -> Any:
    with client(url) as made:
        answer = made.chat.completions.create(**ASK)
        stream = made.chat.completions.create(**ASK, stream=True)
        stream.close()
        parsed = made.chat.completions.parse(**ASK, response_format=City)
    from openai.types.chat import ChatCompletion, ParsedChatCompletion

    city = parsed.choices[0].message.parsed
    return [
        isinstance(answer, ChatCompletion), isinstance(stream, openai.Stream), isinstance(parsed, ParsedChatCompletion),
        isinstance(city, City), city is not None and city.n, answer._request_id, seen(answer),
        stream.response.is_closed,
    ]  # fmt: skip


def raw(url: str) -> Any:
    with client(url) as made:
        response = made.chat.completions.with_raw_response.create(**ASK)
        return [
            response.status_code, response.http_response.reason_phrase, response.http_response.http_version,
            headers(response),
            response.headers.get("X-Groq-Region"), response.text, response.content,
            response.http_response.json(), seen(response.parse()), response.http_response.is_closed,
            response.http_response.encoding, str(response.http_request.url.path), response.retries_taken,
        ]  # fmt: skip


async def raw_async(url: str) -> Any:
    async with aclient(url) as made:
        response = await made.chat.completions.with_raw_response.create(**ASK)
        return [
            response.status_code,
            headers(response),
            response.text,
            response.content,
            seen(response.parse()),
        ]


def raw_stream(url: str) -> Any:
    with client(url) as made:
        response = made.chat.completions.with_raw_response.create(**ASK, stream=True)
        return [response.status_code, headers(response), seen(list(response.parse()))]


def streaming_response(url: str) -> Any:
    with client(url) as made:
        with made.chat.completions.with_streaming_response.create(**ASK) as response:
            lines = list(response.iter_lines())
        with made.chat.completions.with_streaming_response.create(**ASK, stream=True) as response:
            events = list(response.iter_lines())
    return [lines, [json.loads(line[6:]) for line in events if line.startswith("data: {")], headers(response)]


def early(url: str) -> Any:
    out: list[Any] = []
    with client(url) as made:
        with made.chat.completions.create(**ASK, stream=True) as stream:
            for chunk in stream:
                out.append(seen(chunk))
                if len(out) == 2:
                    break
        out.append(stream.response.is_closed)
        out.append(headers(stream.response))
        left = made.chat.completions.create(**ASK, stream=True)
        out.append(seen(next(left)))
        left.close()
        left.close()
        out.append(left.response.is_closed)
        closed = made.chat.completions.create(**ASK, stream=True)
        closed.close()
        try:
            next(closed)
        except Exception as error:  # noqa: BLE001 - whatever it is, three times
            out.append([type(error).__name__, str(error)])
        unread = made.chat.completions.create(**ASK, stream=True)
        out.append(unread.response.is_closed)
        out.append([seen(chunk) for chunk in unread])
    return out


async def early_async(url: str) -> Any:
    out: list[Any] = []
    async with aclient(url) as made:
        async with await made.chat.completions.create(**ASK, stream=True) as stream:
            async for chunk in stream:
                out.append(seen(chunk))
                break
        out.append(stream.response.is_closed)
        async with made.chat.completions.stream(**ASK) as helper:
            out.extend([event.type async for event in helper])
            out.append(seen(await helper.get_final_completion()))
    return out


def errors(url: str) -> Any:
    with client(url) as made:
        try:
            made.chat.completions.create(**ASK)
        except openai.RateLimitError as error:
            return [seen(error), headers(error.response), error.response.text, error.response.status_code]
    return None


@pytest.mark.parametrize(
    ("program", "answers"),
    [
        (types, [PRETTY, STREAM, PRETTY]),
        (raw, [PRETTY]),
        (raw_async, [PRETTY]),
        (raw_stream, [STREAM]),
        (streaming_response, [PRETTY, STREAM]),
        (early, [STREAM]),
        (early_async, [STREAM]),
        (
            errors,
            [
                Sent(
                    b'{"error": {"message": "slow down", "code": "rate"}}',
                    429,
                    HEADERS | {"retry-after": "7"},
                )
            ],
        ),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_the_sdk_behaves_the_same_three_times(program: Any, answers: list[Sent]) -> None:
    trace = three_times(program, *answers)
    assert not any(
        b"very-secret" in json.dumps(call.result or {}, default=str).encode() for call in trace.calls
    )


LAYOUTS = {
    "compact": json.dumps(BODY, separators=(",", ":"), ensure_ascii=False),
    "compact ascii": json.dumps(BODY, separators=(",", ":")),
    "python": json.dumps(BODY),
    "indented": json.dumps(BODY, indent=2, ensure_ascii=False),
    "indented ascii": json.dumps(BODY, indent=4) + "\n",
    "with blank lines before": "\n   \n" + json.dumps(BODY, ensure_ascii=False),
    "numbers in another form": '{"a": 1.50, "b": 1E3, "c": -0, "d": 1e2, "id": "x", "choices": []}',
    "keys twice": '{"id": "x", "id": "y", "choices": []}',
    "escapes": '{"id": "\\u0041\\/", "choices": []}',
    "windows": json.dumps(BODY, indent=2).replace("\n", "\r\n"),
    "truncated": '{"id": "x", "choices": [',
    "nan": '{"id": "x", "choices": [], "score": NaN}',
}


def _text(url: str) -> Any:
    with client(url) as made:
        response = made.chat.completions.with_raw_response.create(**ASK)
        try:
            parsed = repr(seen(response.parse()))  # as text: NaN is not equal to itself
        except Exception as error:  # noqa: BLE001 - whatever it is, three times
            parsed = type(error).__name__
        return [response.text, response.content, parsed]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_text_of_an_answer_is_the_providers(layout: str) -> None:
    three_times(_text, Sent(LAYOUTS[layout].encode(), headers={"content-type": "application/json"}))
