"""Alignment: insertions stay insertions, replaced items meet their likeness, every item is accounted for."""

from __future__ import annotations

import random
from typing import Any

from agentloom.replay.align import align, align_keys
from agentloom.replay.fields import same_tree


def _align(a: list[Any], b: list[Any]) -> list[tuple[int | None, int | None]]:
    return align(a, b, same_tree)


def test_insertions_and_removals() -> None:
    assert _align([1, 2, 3], [1, 9, 2, 3]) == [(None, 1)]
    assert _align([1, 2, 3], [1, 3]) == [(1, None)]
    assert _align([1, 2, 3], [1, 2, 3]) == []
    assert _align([], [1]) == [(None, 0)]


def test_a_changed_item_meets_its_likeness() -> None:
    then = [{"id": 1, "text": "alpha"}, {"id": 2, "text": "beta"}, {"id": 3, "text": "gamma"}]
    now = [{"id": 9, "text": "zeta"}, {"id": 2, "text": "BETA"}]
    assert (1, 1) in _align(then, now)


def test_long_middles_are_compared_by_position() -> None:
    then, now = [[number] for number in range(5000)], [[-number] for number in range(1, 5002)]
    pairs = _align(then, now)
    assert pairs[0] == (0, 0)
    assert pairs[-1] == (None, 5000)


def test_random_lists_are_accounted_for() -> None:
    generator = random.Random(11)
    print("seed 11")
    for _ in range(300):
        a = [generator.choice("abcd") for _ in range(generator.randrange(12))]
        b = [generator.choice("abcd") for _ in range(generator.randrange(12))]
        keys = align_keys(a, b)
        assert [i for i, _ in keys if i is not None] == list(range(len(a)))
        assert [j for _, j in keys if j is not None] == list(range(len(b)))
        assert all(a[i] == b[j] for i, j in keys if i is not None and j is not None)
        changed = _align(a, b)
        gone = {i for i, _ in changed if i is not None}
        new = {j for _, j in changed if j is not None}
        assert [x for i, x in enumerate(a) if i not in gone] == [x for j, x in enumerate(b) if j not in new]
