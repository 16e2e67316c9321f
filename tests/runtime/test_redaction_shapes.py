"""What is secret where a shape or a telling name begins, and what only looks like it."""

from __future__ import annotations

import re

import pytest

from agentloom.runtime.redaction_formats import CONTEXTS, FORMATS, LEAST_KEY
from agentloom.runtime.redaction_plan import Near
from agentloom.runtime.redaction_shapes import Runs, is_open_url, seen


def _named(text: str) -> str | None:
    """What is secret after the first telling name in ``text``."""
    data = text.encode()
    for context in CONTEXTS:
        for start, length in context.starts:
            at = data.find(start)
            if at >= 0 and (found := seen(data, Near(context, length), at)) is not None:
                return data[found.start : found.end].decode()
    return None


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('{"password": "hunter-22"}', "hunter-22"),
        ('{\\"password\\": \\"hunter-22\\"}', "hunter-22"),
        ("password = 'hunter-22'", "hunter-22"),
        ("a=1&password=hunter22&b=2", "hunter22"),
        ("Authorization: Bearer abc123def456", "abc123def456"),
        ("api_key=abc123def456", "abc123def456"),
        ("?token=abc123def456ghi", "abc123def456ghi"),
        ("password = get_password()", None),
        ("secret = hashlib.sha256(data)", None),
        ("the password is long", None),
        ('"password": "$PASSWORD"', None),
        ('"password": "********"', None),
        ('"password": "__redacted_1__"', None),
    ],
)
def test_after_telling_names(text: str, secret: str | None) -> None:
    assert _named(text) == secret


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("postgres://app:pw-1234@host", "pw-1234"),
        ("https://abcdefghij0123456789@host/", "abcdefghij0123456789"),
        ("https://user@host/", None),
        ("https://host:8080/a@b", None),
        ("postgres://app:$PW@host", None),
        ("postgres://app:xxxx@host", None),
        ("https%3A%2F%2Fapp%3Apw-1234%40host", "pw-1234"),
        ("postgres://app:p@ss-12@host", "p@ss-12"),
        ("https://oauth2:" + "a1" * 150 + "@host", "a1" * 150),
    ],
)
def test_addresses(text: str, secret: str | None) -> None:
    data = text.encode()
    found = next(
        seen(data, shape, data.index(start))
        for shape in FORMATS
        for start in shape.starts
        if shape.kind == "password in a URL" and start in data
    )
    assert (None if found is None else data[found.start : found.end].decode()) == secret


def test_open_passwords() -> None:
    assert all(map(is_open_url, (b"$PW", b"{pw}", b"<pw>", b"***", b"xxx", b"__redacted_1__")))
    assert not is_open_url(b"hunter")


def test_in_a_long_run_nothing_is_a_key_but_near_its_end() -> None:
    shape = next(one for one in FORMATS if one.kind == "Anthropic key")
    data = b"sk-ant-" * 200 + b"."
    runs = Runs(data)
    found = [runs.hopeless(shape, start) for start in range(0, 1400, 7)]
    assert found == [not LEAST_KEY <= 1400 - start <= shape.within for start in range(0, 1400, 7)]
    assert False in found
    assert runs.skip == 1400 - shape.within


def test_what_ends_with_its_run_is_no_shorter_than_is_said() -> None:
    for shape in FORMATS:
        if shape.within:
            assert re._parser.parse(shape.pattern.pattern).getwidth()[0] >= LEAST_KEY, shape.kind  # type: ignore[attr-defined]
