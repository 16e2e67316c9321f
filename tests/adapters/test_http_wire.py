"""HTTP bodies and event streams as values and back."""

from __future__ import annotations

import random
from typing import Any

import pytest

from agentloom.adapters.http_bodies import answer_fields, body_bytes, body_fields
from agentloom.adapters.http_wire import EventReader, event_bytes, head_fields, head_pairs, request_fields


def read(*pieces: bytes) -> list[dict[str, Any]]:
    reader = EventReader()
    return [event for piece in pieces for event in reader.feed(piece)] + list(reader.finish())


STREAM = (
    b': a comment\r\ndata: {"a": 1}\r\n\r\nevent: ping\ndata: one\ndata: two\n\n'
    b"id: 7\rretry: 30\rdata:[1]\r\rdata: 1e3\n\ndata: caf\xc3\xa9\n\n\n\ndata: [DONE]\n\ndata: cut off"
)
EVENTS: list[dict[str, Any]] = [
    {"json": {"a": 1}, "layout": {"spaced": True}, "raw": ': a comment\r\ndata: {"a": 1}\r\n\r\n'},
    {"event": "ping", "data": "one\ntwo"},
    {"id": "7", "retry": "30", "json": [1], "raw": "id: 7\rretry: 30\rdata:[1]\r\r"},
    {"data": "1e3"},
    {"data": "café"},
    {"text": "\n"},
    {"text": "\n"},
    {"data": "[DONE]"},
    {"text": "data: cut off"},
]


def test_events_of_all_line_ends_comments_and_fields() -> None:
    assert read(STREAM) == EVENTS
    assert b"".join(map(event_bytes, EVENTS)) == STREAM


@pytest.mark.parametrize(
    ("raw", "event"),
    [
        (b'event: a\r\ndata: {"x":1}\r\n\r\n', {"event": "a", "json": {"x": 1}, "ends": "\r\n"}),
        (b'data: {"x": 1.50}\n\n', {"json": {"x": 1.5}, "data": '{"x": 1.50}'}),
        (b": only a comment\n\n", {"text": ": only a comment\n\n"}),
        (b"data: x\nevent: late\n\n", {"event": "late", "data": "x", "raw": "data: x\nevent: late\n\n"}),
        (b'data: {\ndata: "x": 1\ndata: }\n\n', {"json": {"x": 1}, "data": '{\n"x": 1\n}'}),
    ],
)
def test_an_event_is_taken_apart_and_comes_back_as_the_very_same_bytes(
    raw: bytes, event: dict[str, Any]
) -> None:
    assert read(raw) == [event]
    assert event_bytes(event) == raw


@pytest.mark.parametrize("seed", range(20))
def test_events_do_not_depend_on_where_the_bytes_are_cut(seed: int) -> None:
    chance = random.Random(seed)
    cuts = sorted(chance.sample(range(1, len(STREAM)), 12))
    pieces = [STREAM[start:end] for start, end in zip([0, *cuts], [*cuts, len(STREAM)], strict=True)]
    assert read(*pieces) == EVENTS, f"seed {seed}, cuts {cuts}"


@pytest.mark.parametrize("event", [event for event in EVENTS if "text" not in event])
def test_an_event_comes_back_from_its_own_bytes(event: dict[str, Any]) -> None:
    assert read(event_bytes(event)) == [event]


@pytest.mark.parametrize(
    "raw",
    [
        b'\xef\xbb\xbfdata: {"a": 1}\n\n',
        b"data: caf\xe9\r\n\r\n",
        b"data: 1\nother: 2\n\n",
        b"id: 1\nid: 2\ndata: x\n\n",
        b"event\r\r",
    ],
)
def test_an_event_that_is_not_plain_is_kept_as_it_came(raw: bytes) -> None:
    (event,) = read(raw)
    assert set(event) in ({"text"}, {"bytes"})
    assert event_bytes(event) == raw


def test_a_carriage_return_at_the_very_end_ends_the_last_event() -> None:
    assert read(b"data: 1\r", b"\r") == [{"data": "1", "raw": "data: 1\r\r"}]


