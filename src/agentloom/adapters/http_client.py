"""Answers of the standard library's HTTP client, taken apart while they come and put together again from a trace.

What is recorded of a body that breaks off is where it did (``cut``: bytes that were still due, None in the middle of a
chunked body), so that the client's own code finds the same fault in the same place. A body that stays compressed says
so (``encoded``): the client's own code unfolds it.
"""

from __future__ import annotations

import http.client
import io
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from agentloom.adapters.exchanges import (
    Classified,
    bare_error,
    chain_of,
    comes_whole,
    events_of,
    is_events,
    piece_of,
    whole_of,
)
from agentloom.adapters.http_bodies import body_bytes, plain_body
from agentloom.adapters.http_wire import head_fields, head_pairs, head_reason, value_bytes

__all__ = [
    "answer_of",
    "clean",
    "head_of",
    "headers_of",
    "parts_of",
    "piece_bytes",
    "values_of",
    "whole_value",
]

_PIECE = 1 << 16


def head_of(answer: http.client.HTTPResponse) -> dict[str, Any]:
    """The head as it is recorded."""
    version = {9: "HTTP/0.9", 10: "HTTP/1.0"}.get(answer.version, "HTTP/1.1")
    pairs = [(name, str(value)) for name, value in answer.headers.items()]
    return head_fields(answer.status, pairs, version, answer.reason)


def whole_value(answer: http.client.HTTPResponse, found: Classified) -> dict[str, Any]:
    """The whole answer as it is recorded; an error in its body (``broken``) comes with what was read before."""
    parts: list[bytes] = []
    end: dict[str, Any] = {}
    try:
        parts.extend(_read(answer, end))
    except (OSError, http.client.HTTPException) as error:
        end = {"broken": clean(error)}
    body = b"".join(parts)
    kind, encoding = answer.headers.get("content-type"), answer.headers.get("content-encoding")
    if encoding and body:
        plain = plain_body(encoding, body)
        if plain is body:  # another encoding, or a header that lies
            return head_of(answer) | {"encoded": True, "bytes": body} | end
        body = plain
    return whole_of(head_of(answer), kind, body, found) | end


def values_of(answer: http.client.HTTPResponse, found: Classified) -> Iterator[dict[str, Any]]:
    """The head, then events or pieces of the body; one that is compressed comes as it is."""
    encoded = bool(answer.headers.get("content-encoding"))
    yield head_of(answer) | ({"encoded": True} if encoded else {})
    end: dict[str, Any] = {}
    kind: str | None = None if encoded else answer.headers.get("content-type")
    body = _read(answer, end)
    if is_events(kind):
        yield from events_of(body, found, OSError)
    elif comes_whole(kind, found):
        data = b"".join(body)
        if data:
            yield piece_of(kind, data, found, whole=True)
    else:
        for data in body:
            yield piece_of(None, data, found, whole=False)
    if end:
        yield end


def _read(answer: http.client.HTTPResponse, end: dict[str, Any]) -> Iterator[bytes]:
    """The body as it comes. ``end`` is filled when it breaks off."""
    due = answer.length
    while True:
        try:
            data = answer.read1(_PIECE)
        except http.client.IncompleteRead:
            end["cut"] = None
            return
        if not data:
            break
        due = None if due is None else due - len(data)
        yield data
    if due:
        end["cut"] = due


def clean(error: BaseException) -> BaseException:
    """An error of a socket or of the client as it can be written down."""
    return chain_of(error, bare_error)


def piece_bytes(value: Mapping[str, Any]) -> bytes | None:
    """One piece of a recorded body; None where it broke off in the middle of a chunked one."""
    if "cut" in value and "body" not in value and "status" not in value:
        return None
    return value_bytes(value)


def parts_of(value: Mapping[str, Any]) -> Iterator[bytes | None]:
    """The pieces of a whole recorded answer; its error is raised where it was."""
    data = body_bytes(value)
    if data:
        yield data
    if "broken" in value:
        raise cast("BaseException", value["broken"])
    if "cut" in value:
        yield None


