"""What takes back the calls of a tool is found by its name, and given what it asks for."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.runtime.undoing import undo_of, undone_by


def book(seat: str, price: int) -> str:
    return f"{seat}{price}"


def test_it_is_given_what_it_names() -> None:
    def back(result: str, *, seat: str) -> None: ...

    undone_by("test book", book, back)
    undo = undo_of("test book")
    assert undo is not None
    assert undo.given({"seat": "1A", "price": 3}, "1A3") == {"result": "1A3", "seat": "1A"}


def test_what_it_does_not_need_may_have_a_default() -> None:
    def back(price: int, reason: str = "none") -> None: ...

    undone_by("test default", book, back)
    undo = undo_of("test default")
    assert undo is not None
    assert undo.given({"seat": "1A", "price": 3}, None) == {"price": 3}


@pytest.mark.parametrize(
    "back", [lambda order: None, lambda *seat: None, lambda seat, /: None, lambda **more: None]
)
def test_what_it_cannot_be_given_is_refused(back: Any) -> None:
    with pytest.raises(ValueError, match="undo of tool test wrong takes"):
        undone_by("test wrong", book, back)


def test_a_module_that_is_loaded_again_defines_the_same_tool() -> None:
    def first(seat: str) -> None: ...
    def second(seat: str) -> None: ...

    undone_by("test again", book, first)
    undone_by("test again", book, second)
    undo = undo_of("test again")
    assert undo is not None
    assert undo.function is second


def test_nothing_takes_back_what_nobody_said() -> None:
    assert undo_of("test nobody") is None
