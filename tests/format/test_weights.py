"""What a tree weighs, and how deep it is."""

from __future__ import annotations

import orjson
import pytest

from agentloom.format.weights import height_of, levels, weight


@pytest.mark.parametrize(
    ("tree", "deep"),
    [(1, 0), ("[[", 0), ([], 1), ({}, 1), ([1, [2]], 2), ({"a": {"b": [{}]}, "c": 1}, 4), ([[], [[[]]]], 4)],
)
def test_levels(tree: object, deep: int) -> None:
    assert levels(tree) == deep  # type: ignore[arg-type]
    assert height_of(tree, orjson.dumps(tree)) >= deep  # type: ignore[arg-type]


def test_many_small_things_are_heavier_than_their_text() -> None:
    assert weight(b"[]" * 1000) > 20 * 2000
    assert weight(b'"' + b"x" * 1000 + b'"') == 1002


def test_the_height_of_what_is_wide_is_exact() -> None:
    tree: list[object] = [[0] for _ in range(500)]
    assert height_of(tree, orjson.dumps(tree)) == 2  # type: ignore[arg-type]


def test_a_container_weighs_48_bytes_beside_its_text() -> None:
    assert weight(b'{"a":[1]}') == 9 + 2 * 48
    assert weight(b"7") == 1


@pytest.mark.parametrize(("count", "height"), [(39, 40), (40, 2), (41, 2)])
def test_the_height_of_a_few_containers_is_their_number(count: int, height: int) -> None:
    """Which is not less than the height; of more it is looked for."""
    tree: list[object] = [[] for _ in range(count)]
    assert height_of(tree, orjson.dumps(tree)) == height  # type: ignore[arg-type]
    assert height_of({"a": "[" * 10}, b'{"a":"[[[[[[[[[["}') == 11
