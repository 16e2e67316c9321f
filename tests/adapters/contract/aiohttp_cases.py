"""aiohttp's client."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp

from agentloom.testing import Drops, Fails, Says
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import headers_seen, seen
from tests.adapters.contract.httpx_cases import (
    BYTES,
    COOKIE,
    EMPTY,
    EVENTS,
    JSON,
    LINES,
    MOVED,
    SLOW,
    STREAM,
    ZIPPED,
)


def facts(answer: aiohttp.ClientResponse) -> Any:
    return [
        f"{type(answer).__module__}.{type(answer).__qualname__}",
        answer.status,
        answer.reason,
        headers_seen(answer.headers.items()),
        headers_seen((name.decode(), value.decode()) for name, value in answer.raw_headers),
        str(answer.url),
        str(answer.version),
        [one.status for one in answer.history],
        answer.method,
        answer.content_type,
    ]


async def whole(url: str) -> Any:
    found: list[Any] = []
    form = aiohttp.FormData({"form": "x"})
    form.add_field("up", b"\x00\xff" * 9, filename="a.bin")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as s:
        for method, path, options in (
            ("POST", "/a", {"json": {"q": 1}, "headers": {"x-id": "7"}}),
            ("GET", "/b", {"params": {"page": 2}}),
            ("POST", "/c", {"data": form}),
            ("GET", "/d", {}),
            ("HEAD", "/f", {}),
            ("DELETE", "/g", {}),
            ("POST", "/h", {"data": "text " * 20000, "compress": "gzip"}),
        ):
            async with s.request(method, url + path, **options) as answer:
                found.append([facts(answer), seen(await answer.read()), answer.closed])
        return found, [one.key for one in s.cookie_jar]


async def stream(url: str) -> Any:
    found: list[Any] = []
    async with aiohttp.ClientSession() as s:
        async with s.get(url + "/lines") as answer:
            found.append([line.decode() async for line in answer.content])
        async with s.get(url + "/bytes") as answer:
            found.append([len(one) async for one in answer.content.iter_chunked(1000)])
        async with s.post(url + "/events", json={"stream": True}) as answer:
            found.append(await answer.text())
        async with s.post(url + "/chat/completions", json=STREAM) as answer:
            found.append([line.decode() async for line in answer.content])
    return found


async def early(url: str) -> Any:
    async with aiohttp.ClientSession() as s:
        async with s.post(url + "/chat/completions", json=STREAM) as answer:
            first = (await answer.content.readline()).decode()
        async with s.get(url + "/lines") as answer:
            return first, answer.status


async def failing(url: str) -> Any:
    found: list[Any] = []
    async with aiohttp.ClientSession(raise_for_status=True) as s:
        for place in (url, url, url + "/chat/completions", "http://127.0.0.1:9/", "http://none.invalid/"):
            try:
                async with s.post(place, json=STREAM) as answer:
                    found.append(await answer.text())
            except aiohttp.ClientError as error:
                found.append(problem(error))
    return found


def problem(error: BaseException) -> Any:
    below = error.__cause__
    made = [f"{type(error).__module__}.{type(error).__qualname__}", str(error), isinstance(error, OSError)]
    for name in ("status", "message", "host", "port", "errno", "strerror"):
        value = getattr(error, name, None)
        made.append(value if isinstance(value, str | int | None) else type(value).__name__)
    return made, None if below is None else [type(below).__qualname__, str(below)]


async def retried(url: str) -> Any:
    async with aiohttp.ClientSession() as s, s.get(url) as first:
        await first.read()
        async with s.get(url) as second:  # the connection was kept, and is gone: aiohttp asks once more
            return first.status, second.status


async def cancelled(url: str) -> Any:
    found: list[Any] = []
    async with aiohttp.ClientSession() as s:
        try:
            async with asyncio.timeout(0.7), s.get(url):
                pass
        except TimeoutError:
            found.append("timeout")
        for limit in (aiohttp.ClientTimeout(total=0.2), aiohttp.ClientTimeout(sock_read=0.2)):
            try:
                async with s.get(url, timeout=limit):
                    pass
            except TimeoutError as error:
                found.append([type(error).__qualname__, str(error)])
        async with s.get(url) as answer:
            found.append(await answer.text())
    return found


SEAMS = [
    Seam(
        "aiohttp",
        [
            Case("async", whole, [JSON, COOKIE, ZIPPED, MOVED, Says("x"), EMPTY, EMPTY, JSON]),
            Case("stream", stream, [LINES, BYTES, EVENTS, Says("a b c")], ["http"] * 3 + ["model"]),
            Case("left early", early, [Says("a b c"), LINES], ["model", "http"]),
            Case("error", failing, [Fails(404), Drops(), Says("a b c", break_after=2)]),
            Case("retry", retried, [JSON, Drops(), JSON], ["http"] * 3),
            Case("cancel", cancelled, [SLOW, SLOW, SLOW, JSON], ["http"] * 4, waits=True),
        ],
        lacks={"sync": "the library has no sync calls", "raw": "its responses are the raw ones"},
    )
]
