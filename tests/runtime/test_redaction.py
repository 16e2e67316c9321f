"""The redactor of one run: what the gate lets pass, what it looks for, what it says of what it found."""

from __future__ import annotations

import base64
import random
import urllib.parse

from agentloom.runtime.redaction import Redactor
from tests.secrets.shapes import make

SEED = 20261128


def _two() -> tuple[bytes, bytes]:
    rng = random.Random(SEED)
    return make("aws", rng).encode(), make("openai", rng).encode()


def test_each_place_in_bytes_is_told_with_what_is_there() -> None:
    aws, openai = _two()
    coded = base64.b64encode(b"the key is " + openai)
    found = Redactor().found_in(aws + b" then " + coded + b" and " + aws)
    assert [(known.kind, start) for start, _, known in found] == [
        ("AWS key id", 0),
        ("OpenAI-style key", len(aws) + 6),
        ("AWS key id", len(aws) + 6 + len(coded) + 5),
    ]


def test_what_is_part_of_another_secret_is_not_told() -> None:
    aws, openai = _two()
    text = b"postgres://app:" + urllib.parse.quote(f"{aws.decode()}%2F").encode() + b"@db/main " + openai
    assert [known.kind for _, _, known in Redactor().found_in(text)] == ["password in a URL", "OpenAI-style key"]


def test_two_in_one_coded_block_are_both_told() -> None:
    aws, openai = _two()
    found = Redactor().found_in(base64.b64encode(aws + b" " + openai))
    assert [known.kind for _, _, known in found] == ["AWS key id", "OpenAI-style key"]
