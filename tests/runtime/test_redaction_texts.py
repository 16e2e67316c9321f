"""JSON in texts, as values, and put together again in its layout."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_texts import values_in

VALUE = {"a": ["é", 1, None], "b": {"c": "x/y"}}
CHANGED: dict[str, Any] = {**VALUE, "b": {"c": "z"}}


@pytest.mark.parametrize(
    "layout",
    [{}, {"ensure_ascii": False}, {"indent": 2}, {"indent": 2, "ensure_ascii": False}, {"separators": (",", ":")},
     {"separators": (",", ":"), "ensure_ascii": False}],
)  # fmt: skip
def test_a_document_keeps_its_layout(layout: dict[str, Any]) -> None:
    text = f"\n {json.dumps(VALUE, **layout)}\n"
    found = values_in(text)
    assert found is not None
    values, made = found
    assert values == [VALUE]
    assert made(values) == text
    assert made([CHANGED]) == f"\n {json.dumps(CHANGED, **layout)}\n"


def test_another_layout_becomes_the_compact_one() -> None:
    found = values_in('{ "a" :  1 }')
    assert found is not None
    values, made = found
    assert made(values) == '{ "a" :  1 }'
    assert made([{"a": 2}]) == '{"a":2}'


@pytest.mark.parametrize(
    "text",
    [
        'event: x\ndata: {"a": 1}\n\nevent: y\r\ndata:{"b":2}\r\n\r\ndata: [DONE]\n\n',
        '{"a": 1}\n{"b": 2}\n',
        '[1]\nplain\n{"b": 2}',
    ],
)
def test_lines(text: str) -> None:
    found = values_in(text)
    assert found is not None
    values, made = found
    assert len(values) == 2
    assert made(values) == text
    assert made([values[0], {"b": 3}]) == text.replace("2}", "3}")


def test_what_is_nested_beyond_measure_is_no_json_here() -> None:
    for depth, there in ((90, True), (102, False), (900, False)):
        assert (values_in("[" * depth + "]" * depth) is not None) is there
    assert values_in(json.dumps([[] for _ in range(500)])) is not None


@pytest.mark.parametrize(
    "text", ["", "plain", '{"a": 1', '{"a": 1}x', 'one line: {"a": 1}', "[" * 5000 + "]" * 5000]
)
def test_what_is_no_json(text: str) -> None:
    assert values_in(text) is None


def test_an_escaped_nul_elsewhere_makes_no_text_utf_16() -> None:
    """Decoded, the first line holds a NUL; the secret in the second one stands as plain text all the same."""
    text = 'blob = b"\\x00\\xff"\nheaders = {"set-cookie": "sid=very-private-0815; Path=/"}'
    assert Redactor().text(text) == text.replace("sid=very-private-0815;", "__redacted_1__")
