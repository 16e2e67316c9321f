"""Kinds and marks."""

from __future__ import annotations

from dataclasses import replace

from agentloom.cli.checks.flow.values import ORDER, Kind, Mark, Value, join, of_elements

ONE = Mark("set-order", "a.py", 1, 1, "f", "x", "said")
OTHER = replace(ONE, rule="folder")


def test_joining_keeps_marks_and_what_kinds_agree_on() -> None:
    a, b = Value(Kind("set", Kind("str")), frozenset([ONE])), Value(Kind("set"), frozenset([OTHER]))
    assert join(a, b) == Value(Kind("set", Kind("str")), frozenset([ONE, OTHER]))
    assert join(a, Value(Kind("list"))).kind == Kind()
    assert join(a, Value()).kind == Kind("set", Kind("str"))
    assert join() == Value()


def test_an_order_goes_and_comes_by_levels() -> None:
    value = Value(Kind("str"), frozenset([ONE, OTHER]))
    assert value.without(ORDER).marks == {OTHER}
    inside = Value(Kind("list"), value.inside())
    assert inside.without(ORDER).marks == inside.marks
    assert of_elements(inside).marks == value.marks
    weak = of_elements(value)
    assert weak.strong() == {OTHER}
    assert not next(mark for mark in weak.marks if mark.rule == "set-order").is_order
