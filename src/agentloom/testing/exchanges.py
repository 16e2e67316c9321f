"""Recorded HTTP traffic as values: exchanges, frames of a websocket, and what a file of them held.

Bodies are bytes as they were recorded, encodings included; `Exchange.content` and `Exchange.request` read them.
"""

from __future__ import annotations

import binascii
import importlib
import importlib.util
import json
import re
import zlib
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from agentloom.errors import TrafficError

__all__ = [
    "EVENT_STREAM",
    "Exchange",
    "Frame",
    "Headers",
    "Traffic",
    "decoded",
    "find_header",
    "is_stream",
    "media_type",
]

Headers = tuple[tuple[str, str], ...]
"""Names and values in recorded order; names as they were written."""

EVENT_STREAM = "application/vnd.amazon.eventstream"
_STREAMS = ("text/event-stream", EVENT_STREAM, "application/x-ndjson", "application/stream+json")
_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+", re.ASCII)
_MOST = 256 * 1024 * 1024  # decoded bytes of one body
_MAGIC = {
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"\xff\xf3": "audio/mpeg",
    b"\xff\xf2": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"RIFF": "audio/wav",
    b"\x89PNG\r\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}
_ZSTD = b"\x28\xb5\x2f\xfd"


def find_header(headers: Headers, name: str) -> str | None:
    """The first value of a header; names are compared without case."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and the answer that was given to it.

    ``url`` is "" and ``request_body`` None where they are not known (a bare answer, a redacted address). ``name`` says
    where it is from: the file and a number from 0. ``streamed``: the answer arrived in pieces.
    """

    name: str
    method: str
    url: str
    request_headers: Headers
    request_body: bytes | None = field(repr=False)
    status: int
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)
    streamed: bool

    @property
    def path(self) -> str | None:
        """The path of the address, percent-decoded; None where the address is not known."""
        return unquote(urlsplit(self.url).path) or "/" if self.url else None

    @property
    def host(self) -> str:
        """The host of the address, "" where it is not known."""
        return urlsplit(self.url).hostname or ""

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """The parameters of the address in order, percent-decoded."""
        return tuple(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

    @property
    def content_type(self) -> str:
        """The answer's media type: as its header says, or what its bytes look like where the header is missing."""
        return media_type(self.headers, self.content)

    def header(self, name: str) -> str | None:
        """The first value of a header of the answer."""
        return find_header(self.headers, name)

    @property
    def encoded(self) -> bool:
        """Whether the body really has the encoding that its header names; recorders often keep the header alone."""
        return self.content is not self.body or _maybe_brotli(self.body, self.headers)

    @property
    def content(self) -> bytes:
        """The answer's body without its content encoding (gzip, deflate, zstd; br where a package for it is there)."""
        return decoded(self.body, self.headers)

    def json(self) -> Any:
        """The answer as JSON. ValueError."""
        return json.loads(self.content)

    def request(self) -> Any:
        """The request's body: JSON where it is JSON, else the decoded bytes; None where it is not known."""
        if self.request_body is None:
            return None
        data = decoded(self.request_body, self.request_headers)
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            return data


@dataclass(frozen=True, slots=True)
class Frame:
    """One message of a recorded websocket. ``data``: the parsed message."""

    direction: Literal["sent", "received"]
    data: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a file held. ``container``: its form, by the names of `read_traffic`.

    ``skipped`` says in words what else was in the file and has no answer to give (an aborted request, an exception).
    """

    path: str
    container: str
    exchanges: tuple[Exchange, ...]
    frames: tuple[Frame, ...] = ()
    skipped: tuple[str, ...] = ()


def media_type(headers: Headers, content: bytes) -> str:
    """The media type of a body: the header's, without parameters, or a guess from the bytes."""
    said = find_header(headers, "content-type") or ""
    if match := _TYPE.match(said.strip()):
        return match[0].lower()
    return _looks_like(content)


def is_stream(kind: str) -> bool:
    """Whether a media type is one of a stream of events."""
    return kind in _STREAMS


def _looks_like(content: bytes) -> str:
    start = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    if re.match(rb"(data|event|id|retry)?:", start):
        return "text/event-stream"
    if start[:1] in (b"{", b"["):
        return "application/json"
    for magic, kind in _MAGIC.items():
        if content.startswith(magic):
            return kind
    if len(content) >= 16 and binascii.crc32(content[:8]) == int.from_bytes(content[8:12], "big"):
        return EVENT_STREAM  # the prelude's checksum, see `traffic_bare.event_message`
    return "application/octet-stream"


def decoded(body: bytes, headers: Headers) -> bytes:
    """``body`` without its content encoding; the very same object when it has none. TrafficError for a bomb."""
    said = (find_header(headers, "content-encoding") or "").strip().lower()
    if body.startswith(b"\x1f\x8b"):  # also where the header was not kept
        return _inflated(body, 31, "gzip")
    if said == "deflate" and not _looks_plain(body):
        return _inflated(body, 15 if body[:1] == b"\x78" else -15, said)
    if body.startswith(_ZSTD):
        return _unzstd(body)
    if said == "br" and not _looks_plain(body):
        return _unbrotli(body)
    return body


def _looks_plain(body: bytes) -> bool:
    return not body or _looks_like(body) != "application/octet-stream" or body.isascii()


def _maybe_brotli(body: bytes, headers: Headers) -> bool:
    said = (find_header(headers, "content-encoding") or "").strip().lower()
    return said == "br" and not _looks_plain(body)


def _inflated(body: bytes, window: int, name: str) -> bytes:
    """The decompressed bytes; what was cut off in the middle gives what there is; ``body`` itself if it is no such."""
    out: list[bytes] = []
    size, left = 0, body
    while left:  # gzip members may follow one another
        stream = zlib.decompressobj(window)
        try:
            part = stream.decompress(left, _MOST - size + 1)
        except zlib.error:
            return b"".join(out) if out else body
        size += len(part)
        if size > _MOST:
            raise TrafficError(f"a {name} body decompresses to more than {_MOST:,} bytes: refused")
        out.append(part)
        left = stream.unused_data if stream.eof else b""
    return b"".join(out)


def _unzstd(body: bytes) -> bytes:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(body, read_across_frames=True)
    try:
        data = reader.read(_MOST + 1)
    except zstandard.ZstdError:
        return body
    if len(data) > _MOST:
        raise TrafficError(f"a zstd body decompresses to more than {_MOST:,} bytes: refused")
    return data


def _unbrotli(body: bytes) -> bytes:
    for name in ("brotli", "brotlicffi"):
        if importlib.util.find_spec(name) is None:
            continue
        module: Any = importlib.import_module(name)
        stream, out, size = module.Decompressor(), list[bytes](), 0
        try:
            for start in range(0, len(body), 256):  # small pieces: a bomb is noticed before it is large
                out.append(stream.process(body[start : start + 256]))
                size += len(out[-1])
                if size > _MOST:
                    raise TrafficError(f"a br body decompresses to more than {_MOST:,} bytes: refused")
        except module.error:
            return body
        return b"".join(out)
    return body
