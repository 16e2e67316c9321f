"""Plain HTTP by httpx and httpx2."""

from __future__ import annotations

import asyncio
import gzip
from typing import Any

import httpx
import httpx2

from agentloom.testing import Drops, Fails, Raw, Says
from agentloom.testing.sdk_contract import Case, Seam
from agentloom.testing.sdk_seen import seen

JSON = Raw(b'{ "a": [1, 2.50, 1e3], "b": "caf\xc3\xa9" }\n')
ZIPPED = Raw(
    gzip.compress(b'{"a": 1}'),
    200,
    {"content-type": "application/json", "Content-Encoding": "gzip", "X-Twice": "a", "x-twice": "b"},
)
COOKIE = Raw(
    b"in", 200, {"content-type": "text/plain", "set-cookie": "sid=very-private-0815; Path=/; HttpOnly"}
)
MOVED = Raw(b"", 302, {"location": "/elsewhere", "content-type": "text/plain"})
LINES = Raw("".join(f"line {n}\n" for n in range(2000)).encode(), 200, {"content-type": "text/plain"})
BYTES = Raw(bytes(range(256)) * 30, 200, {"content-type": "application/octet-stream"})
EMPTY = Raw(b"", 204, {})
EVENTS = Raw(
    b': hello\n\nevent: a\ndata: { "x": 1 }\nid: 1\n\ndata: two\ndata: lines\n\ndata: cut',
    200,
    {"content-type": "text/event-stream"},
)
SLOW = Says("late", latency=3.0)


def seam(library: Any) -> Seam:
    """The cases, written once for both libraries."""

    def whole(url: str) -> Any:
        with library.Client(follow_redirects=True) as c:
            found = [
                c.post(url + "/a", json={"q": 1}, headers={"x-id": "7"}),
                c.get(url + "/b", params={"page": 2}),
                c.post(url + "/c", data={"form": "x"}, files={"up": ("a.bin", b"\x00\xff" * 9)}),
                c.get(url + "/d"),
                c.get(url + "/e"),
                c.head(url + "/f"),
                c.delete(url + "/g"),
            ]
            return [seen(one) for one in found], list(c.cookies)

    async def whole_async(url: str) -> Any:
        async with library.AsyncClient(follow_redirects=True) as c:
            found = [
                await c.put(url + "/a", json={"q": 1}),
                await c.get(url + "/b", params={"page": 2}),
                await c.post(url + "/c", content=b"plain"),
                await c.get(url + "/d"),
                await c.get(url + "/e"),
                await c.request("OPTIONS", url + "/f"),
                await c.delete(url + "/g"),
            ]
            return [seen(one) for one in found], list(c.cookies)

    def stream(url: str) -> Any:
        with library.Client() as c:
            found: list[Any] = []
            with c.stream("GET", url + "/lines") as answer:
                found += [answer.status_code, list(answer.iter_lines())]
            with c.stream("GET", url + "/bytes") as answer:
                found.append(seen(b"".join(answer.iter_bytes())))
            with c.stream("POST", url + "/events", json={"stream": True}) as answer:
                found.append(list(answer.iter_lines()))
            with c.stream("GET", url + "/json") as answer:
                found.append([seen(answer.read()), seen(answer)])
            return found

    async def stream_async(url: str) -> Any:
        async with library.AsyncClient() as c:
            found: list[Any] = []
            async with c.stream("GET", url + "/lines") as answer:
                found.append([line async for line in answer.aiter_lines()])
            async with c.stream("GET", url + "/bytes") as answer:
                found.append(seen(b"".join([one async for one in answer.aiter_bytes()])))
            async with c.stream("POST", url + "/events", json={"stream": True}) as answer:
                found.append([line async for line in answer.aiter_lines()])
            async with c.stream("GET", url + "/json") as answer:
                found.append([seen(await answer.aread()), seen(answer)])
            return found

    def early(url: str) -> Any:
        with library.Client() as c, c.stream("POST", url + "/chat/completions", json=STREAM) as answer:
            return next(answer.iter_lines())

    async def early_async(url: str) -> Any:
        async with library.AsyncClient() as c, c.stream("GET", url + "/lines") as answer:
            async for line in answer.aiter_lines():
                return line
        return None

    def failing(url: str) -> Any:
        found: list[Any] = []
        with library.Client() as c:
            for place in (url, url, url + "/chat/completions", "http://127.0.0.1:9/"):
                try:
                    found.append(seen(c.post(place, json=STREAM).raise_for_status()))
                except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
                    found.append(seen(error))
        return found

    async def failing_async(url: str) -> Any:
        found: list[Any] = []
        async with library.AsyncClient() as c:
            for place in (url, url, url + "/chat/completions", "http://127.0.0.1:9/"):
                try:
                    found.append(seen((await c.post(place, json=STREAM)).raise_for_status()))
                except Exception as error:  # noqa: BLE001 - as above
                    found.append(seen(error))
        return found

    def limited(url: str) -> Any:
        try:
            return seen(library.get(url, timeout=0.2))
        except library.TimeoutException as error:
            return seen(error)

    async def cancelled(url: str) -> Any:
        async with library.AsyncClient() as c:
            try:
                await asyncio.wait_for(c.get(url), 0.7)
            except TimeoutError:
                return (await c.get(url)).text
        return "no timeout"

    def raw(url: str) -> Any:
        with library.Client() as c, c.stream("GET", url) as answer:
            data = b"".join(answer.iter_raw())
        return seen(data), answer.num_bytes_downloaded, seen(answer), answer.headers.raw[1][0].decode()

    return Seam(
        library.__name__,
        [
            Case("sync", whole, [JSON, COOKIE, MOVED, Says("x"), ZIPPED, EMPTY, JSON, EMPTY]),
            Case("async", whole_async, [JSON, COOKIE, MOVED, Says("x"), ZIPPED, EMPTY, JSON, EMPTY]),
            Case("stream", stream, [LINES, BYTES, EVENTS, JSON], ["http"] * 4),
            Case("stream", stream_async, [LINES, BYTES, EVENTS, JSON], ["http"] * 4),
            Case("left early", early, [Says("a b c")], ["model"]),
            Case("left early", early_async, [LINES], ["http"]),
            Case("error", failing, [Fails(404), Drops(), Says("a b c", break_after=2)]),
            Case("error", failing_async, [Fails(404), Drops(), Says("a b c", break_after=2)]),
            Case("cancel", limited, [SLOW], ["http"], "by a time limit"),
            Case("cancel", cancelled, [SLOW, JSON], ["http"] * 2, waits=True),
            Case("raw", raw, [BYTES], ["http"]),
        ],
        lacks={"retry": "the library retries nothing that was sent"},
    )


STREAM: Any = {"model": "m", "messages": [], "stream": True}
SEAMS = [seam(httpx), seam(httpx2)]
