"""A recorded exchange as a program that asks for it through the real SDK of its API, or through a plain HTTP client.

Which SDK that is shows in the exchange (`files.api_of`), whatever its file. Everything that the request holds is sent:
what the SDK's method does not name goes along as extra fields.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import anthropic
import httpx2
import openai
from google import genai
from google.genai import types

from agentloom.testing import Exchange
from agentloom.testing.sdk_seen import seen

Body = dict[str, Any]
Program = Callable[[str], Any]
GREETING = [{"role": "user", "content": "hello"}]
_GOOGLE = re.compile(r"(?P<base>.*)/(?P<version>[^/]+)/models/(?P<model>[^/:]+):(?P<method>\w+)$")
_TAILS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "embeddings": "/embeddings",
    "completions": "/completions",
    "messages": "/v1/messages",
    "count tokens": "/v1/messages/count_tokens",
}


def sdk_of(one: Exchange, api: str) -> str:
    """The name of the SDK for an exchange of ``api``: openai, anthropic, google-genai; else httpx2."""
    asked = one.request()
    if one.request_body is not None and not isinstance(asked, dict):
        return "httpx2"
    if api == "generateContent" and (not one.url or _GOOGLE.match(one.path or "")):
        return "google-genai"
    tail = _TAILS.get(api)
    if (
        tail is None
        or (one.url and not (one.path or "").endswith(tail))
        or (one.url and one.method != "POST")
    ):
        return "httpx2"
    if api == "completions" and isinstance(asked, dict) and "prompt" not in asked:
        return "httpx2"  # Ollama's
    return "anthropic" if api in ("messages", "count tokens") else "openai"


def programs(one: Exchange, api: str) -> dict[str, Program]:
    """Programs by name: sync, async, and for streams one that leaves it early."""
    asked = one.request()
    body: Body = dict(asked) if isinstance(asked, dict) else {}
    made = {"openai": _openai, "anthropic": _anthropic, "google-genai": _google, "httpx2": _plain}
    return made[sdk_of(one, api)](one, api, body)


def _prefix(one: Exchange, tail: str) -> str:
    return quote((one.path or "").removesuffix(tail), safe="/:@")


def _split(function: Any, body: Body) -> Body:
    """Arguments of an SDK's method: fields that it does not name go into ``extra_body``."""
    names = inspect.signature(function).parameters
    named = {name: value for name, value in body.items() if name in names}
    rest = {name: value for name, value in body.items() if name not in names}
    return named | ({"extra_body": rest} if rest else {})


@contextlib.contextmanager
def _failing(found: list[Any], *kinds: type[BaseException]) -> Iterator[None]:
    """What the SDK raises is part of what is seen."""
    try:
        yield
    except kinds as error:
        found.append(seen(error))


# Answers that an SDK cannot read raise whatever its parser raises; a lost connection what its HTTP library raises.
_ERRORS = (openai.OpenAIError, anthropic.AnthropicError, httpx2.HTTPError, ValueError, TypeError, KeyError)
_MORE = (AttributeError, genai.errors.APIError, Exception)


def _through(
    make: Callable[[str], Any], amake: Callable[[str], Any], ask: Callable[[Any], Any]
) -> dict[str, Program]:
    """Programs that ask once. ``ask`` gives the answer of a client or its awaitable; a stream is read."""

    def whole(url: str) -> Any:
        found: list[Any] = []
        with _failing(found, *_ERRORS, *_MORE), make(url) as client:
            answer = ask(client)
            if hasattr(answer, "__next__") or hasattr(answer, "response"):
                for event in answer:
                    found.append(seen(event))  # noqa: PERF401 - what came before an error counts
            else:
                found.append(seen(answer))
        return found

    async def whole_async(url: str) -> Any:
        found: list[Any] = []
        with _failing(found, *_ERRORS, *_MORE):
            async with amake(url) as client:
                answer = await ask(client)
                if hasattr(answer, "__anext__") or hasattr(answer, "response"):
                    async for event in answer:
                        found.append(seen(event))  # noqa: PERF401 - as above
                else:
                    found.append(seen(answer))
        return found

    def left_early(url: str) -> Any:
        found: list[Any] = []
        with _failing(found, *_ERRORS, *_MORE), make(url) as client:
            answer = ask(client)
            for event in answer:
                found.append(seen(event))
                if len(found) == 2:
                    break
            answer.close()
        return found

    return {"sync": whole, "async": whole_async, "left early": left_early}


