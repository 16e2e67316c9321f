"""Recorded bodies: encodings that are there, that are only said, and that are bombs."""

from __future__ import annotations

import gzip
import importlib
import zlib
from typing import Any

import pytest
import zstandard

from agentloom.errors import TrafficError
from agentloom.testing import Exchange
from agentloom.testing import exchanges as module
from agentloom.testing.exchanges import Headers, decoded, media_type
from agentloom.testing.traffic_bare import event_message

brotli: Any = importlib.import_module("brotli")
TEXT = b'{"answer": "' + b"caf\xc3\xa9 " * 50 + b'"}'


def made(**fields: Any) -> Exchange:
    values: dict[str, Any] = {
        "name": "a#0",
        "method": "POST",
        "url": "https://api.example.com/v1/a%20b?x=1&x=2&y=",
        "request_headers": (),
        "request_body": b"{}",
        "status": 200,
        "headers": (("Content-Type", "application/json"),),
        "body": b"{}",
        "streamed": False,
    }
    return Exchange(**values | fields)


def test_an_address_is_read_in_parts() -> None:
    one = made()
    assert (one.path, one.host, one.query) == (
        "/v1/a b",
        "api.example.com",
        (("x", "1"), ("x", "2"), ("y", "")),
    )
    unknown = made(url="")
    assert (unknown.path, unknown.host, unknown.query) == (None, "", ())
    assert made(url="https://api.example.com").path == "/"


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:60]) + gzip.compress(TEXT[60:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)[2:-4]),
        ("zstd", zstandard.compress(TEXT)),
        ("br", brotli.compress(TEXT)),
        ("", gzip.compress(TEXT)),
    ],
    ids=["gzip", "two gzip members", "deflate", "raw deflate", "zstd", "br", "gzip that no header names"],
)
def test_an_encoding_that_is_there_is_taken_off(encoding: str, body: bytes) -> None:
    one = made(body=body, headers=(("Content-Encoding", encoding),) if encoding else ())
    assert one.content == TEXT
    assert one.encoded
    assert one.content_type == "application/json"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd", "br", "identity", "snappy"])
def test_an_encoding_that_is_only_said_is_none(encoding: str) -> None:
    one = made(body=TEXT, headers=(("content-encoding", encoding),))
    assert one.content is one.body
    assert not one.encoded


def test_what_was_cut_off_gives_what_there_is() -> None:
    body = gzip.compress(bytes(range(256)) * 40)
    assert bytes(range(256)).startswith(decoded(body[:200], ())[:100])
    assert decoded(b"\x1f\x8bnonsense", ()) == b"\x1f\x8bnonsense"


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, brotli.compress])
def test_a_bomb_is_refused(pack: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST", 1_000_000)
    with pytest.raises(TrafficError, match="more than 1,000,000 bytes"):
        decoded(pack(bytes(4_000_000)), (("content-encoding", "br"),))


@pytest.mark.parametrize(
    ("headers", "content", "kind"),
    [
        ((("Content-Type", "Text/Event-Stream; charset=utf-8"),), b"", "text/event-stream"),
        ((("content-type", "**REDACTED**"),), b'{"a": 1}', "application/json"),
        ((), b"\xef\xbb\xbf\ndata: {}\n\n", "text/event-stream"),
        ((), b": comment\n\ndata: 1\n\n", "text/event-stream"),
        ((), event_message("messageStart", {"role": "assistant"}), "application/vnd.amazon.eventstream"),
        ((), b"\xff\xd8\xff\xe0", "image/jpeg"),
        ((), b"plain words", "application/octet-stream"),
        ((), b"", "application/octet-stream"),
    ],
)
def test_a_media_type_is_said_or_seen(headers: Headers, content: bytes, kind: str) -> None:
    assert media_type(headers, content) == kind


def test_a_request_is_json_or_bytes() -> None:
    assert made(request_body=b'{"a": 1}').request() == {"a": 1}
    assert made(request_body=gzip.compress(b"[1]")).request() == [1]
    assert made(request_body=b"a=1").request() == b"a=1"
    assert made(request_body=b"[" * 100_000).request() == b"[" * 100_000
    assert made(request_body=None).request() is None
