"""User types that the program declares, by itself or through annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from agentloom.errors import ValueRefused
from agentloom.format.values import decode, encode
from agentloom.runtime.registry import TYPES, declare_annotations, register


@register
@dataclass
class Declared:
    x: int


@dataclass
class Undeclared:
    x: int


@dataclass
class Inner:
    y: int


@dataclass
class Outer:
    items: list[Inner]


def test_registered_types_come_back() -> None:
    assert decode(encode(Declared(5), TYPES), TYPES) == Declared(5)


def test_types_that_nobody_declared_are_refused_with_the_remedy() -> None:
    with pytest.raises(ValueRefused) as caught:
        encode({"a": [Undeclared(1)]}, TYPES)
    assert "a[0]" in caught.value.path
    assert "register" in (caught.value.hint or "")


def test_annotations_declare_through_containers_and_fields() -> None:
    def tool(outer: dict[str, Outer | None]) -> Any: ...

    declare_annotations(tool)
    value = {"k": Outer([Inner(2)])}
    assert decode(encode(value, TYPES), TYPES) == value


def test_a_name_that_cannot_be_resolved_is_left_out() -> None:
    def tool(later: NotYetDefined, now: int) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    declare_annotations(tool)