def _of(programs_of: dict[str, Program], stream: bool) -> dict[str, Program]:
    return programs_of if stream else {name: one for name, one in programs_of.items() if name != "left early"}


def _asked(body: Body, *, stream: bool) -> Body:
    """The body, with ``stream`` as the answer was."""
    return {name: value for name, value in body.items() if name != "stream"} | (
        {"stream": True} if stream else {}
    )


def _options(one: Exchange) -> Any:
    """What the clients of OpenAI and Anthropic are made with."""
    return {"api_key": "unused", "max_retries": 0, "default_query": dict(one.query) or None}


def _openai(one: Exchange, api: str, body: Body) -> dict[str, Program]:
    if not body:
        body = {"model": "m", "messages": GREETING} if api == "chat" else {"model": "m", "input": "hello"}
    stream = one.streamed
    body = _asked(body, stream=stream)
    options, base = _options(one), _prefix(one, _TAILS[api])

    def ask(client: Any) -> Any:
        method = {
            "chat": client.chat.completions.create,
            "responses": client.responses.create,
            "embeddings": client.embeddings.create,
            "completions": client.completions.create,
        }[api]
        return method(**_split(method, body))

    return _of(
        _through(
            lambda url: openai.OpenAI(base_url=url + base, **options),
            lambda url: openai.AsyncOpenAI(base_url=url + base, **options),
            ask,
        ),
        stream,
    )


def _anthropic(one: Exchange, api: str, body: Body) -> dict[str, Program]:
    body = body or {"model": "m", "messages": GREETING, "max_tokens": 9}
    stream = one.streamed and api == "messages"
    if api == "messages":
        body = {"max_tokens": 9, **body}
    body = _asked(body, stream=stream)
    options, base = _options(one), _prefix(one, _TAILS[api])

    def ask(client: Any) -> Any:
        method = client.messages.create if api == "messages" else client.messages.count_tokens
        return method(**_split(method, body), timeout=60)

    return _of(
        _through(
            lambda url: anthropic.Anthropic(base_url=url + base, **options),
            lambda url: anthropic.AsyncAnthropic(base_url=url + base, **options),
            ask,
        ),
        stream,
    )


def _google(one: Exchange, api: str, body: Body) -> dict[str, Program]:
    place = _GOOGLE.match(one.path or "") or _GOOGLE.match("/v1beta/models/m:generateContent")
    assert place is not None
    stream = one.streamed

    def client(url: str) -> genai.Client:
        return genai.Client(
            api_key="unused",
            http_options=types.HttpOptions(
                base_url=url + quote(place["base"], safe="/:@"),
                api_version=place["version"],
                extra_body=body or None,
            ),
        )

    @contextlib.asynccontextmanager
    async def aclient(url: str) -> Any:
        made = client(url)
        try:
            yield made.aio
        finally:
            await made.aio.aclose()

    def ask(c: Any) -> Any:
        method = c.models.generate_content_stream if stream else c.models.generate_content
        return method(model=place["model"], contents="hello")

    return _of(_through(client, aclient, ask), stream)


def _plain(one: Exchange, _: str, body: Body) -> dict[str, Program]:
    del body
    headers = {name: value for name, value in one.request_headers if name.lower() == "content-type"}
    path = quote(one.path or "/", safe="/:@") + (
        "?" + str(httpx2.QueryParams(list(one.query))) if one.query else ""
    )
    request: Any = {"method": one.method or "POST", "content": one.request_body, "headers": headers}

    def whole(url: str) -> Any:
        found: list[Any] = []
        with _failing(found, *_ERRORS), httpx2.Client(timeout=30) as client:
            found.append(seen(client.request(url=url + path, **request)))
        return found

    async def whole_async(url: str) -> Any:
        found: list[Any] = []
        with _failing(found, *_ERRORS):
            async with (
                httpx2.AsyncClient(timeout=30) as client,
                client.stream(url=url + path, **request) as answer,
            ):
                data = b"".join([piece async for piece in answer.aiter_bytes()])
                found += [seen(data), answer.status_code]
        return found

    def left_early(url: str) -> Any:
        found: list[Any] = []
        with (
            _failing(found, *_ERRORS),
            httpx2.Client(timeout=30) as client,
            client.stream(url=url + path, **request) as answer,
        ):
            found.append(answer.status_code)
        return found

    return _of({"sync": whole, "async": whole_async, "left early": left_early}, one.streamed)
