"""The real openai SDK through the seam: recorded against a scripted server, replayed with the server stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import openai
import pydantic
import pytest

from agentloom.testing.replies import Drops, Fails, Raw, Says, Wants
from tests.adapters.seam import Taped, tape

MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
SECRET = "sk-" + "very-secret-0123456789"  # not as one word: a trace holds the source too


@contextlib.contextmanager
def client(url: str, **options: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=url, api_key=SECRET, **options) as made:
        yield made


@contextlib.asynccontextmanager
async def aclient(url: str, **options: Any) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=url, api_key=SECRET, **options) as made:
        yield made


def facts(answer: Any) -> dict[str, Any]:
    """What a program can see of an SDK object."""
    return {
        "type": type(answer).__qualname__,
        "dict": answer.to_dict(),
        "request_id": getattr(answer, "_request_id", None),
    }


# -- one program for each scenario, sync and async -----------------------------------------------------------------


def plain(url: str) -> Any:
    with client(url) as c:
        return facts(c.chat.completions.create(model="m", messages=MESSAGES, user="u1"))


async def plain_async(url: str) -> Any:
    async with aclient(url) as c:
        return facts(await c.chat.completions.create(model="m", messages=MESSAGES, user="u1"))


def stream(url: str) -> Any:
    with client(url) as c:
        options: Any = {"include_usage": True}
        chunks = c.chat.completions.create(model="m", messages=MESSAGES, stream=True, stream_options=options)
        return [facts(chunk) for chunk in chunks]


async def stream_async(url: str) -> Any:
    async with aclient(url) as c:
        options: Any = {"include_usage": True}
        chunks = await c.chat.completions.create(
            model="m", messages=MESSAGES, stream=True, stream_options=options
        )
        return [facts(chunk) async for chunk in chunks]


def left_early(url: str) -> Any:
    with client(url) as c, c.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks:
        return [facts(next(iter(chunks))) for _ in range(2)]


async def left_early_async(url: str) -> Any:
    async with aclient(url) as c:  # noqa: SIM117 - as above
        async with await c.chat.completions.create(model="m", messages=MESSAGES, stream=True) as chunks:
            seen = []
            async for chunk in chunks:
                seen.append(facts(chunk))
                if len(seen) == 2:
                    break
            return seen


def helper_stream(url: str) -> Any:
    with client(url) as c, c.chat.completions.stream(model="m", messages=MESSAGES) as events:
        kinds = [event.type for event in events]
        return kinds, facts(events.get_final_completion())


async def helper_stream_async(url: str) -> Any:
    async with aclient(url) as c, c.chat.completions.stream(model="m", messages=MESSAGES) as events:
        kinds = [event.type async for event in events]
        return kinds, facts(await events.get_final_completion())


def raw(url: str) -> Any:
    with client(url) as c:
        response = c.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
        return _raw_facts(response, facts(response.parse()))


async def raw_async(url: str) -> Any:
    async with aclient(url) as c:
        response = await c.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
        return _raw_facts(response, facts(response.parse()))


def _raw_facts(response: Any, parsed: Any) -> Any:
    headers = dict(response.headers.items())
    return response.status_code, headers, response.text, response.request_id, parsed


def streaming_response(url: str) -> Any:
    with client(url) as c:  # noqa: SIM117 - two lines would be one too long
        with c.chat.completions.with_streaming_response.create(model="m", messages=MESSAGES) as response:
            return response.status_code, list(response.iter_lines())


async def streaming_response_async(url: str) -> Any:
    async with (
        aclient(url) as c,
        c.chat.completions.with_streaming_response.create(model="m", messages=MESSAGES) as response,
    ):
        return response.status_code, [line async for line in response.iter_lines()]


class Weather(pydantic.BaseModel):
    city: str
    degrees: float


def parse(url: str) -> Any:
    with client(url) as c:
        answer = c.chat.completions.parse(model="m", messages=MESSAGES, response_format=Weather)
        found = answer.choices[0].message.parsed
        assert isinstance(found, Weather)
        return found.model_dump()


async def parse_async(url: str) -> Any:
    async with aclient(url) as c:
        answer = await c.chat.completions.parse(model="m", messages=MESSAGES, response_format=Weather)
        found = answer.choices[0].message.parsed
        assert isinstance(found, Weather)
        return found.model_dump()


def failing(url: str) -> Any:
    with client(url, max_retries=0) as c:
        try:
            c.chat.completions.create(model="m", messages=MESSAGES)
        except openai.APIError as error:
            return _error_facts(error)
    return "no error"


async def failing_async(url: str) -> Any:
    async with aclient(url, max_retries=0) as c:
        try:
            await c.chat.completions.create(model="m", messages=MESSAGES)
        except openai.APIError as error:
            return _error_facts(error)
    return "no error"


def failing_stream(url: str) -> Any:
    with client(url, max_retries=0) as c:
        seen = []
        try:
            for chunk in c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                seen.append(facts(chunk))  # noqa: PERF401 - what came before the error counts
        except (openai.APIError, openai.OpenAIError) as error:
            return seen, _error_facts(error)
    return seen, "no error"


async def failing_stream_async(url: str) -> Any:
    async with aclient(url, max_retries=0) as c:
        seen = []
        try:
            async for chunk in await c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                seen.append(facts(chunk))  # noqa: PERF401 - what came before the error counts
        except openai.APIError as error:
            return seen, _error_facts(error)
    return seen, "no error"


def _error_facts(error: Any) -> Any:
    cause = error.__cause__
    return {
        "type": type(error).__name__,
        "message": str(error),
        "status": getattr(error, "status_code", None),
        "code": error.code if isinstance(error, openai.APIError) else None,
        "body": error.body if isinstance(error, openai.APIError) else None,
        "url": error.request.url.path,
        "cause": None if cause is None else [type(cause).__name__, str(cause)],
    }


def retried(url: str) -> Any:
    with client(url, max_retries=2) as c:
        return facts(c.chat.completions.create(model="m", messages=MESSAGES))


async def retried_async(url: str) -> Any:
    async with aclient(url, max_retries=2) as c:
        return facts(await c.chat.completions.create(model="m", messages=MESSAGES))


def embedded(url: str) -> Any:
    with client(url, max_retries=0) as c:
        try:
            c.embeddings.create(model="e", input="text")
        except openai.APIError as error:
            return _error_facts(error)
    return "no error"


async def embedded_async(url: str) -> Any:
    async with aclient(url, max_retries=0) as c:
        try:
            await c.embeddings.create(model="e", input="text")
        except openai.APIError as error:
            return _error_facts(error)
    return "no error"


TOOLS = Says(tools=[Wants("lookup", {"id": 812}), Wants("refund", '{"broken": ')])
TEXT = Says("It costs forty dollars.", usage=(11, 3, 7, 2))
ODD = Raw(
    b'{"id":"x","object":"chat.completion","created":1,"model":"m","new_field":{"a":[1,2.50,1e3]},"choices":[{"index":0,'
    b'"finish_reason":"eos","message":{"role":"assistant","content":"caf\\u00e9 \\ud83d","vendor":true}}],"usage":null}'
)
FORECAST = Says('{"city": "Riga", "degrees": -3.5}')
BUSY = Fails(429, "slow down", code="rate_limit_exceeded", retry_after=0.01)

Case = tuple[str, Callable[[str], Any], Callable[[str], Any], list[Any], list[str], list[str]]
CASES: list[Case] = [
    ("plain", plain, plain_async, [TEXT], ["model"], ["ok"]),
    ("tools", plain, plain_async, [TOOLS], ["model"], ["ok"]),
    ("unknown fields", plain, plain_async, [ODD], ["model"], ["ok"]),
    ("stream", stream, stream_async, [TEXT], ["model"], ["ok"]),
    ("stream of tools", stream, stream_async, [TOOLS], ["model"], ["ok"]),
    ("left early", left_early, left_early_async, [TEXT], ["model"], ["closed"]),
    ("helper stream", helper_stream, helper_stream_async, [TEXT], ["model"], ["ok"]),
    ("raw", raw, raw_async, [TEXT], ["model"], ["ok"]),
    ("streaming response", streaming_response, streaming_response_async, [TEXT], ["model"], ["ok"]),
    ("parse", parse, parse_async, [FORECAST], ["model"], ["ok"]),
    ("error", failing, failing_async, [BUSY], ["model"], ["ok"]),
    (
        "not json",
        failing,
        failing_async,
        [Raw(b"<html>bad gateway</html>", 502, {"content-type": "text/html"})],
        ["model"],
        ["ok"],
    ),
    ("dropped", failing, failing_async, [Drops()], ["model"], ["error"]),
    ("error of a stream", failing_stream, failing_stream_async, [BUSY], ["model"], ["ok"]),
    (
        "error in a stream",
        failing_stream,
        failing_stream_async,
        [Says("one two three", error_after=2)],
        ["model"],
        ["closed"],
    ),
    (
        "broken stream",
        failing_stream,
        failing_stream_async,
        [Says("one two three", break_after=2)],
        ["model"],
        ["error"],
    ),
    ("retried", retried, retried_async, [BUSY, BUSY, TEXT], ["model", "sleep"] * 2 + ["model"], ["ok"] * 5),
    (
        "retried after a drop",
        retried,
        retried_async,
        [Drops(), TEXT],
        ["model", "sleep", "model"],
        ["error", "ok", "ok"],
    ),
    ("another endpoint", embedded, embedded_async, [], ["model"], ["ok"]),
]


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_the_sdk_gives_the_same_objects_live_and_on_replay(case: Case, is_async: bool) -> None:
    _, blocking, awaited, script, types, statuses = case
    done = tape(awaited if is_async else blocking, script)
    assert done.report.verdict == "identical", str(done.report)
    assert _plain(done.again) == done.live
    assert done.types() == types
    assert done.statuses() == statuses
    assert SECRET.encode() not in done.data


def _plain(value: Any) -> Any:
    """``value`` as the trace has it: tuples as the format writes them."""
    from agentloom.format.values import Types, encode

    return encode(value, Types())


def test_live_objects_equal_those_without_agentloom() -> None:
    from agentloom.testing.fake_provider import FakeProvider

    with FakeProvider([TOOLS]) as provider:
        bare = plain(provider.openai_url)
    done = tape(plain, [TOOLS])
    assert _plain(bare) == done.live


def test_a_changed_prompt_diverges_and_nothing_is_sent() -> None:
    def edited(url: str) -> Any:
        with client(url) as c:
            changed: Any = [{"role": "user", "content": "goodbye"}]
            return facts(c.chat.completions.create(model="m", messages=changed, user="u1"))

    done = tape(plain, [TEXT], edited=edited)
    assert done.report.verdict == "diverged"
    assert done.report.finding is not None
    assert done.report.finding.comparison is not None
    assert [item.path for item in done.report.finding.comparison.items] == ["messages[0].content"]


def test_a_noted_field_is_reported_and_no_miss() -> None:
    def edited(url: str) -> Any:
        with client(url) as c:
            return facts(c.chat.completions.create(model="m", messages=MESSAGES, user="another"))

    done = tape(plain, [TEXT], edited=edited)
    assert done.report.verdict == "identical except noted"


def test_reading_on_where_the_recorded_run_left_diverges() -> None:
    def edited(url: str) -> Any:
        with client(url) as c:
            return [
                facts(chunk) for chunk in c.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            ]

    done = tape(left_early, [TEXT], edited=edited)
    assert done.report.verdict == "diverged"


def test_a_swallowed_divergence_stays_one() -> None:
    def edited(url: str) -> Any:
        try:
            with client(url) as c:
                c.chat.completions.create(model="other", messages=MESSAGES)
        except:  # noqa: E722
            pass
        return "all is well"

    assert tape(plain, [TEXT], edited=edited).report.verdict == "diverged"


@pytest.mark.parametrize("program", [retried, retried_async])
def test_the_wait_before_a_retry_is_not_repeated_on_replay(
    program: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    real = asyncio.sleep

    async def sleep(seconds: float, *more: Any) -> Any:
        waits.append(seconds)
        return await real(0, *more)

    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    done = tape(program, [Fails(429, retry_after=12.0), Drops(), TEXT])
    assert done.report.verdict == "identical"
    assert len(waits) == 2
    assert waits[0] == 12.0


def test_usage_is_kept_with_the_outcome() -> None:
    done = tape(plain, [TEXT])
    assert done.calls[0].usage == {"input": 11, "cached": 3, "output": 7, "reasoning": 2}


@pytest.mark.parametrize("program", [stream, stream_async])
def test_usage_of_a_stream_is_kept_with_its_outcome(program: Callable[[str], Any]) -> None:
    done = tape(program, [TEXT])
    assert done.report.verdict == "identical"
    assert done.calls[0].usage == {"input": 11, "cached": 3, "output": 7, "reasoning": 2}


@pytest.mark.parametrize("program", [left_early, helper_stream])
def test_a_stream_whose_counts_never_came_has_no_usage(program: Callable[[str], Any]) -> None:
    assert tape(program, [TEXT]).calls[0].usage is None


def test_the_requests_log_line_is_the_same_on_replay(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="httpx2"):
        done = tape(plain, [TEXT])
    lines = [record.getMessage() for record in caplog.records if record.name == "httpx2"]
    assert done.report.ok
    assert len(lines) == 2
    assert lines[0] == lines[1]


def test_outside_a_run_the_sdk_is_left_alone() -> None:
    from agentloom.testing.fake_provider import FakeProvider

    tape(plain, [TEXT])
    with FakeProvider([TEXT]) as provider:
        assert plain(provider.openai_url)["type"] == "ChatCompletion"
        assert provider.count == 1


def test_the_same_request_twice_keeps_two_outcomes() -> None:
    def twice(url: str) -> Any:
        with client(url) as c:
            return [
                c.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content
                for _ in range(2)
            ]

    done: Taped = tape(twice, ["first", "second"])
    assert done.live == ["first", "second"]
    assert done.again == ["first", "second"]


def test_streams_of_an_async_client_share_a_connection() -> None:
    """As bare: what is left of a body after ``[DONE]`` is read, or the connection could not be used again."""
    connections: list[list[Any]] = []

    async def thrice(url: str) -> int:
        async with aclient(url) as c:
            for _ in range(3):
                async for _ in await c.chat.completions.create(model="m", messages=MESSAGES, stream=True):
                    pass
            transport: Any = c._client._transport
            connections.append(list(transport._pool.connections))
        return 3

    done = tape(thrice, [TEXT, TEXT, TEXT])
    assert done.report.verdict == "identical"
    live, replayed = connections
    assert (len(live), replayed) == (1, [])


def test_a_client_over_aiohttp_is_closed_where_its_connections_live() -> None:
    async def asks(url: str) -> Any:
        async with aclient(url, http_client=openai.DefaultAioHttpClient()) as c:
            answer = facts(await c.chat.completions.create(model="m", messages=MESSAGES))
            streamed = await c.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            return [answer, *[facts(chunk) async for chunk in streamed]]

    done = tape(asks, [TEXT, TEXT])
    assert done.report.verdict == "identical"
    assert (done.seen, done.statuses()) == (2, ["ok", "ok"])
