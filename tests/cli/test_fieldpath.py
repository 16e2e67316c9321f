"""Addresses of fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.cli.fieldpath import parse, pick
from agentloom.errors import TargetError
from agentloom.replay.fields import join_path


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("", []),
        ("a", ["a"]),
        ("a.b", ["a", "b"]),
        ("messages[0].content", ["messages", 0, "content"]),
        ("[1][-2]", [1, -2]),
        ('args["odd.key"].x', ["args", "odd.key", "x"]),
        ('["a\\"b"]', ['a"b']),
    ],
)
def test_parse(path: str, steps: list[str | int]) -> None:
    assert parse(path) == steps


@pytest.mark.parametrize("path", ["a..b", "a[", "a[x]", "a]b", '["x'])
def test_what_makes_no_sense_names_the_place(path: str) -> None:
    with pytest.raises(TargetError, match="is no field"):
        parse(path)


@given(st.lists(st.one_of(st.integers(0, 99), st.text(min_size=1, max_size=8)), min_size=1, max_size=5))
def test_paths_of_reports_can_be_read_back(steps: list[str | int]) -> None:
    path = ""
    for step in steps:
        path = join_path(path, step)
    assert parse(path) == steps


TREE = {
    "t": {"$tuple": [1, {"$obj": {"type": "m:C", "how": "dataclass", "data": {"x": 5}}}]},
    "m": {"$map": [["$k", 7], [1, 2]]},
}


def test_tagged_containers_are_walked_through() -> None:
    assert pick(TREE, "t[1].x") == 5  # type: ignore[arg-type]
    assert pick(TREE, 'm["$k"]') == 7  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "hint"),
    [("t[5]", "t is a list of 2"), ("nosuch", "it has: t, m"), ("t[0].x", r"t\[0\] is int, not a container")],
)
def test_a_field_that_is_not_there_says_what_is(path: str, hint: str) -> None:
    with pytest.raises(TargetError, match=hint):
        pick(TREE, path)  # type: ignore[arg-type]