def test_line_separators_of_other_readers_stay_escaped() -> None:
    assert body_bytes({"json": "\x85\u2028\u2029"}) == b'"\\u0085\\u2028\\u2029"'


@pytest.mark.parametrize(
    ("content_type", "body", "fields"),
    [
        ("application/json", b'{"a": [1, 2.0]}', {"json": {"a": [1, 2.0]}}),
        ("application/problem+json; charset=utf-8", b"null", {"json": None}),
        ("application/json", b"not json", {"text": "not json"}),
        ("text/html", "é".encode(), {"text": "é"}),
        ("image/png", b"\x89PNG", {"bytes": b"\x89PNG"}),
        (None, b"", {}),
    ],
)
def test_bodies(content_type: str | None, body: bytes, fields: dict[str, Any]) -> None:
    found = body_fields(content_type, body)
    assert found == fields
    assert body_fields(content_type, body_bytes(found)) == fields


def test_a_lone_surrogate_survives() -> None:
    assert body_bytes({"json": "\ud83d"}) == b'"\\ud83d"'


def test_headers_of_credentials_and_of_the_wire_are_not_kept() -> None:
    secrets = [
        "Set-Cookie",
        "Authorization",
        "X-Amz-Security-Token",
        "api-key",
        "X-Session-Id",
        "x-csrf",
        "Set-Cookie2",
    ]
    pairs = [("X-Request-ID", "1"), ("X-RateLimit-Limit-Tokens", "9"), ("x-groq-region", "dls")]
    wire = [("Content-Encoding", "gzip"), ("Transfer-Encoding", "chunked"), ("Content-Length", "7")]
    held = [*pairs, *wire, *((name, "very-secret") for name in secrets)]
    head = head_fields(200, held)
    assert "very-secret" not in str(head["headers"])
    assert head["headers"]["x-request-id"] == "1"
    assert head["headers"]["content-encoding"] == "gzip"
    assert head_pairs(head) == held


@pytest.mark.parametrize(
    "pairs",
    [
        [("link", "a"), ("Link", "b"), ("x", "y")],
        [("Set-Cookie", "a=b c; Path=/"), ("set-cookie", "d=e=f"), ("Set-Cookie", "bare")],
        [("WWW-Authenticate", "Basic"), ("X-Auth-Token", "with space 100%"), ("x-auth-token", "%20")],
        [],
    ],
)
def test_headers_come_back_as_they_came(pairs: list[tuple[str, str]]) -> None:
    head = head_fields(404, pairs, "HTTP/2", "Nope")
    assert head_pairs(head) == pairs
    assert (head["version"], head["reason"]) == ("HTTP/2", "Nope")
    assert "reason" not in head_fields(404, pairs, "HTTP/1.1", "Not Found")


@pytest.mark.parametrize(
    ("body", "beside"),
    [
        (b'{"a":[1,2.5]}', {}),
        (b'{"a": [1, 2.5]}\n', {"layout": {"after": "\n", "spaced": True}}),
        (b'\n {\n  "a": [\n    "\\u00e9"\n  ]\n}', {"layout": {"indent": 2, "before": "\n ", "ascii": True}}),
        (b'{"a": 1.50}', {"text": '{"a": 1.50}'}),
        (b'{"a": 1, "a": 2}', {"text": '{"a": 1, "a": 2}'}),
        (b'{"a": "\\ud83d"}', {"layout": {"spaced": True, "ascii": True}}),
    ],
)
def test_an_answer_comes_back_as_the_very_same_bytes(body: bytes, beside: dict[str, Any]) -> None:
    fields = answer_fields("application/json", body)
    assert {name: value for name, value in fields.items() if name != "json"} == beside
    assert "json" in fields
    assert body_bytes(fields) == body


def test_a_multipart_boundary_is_replaced() -> None:
    def fields(boundary: str) -> dict[str, Any]:
        body = f"--{boundary}\r\n\r\nx\r\n--{boundary}--".encode()
        return request_fields("post", "http://h/", f"multipart/form-data; boundary={boundary}", body)

    assert fields("abc123") == fields("zzz999")
