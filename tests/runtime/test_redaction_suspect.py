"""A first look: what is more than chance."""

from __future__ import annotations

import base64
import gzip
import random
import zlib

import pytest

from agentloom.runtime.redaction_find import Finder
from agentloom.runtime.redaction_found import Known
from tests.secrets.shapes import make

KEY = make("openai", random.Random(3)).encode()


@pytest.mark.parametrize(
    "data",
    [
        KEY,
        b'{"a":"' + KEY + b'"}',
        gzip.compress(KEY),
        zlib.compress(KEY),
        b'{"$bytes":"' + base64.b64encode(KEY) + b'"}',
        b'{"$bytes":"' + base64.b64encode(gzip.compress(KEY)) + b'"}',
        base64.b64encode(b"x:" + KEY),
        KEY.hex().encode(),
        KEY.decode().encode("utf-16-le"),
        KEY.replace(b"-", b"\\u002d"),
        b'{"$bytes":"!broken"}',
    ],
)
def test_suspect(data: bytes) -> None:
    assert Finder({}).suspects(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"sk-learn and AKIA and eyJ",
        b"__redacted_1__",
        b'{"$bytes":"aGVsbG8="}',
        b"\x1f\x8b\x08 no gzip",
        b"c2st" + b"A" * 40,
        b"x \\u0041 y",
        b'{"ssn":"x"}',
    ],
)
def test_not_suspect(data: bytes) -> None:
    assert not Finder({}).suspects(data)


def test_a_declared_field_is_suspect_for_its_name() -> None:
    assert Finder({}, names=[b"ssn"]).suspects(b'{"ssn":"x"}')


def test_what_is_coded_deeper_than_is_looked_is_suspect() -> None:
    data = b"nothing"
    for _ in range(8):
        data = gzip.compress(data)
    assert Finder({}).suspects(data)


def test_a_function_of_a_user_makes_every_payload_suspect() -> None:
    assert Finder({}, more=lambda data: ()).suspects(b"")
    finder = Finder({b"hunter-8237429": Known("declared value")})
    assert finder.suspects(b"hunter-8237429")
    assert not finder.suspects(b"hunter-8237428")