class _Frames(io.RawIOBase):
    """Bytes of an answer, made from its pieces as they are asked for, each of them a chunk."""

    def __init__(self, pieces: Iterator[bytes | None], framed: bool, due: int | None) -> None:
        super().__init__()
        self._due = due
        self._left = b""
        self._pieces = pieces
        self._framed = framed
        self._over = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left and not self._over:
            self._left = self._next()
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count

    def _next(self) -> bytes:
        piece = next(self._pieces, b"")
        if piece is None:
            self._over = True
            return b""
        if not piece:
            self._over = True
            return b"0\r\n\r\n" if self._framed else b""
        if self._due is not None:
            self._due -= len(piece)
            if self._due <= 0:  # nobody will ask for the end
                next(self._pieces, None)
                self._over = True
        return b"%x\r\n%b\r\n" % (len(piece), piece) if self._framed else piece

    def close(self) -> None:
        close = getattr(self._pieces, "close", None)
        if close is not None and not self.closed:
            close()
        super().close()


class _Socket:
    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def makefile(self, *_: object) -> Any:
        return self._reader


def answer_of(
    head: Mapping[str, Any], pieces: Iterator[bytes | None], method: str, *, reframed: bool
) -> http.client.HTTPResponse:
    """A recorded answer as an object of the client. ``reframed``: its body is cut into chunks whatever its headers say
    (for a library that reads the headers by itself, and whose body is decoded)."""
    headers = headers_of(head_pairs(head))
    chunked = reframed or (headers.get("transfer-encoding") or "").lower() == "chunked"
    length = None if chunked else _length(headers)
    reader = io.BufferedReader(_Frames(pieces, chunked, length))
    made = http.client.HTTPResponse(cast(Any, _Socket(reader)), method=method)
    answer, status = cast(Any, made), int(head["status"])
    # What ``begin`` of the client does, without a parser for what is known already.
    answer.code = answer.status = status
    answer.reason = head_reason(head).encode("latin-1", "replace").decode("latin-1").strip()
    answer.version = 10 if head.get("version") in ("HTTP/1.0", "HTTP/0.9") else 11
    answer.headers = answer.msg = headers
    answer.chunked, answer.length = chunked, length
    if chunked:
        answer.chunk_left = None
    if status in (204, 304) or 100 <= status < 200 or method == "HEAD":
        answer.length = 0
    answer.will_close = not reframed and (answer._check_close() or (not chunked and answer.length is None))
    return made


def _length(headers: http.client.HTTPMessage) -> int | None:
    """The length of a body that is not in chunks, as the client reads it."""
    try:
        length = int(headers.get("content-length") or -1)
    except ValueError:
        return None
    return length if length >= 0 else None


def _lines(pairs: list[tuple[str, str]]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in pairs).encode("latin-1", "replace")


def headers_of(pairs: list[tuple[str, str]]) -> http.client.HTTPMessage:
    """What ``http.client.parse_headers`` makes of these headers, without its parser where there is nothing to parse."""
    made = http.client.HTTPMessage()
    for name, value in pairs:
        if not _PLAIN_NAME.fullmatch(name) or not _PLAIN_VALUE.fullmatch(value) or _has_parts(name, value):
            return http.client.parse_headers(io.BytesIO(_lines(pairs) + b"\r\n"))
        made.set_raw(name, value)
    made.set_payload("")
    return made


_PLAIN_NAME = re.compile(r"[!-9;-~]+")
_PLAIN_VALUE = re.compile(r"(?:[!-~][ -~]*)?")


def _has_parts(name: str, value: str) -> bool:
    """Whether the parser of mail would look for parts in the body, which it is not given."""
    return name.lower() == "content-type" and value.lower().startswith(("multipart/", "message/"))
