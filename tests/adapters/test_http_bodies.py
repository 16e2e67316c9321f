"""Bodies come back byte for byte, whatever way through JSON is taken."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from agentloom.adapters.http_bodies import answer_fields, body_bytes
from agentloom.adapters.http_wire import EventReader, event_bytes

_TEXTS = (
    "", "plain", "café", "1e-7", "null", "0.00001", "\x00\x1f\x7f", '"\\/', "\x85", "\u2028\u2029", "😀", "\ud83d",
)  # fmt: skip
_NUMBERS = (
    0, -1, 2**53, 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 0.1, -0.0, 1.0, 1e15, 1e16, 1.5e300, 5e-324, 1e-4, 1e-5,
    1.5e-5, 1.5e-6, 123456789012345.67, float("nan"), float("inf"), True, False, None,
)  # fmt: skip


def value(chance: random.Random, levels: int = 4) -> Any:
    kind = chance.randrange(6 if levels else 2)
    if kind == 0:
        return chance.choice(_TEXTS)
    if kind == 1:
        return chance.choice(_NUMBERS)
    if kind in (2, 3):
        return [value(chance, levels - 1) for _ in range(chance.randrange(4))]
    return {chance.choice(_TEXTS): value(chance, levels - 1) for _ in range(chance.randrange(4))}


def compact(made: Any) -> bytes:
    """What the standard library writes, with line separators escaped (``docs/sdks/index.md``)."""
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    for mark in ("\x85", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(made, separators=(",", ":")).encode()


@pytest.mark.parametrize("seed", range(20))
def test_json_is_written_as_the_standard_library_writes_it(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        made = value(chance)
        assert body_bytes({"json": made}) == compact(made), f"seed {seed}: {made!r}"


@pytest.mark.parametrize("seed", range(20))
def test_json_of_every_layout_comes_back_as_the_very_same_bytes_and_values(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        made = value(chance)
        text = json.dumps(
            made,
            ensure_ascii=chance.random() < 0.5,
            indent=chance.choice((None, None, 2, 4)),
            separators=chance.choice((None, (",", ":"), (", ", ": "), (",", ": "))),
        )
        if text.endswith("}"):
            text = text[:-1] + " " * chance.choice((0, 0, 1, 7)) + "}"
        body = (chance.choice(("", "\n", "  ")) + text + chance.choice(("", "\r\n"))).encode(
            "utf-8", "surrogatepass"
        )
        fields = answer_fields("application/json", body)
        assert body_bytes(fields) == body, f"seed {seed}: {body!r}"
        if "json" in fields:
            assert repr(fields["json"]) == repr(json.loads(body)), f"seed {seed}: {body!r}"


@pytest.mark.parametrize(
    ("body", "layout"),
    [
        (b'{"a":{"b":1,"c":"x  "}}', None),
        (b'{"a": {"b": 1, "c": "x  "}}', {"spaced": True}),
        (b'{"a": {"b": 1,"c": "x  "}}', {"colons": True}),
        (b'{"a":{"b":1,"c":"x  "}     }', {"pad": 5}),
        (b'{"a":1 }', {"pad": 1}),
    ],
)
def test_layouts_of_providers_are_kept_as_values(body: bytes, layout: dict[str, Any] | None) -> None:
    fields = answer_fields("application/json", body)
    assert set(fields) <= {"json", "layout"}
    assert fields.get("layout") == layout
    assert body_bytes(fields) == body


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":2}',
        b'{"a": 1, "a": 2}',
        b'{"a": 0.10}',
        b'{"a": 18446744073709551616}',
        b'{"a": -0}',
        b"{}",
        b"[]",
        b"[1, 2]",
        b'"x"',
        b"1e3",
        b'{"a": NaN}',
        b'{"a":"\\u00e9"}',
        '{"a": 1}'.encode("utf-16"),
        b'{"a": "\xff"}',
        b"[" * 300 + b"]" * 300,
    ],
)
def test_odd_json_comes_back_as_the_very_same_bytes(body: bytes) -> None:
    assert body_bytes(answer_fields("application/json", body)) == body


_LINES = (
    b'data: {"a":1}', b'data: {"a": 1}', b"data: {", b"data: }", b'data:{"a":1}', b'data: {"a":1,"a":2}', b"data: [1]",
    b"data: [DONE]", b"data", b"data: ", b"event: x", b"event:x", b"id: 1", b"retry: 5", b": comment", b"odd", b"",
    b"", b"", b'data: {"a":"\xff"}', b'data: {"a":"\xc2\x85"}', b'data: {"a":1e-7}', b" data: x",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_every_stream_of_events_comes_back_as_the_very_same_bytes(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        ends = chance.choice(((b"\n",), (b"\r\n",), (b"\n", b"\r\n", b"\r")))
        raw = b"".join(chance.choice(_LINES) + chance.choice(ends) for _ in range(chance.randrange(12)))
        raw = raw[: len(raw) - chance.randrange(3)]
        whole, cut = EventReader(), EventReader()
        events = [*whole.feed(raw), *whole.finish()]
        assert b"".join(map(event_bytes, events)) == raw, f"seed {seed}"
        places = sorted(chance.choices(range(len(raw) + 1), k=3))
        pieces = [raw[a:b] for a, b in zip([0, *places], [*places, len(raw)], strict=True)]
        again = [event for piece in pieces for event in cut.feed(piece)] + list(cut.finish())
        assert again == events, f"seed {seed}: {raw!r} cut at {places}"
