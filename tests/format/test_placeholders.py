"""The form of a placeholder: the same in every coding that text goes through."""

from __future__ import annotations

import html
import json
import shlex
import urllib.parse

from agentloom.format.placeholders import PLACEHOLDER, START, numbers_in, placeholder


def test_its_form_is_fixed() -> None:
    assert placeholder(1) == "__redacted_1__"
    assert placeholder(12).startswith(START)
    assert PLACEHOLDER.fullmatch(placeholder(12))
    assert not PLACEHOLDER.search("__redacted_0__ __redacted_01__ __redacted_x__ redacted_1")


def test_it_goes_unchanged_through_what_text_goes_through() -> None:
    mark = placeholder(7)
    assert urllib.parse.quote(mark, safe="") == mark
    assert urllib.parse.quote_plus(mark) == mark
    assert json.dumps(mark) == f'"{mark}"'
    assert shlex.quote(mark) == mark
    assert html.escape(mark) == mark
    assert mark.lower() == mark.strip() == mark


def test_numbers_are_found() -> None:
    text = f"a {placeholder(3)}{placeholder(10)} b"
    assert list(numbers_in(text)) == list(numbers_in(text.encode())) == [3, 10]
