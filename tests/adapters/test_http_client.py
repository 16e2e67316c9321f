"""Compressed bodies, also such as are not what their header says, through every HTTP library: the same each time."""

from __future__ import annotations

import gzip
import http.client
import io
import socket
import urllib.request
import zlib
from collections.abc import Callable
from typing import Any

import aiohttp
import brotli  # type: ignore[import-untyped]
import httpx
import httpx2
import pytest
import requests
import urllib3

from agentloom.adapters import sdks
from agentloom.adapters.http_client import answer_of, headers_of
from agentloom.adapters.http_wire import head_pairs
from agentloom.testing import Raw
from agentloom.testing.sdk_contract import Case, prove
from agentloom.testing.sdk_seen import headers_seen, seen

JSON = b'{"a": [1,2]}'


def coded(body: bytes, encoding: str, kind: str = "application/json") -> Raw:
    return Raw(body, 200, {"content-type": kind, "content-encoding": encoding})


SCRIPT = [
    coded(gzip.compress(JSON), "gzip"),
    coded(brotli.compress(JSON), "br"),
    coded(JSON, "gzip"),  # a header that lies
    coded(gzip.compress(JSON) + gzip.compress(b" "), "gzip"),
    coded(zlib.compress(JSON)[2:-4], "deflate"),  # without its header
    coded(gzip.compress(gzip.compress(JSON)), "gzip, gzip"),
    coded(gzip.compress(JSON)[:-6], "gzip"),
    coded(b"", "gzip"),
    coded(gzip.compress(b'data: {"x":1}\n\n' * 3), "gzip", "text/event-stream"),
    coded(JSON, "nonsense"),
]


def problem(error: Exception) -> list[str]:
    return [f"{type(error).__module__}.{type(error).__qualname__}", str(error)[:80]]


def each(ask: Callable[[], Any]) -> list[Any]:
    found: list[Any] = []
    for _ in SCRIPT:
        try:
            found.append(ask())
        except Exception as error:  # noqa: BLE001 - whatever it is, it is compared
            found.append(problem(error))
    return found


def by_requests(url: str) -> Any:
    def ask() -> Any:
        answer = requests.get(url, timeout=5)
        return [headers_seen(answer.headers.items()), seen(answer.content)]

    return each(ask)


def by_requests_streamed(url: str) -> Any:
    def ask() -> Any:
        with requests.get(url, stream=True, timeout=5) as answer:
            return [headers_seen(answer.headers.items()), seen(b"".join(answer.iter_content(5)))]

    return each(ask)


def by_urllib3(url: str) -> Any:
    return each(lambda: seen(urllib3.request("GET", url).data))


def by_urllib(url: str) -> Any:
    def ask() -> Any:
        with urllib.request.urlopen(url) as answer:
            return [headers_seen(answer.headers.items()), seen(answer.read())]

    return each(ask)


def by_httpx(library: Any) -> Callable[[str], Any]:
    def program(url: str) -> Any:
        def ask() -> Any:
            answer = library.get(url)
            return [headers_seen(answer.headers.multi_items()), seen(answer.content)]

        return each(ask)

    return program


def by_httpx_streamed(library: Any) -> Callable[[str], Any]:
    def program(url: str) -> Any:
        def ask() -> Any:
            with library.stream("GET", url) as answer:
                return seen(b"".join(answer.iter_bytes()))

        return each(ask)

    return program


async def by_aiohttp(url: str) -> Any:
    found: list[Any] = []
    async with aiohttp.ClientSession() as session:
        for _ in SCRIPT:
            try:
                async with session.get(url) as answer:
                    found.append([headers_seen(answer.headers.items()), seen(await answer.read())])
            except aiohttp.ClientError as error:
                found.append(problem(error))
    return found


PROGRAMS: dict[str, Callable[[str], Any]] = {
    "requests": by_requests,
    "requests streamed": by_requests_streamed,
    "urllib3": by_urllib3,
    "urllib.request": by_urllib,
    "httpx": by_httpx(httpx),
    "httpx streamed": by_httpx_streamed(httpx),
    "httpx2": by_httpx(httpx2),
    "httpx2 streamed": by_httpx_streamed(httpx2),
    "aiohttp": by_aiohttp,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bodies_that_are_compressed_or_say_so(name: str) -> None:
    sdks.watch()
    assert prove(Case("raw", PROGRAMS[name], SCRIPT)).problem == ""


def as_parsed(pairs: list[tuple[str, str]]) -> http.client.HTTPMessage:
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs).encode("latin-1", "replace")
    return http.client.parse_headers(io.BytesIO(lines + b"\r\n"))


