"""Small mappings are copied exactly, or left to those who look closer."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agentloom.format.canonical import dump
from agentloom.format.small import small_copy
from agentloom.format.values import Types, decode, encode


class _Text(str):
    __slots__ = ()


class _Number(int):
    pass


class _Fields(dict[str, Any]):
    pass


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"q": "a", "n": 1, "ok": True, "none": None},
        {"args": {"q": "a", "deep": {"n": -1}}},
        {"n": 2**64 - 1},
    ],
)
def test_a_small_mapping_is_copied_at_every_level(value: dict[str, Any]) -> None:
    copy = small_copy(value)
    assert copy is not None
    assert copy == value
    assert copy is not value
    assert all(copy[name] is not item for name, item in value.items() if type(item) is dict)
    assert dump(copy) == orjson.dumps(value)
    assert encode(value) == value
    assert decode(copy, Types()) == value


@pytest.mark.parametrize(
    "value",
    [
        {"$ref": "x"}, {"a": {"$map": []}}, {1: "a"}, {_Text("a"): 1}, {"a": _Text("b")}, {"a": _Number(1)}, {"a": 1.0},
        {"a": 2**64}, {"a": -(2**63) - 1}, {"a": "é"}, {"é": 1}, {"a": "\udc80"}, {"a": [1]}, {"a": (1,)}, {"a": b"b"},
        _Fields(a=1), {"a": _Fields()}, {str(n): n for n in range(9)}, {"a": {"b": {"c": {"d": 1}}}}, [1], "a", None,
    ],
)  # fmt: skip
def test_what_is_not_small_and_plain_is_left_alone(value: Any) -> None:
    assert small_copy(value) is None
