"""The text that stands for what a trace does not hold of a request."""

from __future__ import annotations

import pytest

from agentloom.format.unkept import unkept, unkept_in


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("x-tenant", "not-kept-x-tenant"),
        ("cookie.theme", "not-kept-cookie.theme"),
        ("query.a b;c", "not-kept-query.a-b-c"),
        ("cookie.", "not-kept-cookie"),
        ("", "not-kept-value"),
        (";", "not-kept-value"),
    ],
)
def test_a_name_is_found_again(name: str, text: str) -> None:
    assert unkept(name) == text
    assert unkept_in(f'{{"h": "{text}"}}') == [text.removeprefix("not-kept-")]


def test_each_is_found_once_in_order() -> None:
    text = " ".join([unkept("b"), unkept("a.c"), unkept("b"), "not-kept", "not-kept-"])
    assert unkept_in(text) == ["b", "a.c"]