def facts(message: http.client.HTTPMessage) -> dict[str, Any]:
    payload: Any = message.get_payload()
    parts = payload if type(payload) is str else [str(one) for one in payload]
    return vars(message) | {"defects": [type(one) for one in message.defects], "_payload": parts}


HEADERS: list[list[tuple[str, str]]] = [
    [],
    [("content-type", "application/json"), ("X-A", "1"), ("x-a", "two words "), ("empty", "")],
    [("Content-Type", "multipart/mixed; boundary=x"), ("a", "b")],
    [("content-type", "message/rfc822")],
    [("content-type", "text/plain; charset=latin-1"), ("content-transfer-encoding", "base64")],
    [("x", "caf\u00e9"), ("y", "\u20ac")],
    [("x", " led"), ("y", "\ttab")],
    [("x", "a\r\n folded"), ("From ", "odd"), ("with space", "x")],
    [("From", "somebody"), ("x:y", "z"), ("x", "a\x00b"), ("y", "a\x85b")],
]


@pytest.mark.parametrize("pairs", HEADERS)
def test_headers_are_as_the_client_parses_them(pairs: list[tuple[str, str]]) -> None:
    made, parsed = headers_of(pairs), as_parsed(pairs)
    assert facts(made) == facts(parsed)
    assert made.items() == parsed.items()
    assert str(made) == str(parsed)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("status", [200, 204, 304, 404])
def test_an_answer_in_chunks_is_as_the_client_begins_it(status: int, method: str) -> None:
    head = {"status": status, "headers": {"x": "y"}, "reason": " an \u20ac odd one "}
    made = answer_of(head, iter([b"piece", b""]), method, reframed=True)
    raw = f"HTTP/1.1 {status}  an ? odd one \r\nTransfer-Encoding: chunked\r\n\r\n5\r\npiece\r\n0\r\n\r\n".encode()
    begun = http.client.HTTPResponse(Wire(raw), method=method)
    begun.begin()
    left = ("fp", "headers", "msg")
    assert {k: v for k, v in vars(made).items() if k not in left} == {
        k: v for k, v in vars(begun).items() if k not in left
    }
    assert made.read() == begun.read()


class Wire(socket.socket):
    """A socket with one answer in it."""

    def __init__(self, raw: bytes) -> None:
        super().__init__()
        self._raw = raw

    def makefile(self, *_: Any, **__: Any) -> Any:
        self.close()
        return io.BytesIO(self._raw)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("head", "body"),
    [
        ({"headers": {"content-length": "5"}}, b"piece"),
        ({"headers": {"content-length": "5", "connection": "close"}}, b"piece"),
        ({"headers": {}, "version": "HTTP/1.0"}, b"piece"),
        ({"headers": {"connection": "keep-alive", "content-length": " 5"}, "version": "HTTP/1.0"}, b"piece"),
        ({"headers": {"transfer-encoding": "chunked"}}, b"5\r\npiece\r\n0\r\n\r\n"),
        ({"headers": {"transfer-encoding": "Chunked", "content-length": "3"}}, b"5\r\npiece\r\n0\r\n\r\n"),
        ({"headers": {"transfer-encoding": "gzip, chunked"}}, b"piece"),
        (
            {"headers": {"transfer-encoding": ["gzip", "chunked"]}, "names": ["transfer-encoding"] * 2},
            b"piece",
        ),
        ({"headers": {"content-length": "-1"}}, b"piece"),
        ({"headers": {"content-length": "many"}}, b"piece"),
        ({"headers": {"content-length": "0"}}, b""),
        (
            {"headers": {"content-length": ["5", "6"]}, "names": ["content-length", "Content-Length"]},
            b"piece",
        ),
    ],
)
def test_an_answer_is_as_the_client_begins_it(head: dict[str, Any], body: bytes, method: str) -> None:
    head = {"status": 200, "reason": "OK", **head}
    lines = "".join(f"{name}: {value}\r\n" for name, value in head_pairs(head))
    raw = f"{head.get('version', 'HTTP/1.1')} 200 OK\r\n{lines}\r\n".encode() + body
    begun = http.client.HTTPResponse(Wire(raw), method=method)
    begun.begin()
    made = answer_of(head, iter([b"piece"] if body else []), method, reframed=False)
    left = ("fp", "headers", "msg")
    assert {k: v for k, v in vars(made).items() if k not in left} == {
        k: v for k, v in vars(begun).items() if k not in left
    }
    assert made.headers.items() == begun.headers.items()
    assert made.read() == begun.read()
