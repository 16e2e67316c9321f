"""Alignment: insertions stay insertions, replaced items meet their likeness, every item is accounted for."""

from __future__ import annotations

import random
from typing import Any

from agentloom.replay.align import _alike, align, align_keys
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


# -- a block that was replaced ----------------------------------------------------------------------------------------


def _best(a: list[Any], b: list[Any]) -> float:
    """The highest likeness of pairs in order, by trying all: the definition."""
    if not a or not b:
        return 0.0
    return max(_alike(a[0], b[0]) + _best(a[1:], b[1:]), _best(a[1:], b), _best(a, b[1:]))


def test_items_of_a_replaced_block_meet_so_that_they_are_most_alike() -> None:
    generator = random.Random(5)
    print("seed 5")
    for _ in range(200):
        a: list[Any] = [
            {"t": "".join(generator.choices("xyz", k=3)), "n": number}
            for number in range(generator.randrange(1, 5))
        ]
        b: list[Any] = [
            {"t": "".join(generator.choices("xyz", k=3)), "n": -number}
            for number in range(9, generator.randrange(10, 14))
        ]
        pairs = _align(a, b)
        assert [i for i, _ in pairs if i is not None] == list(range(len(a)))
        assert [j for _, j in pairs if j is not None] == list(range(len(b)))
        if len(a) != len(b):
            met = sum(_alike(a[i], b[j]) for i, j in pairs if i is not None and j is not None)
            assert abs(met - _best(a, b)) < 1e-9
        else:
            assert pairs == [(number, number) for number in range(len(a))]


def test_a_replaced_block_in_the_middle_keeps_its_places() -> None:
    alpha, beta, gamma = ({"id": name, "text": name * 9} for name in ("alpha", "beta", "gamma"))
    then: list[Any] = ["first", "p", alpha, beta, gamma, "q", "x", "last"]
    now: list[Any] = ["first", "p", {**gamma, "id": "c"}, "q", "y", "z", "last"]
    assert _align(then, now) == [(2, None), (3, None), (4, 2), (6, 4), (None, 5)]
    assert _align(now, then) == [(None, 2), (None, 3), (2, 4), (4, 6), (5, None)]


def test_items_that_are_alike_in_nothing_are_paired_from_the_front() -> None:
    assert _align(["a", "b"], [1]) == [(0, 0), (1, None)]
    assert _align([1], ["a", "b"]) == [(0, 0), (None, 1)]


def test_large_blocks_are_paired_by_position() -> None:
    likes = [{"text": f"{number:02} is what it was"} for number in range(3)]
    for size, last in ((24, [(21, 0), (22, 1), (23, 2)]), (25, [(0, 0), (1, 1), (2, 2)])):
        then: list[Any] = [size * ["other"][0:1] + [number] for number in range(size - 3)]
        then += [{**like, "n": number} for number, like in enumerate(likes)]
        forth = [(i, j) for i, j in _align(then, [{**like, "n": -9} for like in likes]) if j is not None]
        assert forth == last
        back = [(i, j) for i, j in _align([{**like, "n": -9} for like in likes], then) if i is not None]
        assert [(j, i) for i, j in back] == last


def test_of_a_large_block_what_is_left_over_has_no_partner() -> None:
    many: list[Any] = [["x", number] for number in range(30)]
    few: list[Any] = [["y", number] for number in range(3)]
    ends: list[Any] = ["one", "two"]
    paired = [(2, 2), (3, 3), (4, 4)]
    assert _align([*ends, *many, "z"], [*ends, *few, "z"]) == [*paired, *((n, None) for n in range(5, 32))]
    assert _align([*ends, *few, "z"], [*ends, *many, "z"]) == [*paired, *((None, n) for n in range(5, 32))]


def test_what_makes_values_alike() -> None:
    assert (_alike("a", 1), _alike(1, 1.0), _alike(True, 1), _alike({}, [])) == (0.0, 0.0, 0.0, 0.0)
    assert (_alike(1, 2), _alike([1], [2]), _alike(None, None)) == (0.1, 0.1, 0.1)
    assert (_alike({}, {}), _alike({}, {"a": 1}), _alike({"a": 1}, {})) == (0.1, 0.1, 0.1)
    assert _alike({"a": 1, "b": 2}, {"a": 1, "c": 2}) == 0.5
    assert _alike({"a": 1}, {"a": 1, "b": 1, "c": 1, "d": 1}) == 0.25
    assert _alike({"a": "xy"}, {"a": "xz"}) == 0.2 * 0.5
    assert (_alike("", ""), _alike("", "abc"), _alike("abcd", "abce"), _alike("ab", "abab")) == (
        0.0,
        0.0,
        0.75,
        0.5,
    )
    assert (_alike("a", "a"), _alike("abab", "ab"), _alike("ab", "")) == (1.0, 0.5, 0.0)
    assert _alike("a" * 250 + "b", "a" * 250 + "c") == 1.0
    assert _alike("a" * 50 + "b" * 300, "a" * 50 + "c" * 300) == 0.25
    assert _alike("a" * 100, "a" * 300) == 0.5


# -- bounds -----------------------------------------------------------------------------------------------------------


def _around(size: int) -> tuple[list[str], list[str]]:
    """Two lists of ``size`` items; one more was put in near the front of the second, and both ends differ."""
    same = [f"same {number}" for number in range(size - 2)]
    return ["a", *same, "b"], ["c", "d", *same[:-1], "e"]


def test_middles_of_two_thousand_are_aligned_and_longer_ones_not() -> None:
    for head in (0, 3):
        common = [(n, n) for n in range(head)]
        ends = [f"end {number}" for number in range(head)]
        a, b = _around(2000)
        few = _align([*ends, *a, *ends], [*ends, *b, *ends])
        assert len(few) == 4
        assert (
            len([1 for i, j in align_keys([*ends, *a, *ends], [*ends, *b, *ends]) if None not in (i, j)])
            == 1997 + 2 * head
        )
        a, b = _around(2001)
        assert _align([*ends, *a, *ends], [*ends, *b, *ends]) == [(n, n) for n in range(head, head + 2001)]
        removed = [(n, None) for n in range(head, head + 2001)]
        added = [(None, n) for n in range(head, head + 2001)]
        assert align_keys([*ends, *a, *ends], [*ends, *b, *ends]) == [
            *common, *removed, *added, *((head + 2001 + i, head + 2001 + j) for i, j in common),
        ]  # fmt: skip


def test_long_middles_of_different_lengths_leave_over_what_has_no_partner() -> None:
    a: list[Any] = ["x", *([number] for number in range(2100)), "y"]
    b: list[Any] = ["x", *([-number] for number in range(1, 2000)), "y"]
    assert _align(a, b) == [*((n, n) for n in range(1, 2000)), *((n, None) for n in range(2000, 2101))]
    assert _align(b, a) == [*((n, n) for n in range(1, 2000)), *((None, n) for n in range(2000, 2101))]


def test_one_item_that_differs_is_not_looked_into() -> None:
    assert _align(["x", 1, "y"], ["x", 2, "y"]) == [(1, 1)]
    assert _align(["x", "y"], ["x", 2, "y"]) == [(None, 1)]
    assert _align(["x", 2, "y"], ["x", "y"]) == [(1, None)]
    assert _align([{"a": 1, "b": 2}], [{"b": 2, "a": 1}]) == []


def test_keys_between_equal_ends_are_aligned() -> None:
    assert align_keys(list("xaby"), list("xcay")) == [(0, 0), (None, 1), (1, 2), (2, None), (3, 3)]
    assert align_keys(list("aa"), list("a")) == [(0, 0), (1, None)]
    assert align_keys(list("xab"), list("cab")) == [(0, None), (None, 0), (1, 1), (2, 2)]
    assert align_keys([], []) == []


def test_items_that_come_often_are_aligned_like_others() -> None:
    then, now = ["p", *["r"] * 300, "q"], ["s", *["r"] * 300, "t"]
    assert _align(list[Any](then), list[Any](now)) == [(0, 0), (301, 301)]
    assert [(i, j) for i, j in align_keys(then, now) if i is not None and j is not None] == [
        (n, n) for n in range(1, 301)
    ]


def test_as_many_items_for_as_many_are_paired_in_order() -> None:
    alpha, beta, gamma = ({"id": name, "text": name * 9} for name in ("alpha", "beta", "gamma"))
    assert _align([alpha, beta], [{**beta, "id": "b"}, gamma]) == [(0, 0), (1, 1)]


def test_one_item_for_two_is_paired_with_its_likeness() -> None:
    one, other = {"id": 1, "text": "alpha"}, {"id": 9, "text": "zzz"}
    assert _align([one], [other, {**one, "text": "beta"}]) == [(None, 0), (0, 1)]
    assert _align([other, {**one, "text": "beta"}], [one]) == [(0, None), (1, 0)]


def test_the_order_of_a_mapping_counts_among_items_where_it_is_asked_for() -> None:
    then: list[Any] = ["p", {"a": 1, "b": 2}, "q", "r"]
    now: list[Any] = ["s", {"b": 2, "a": 1}, "t"]
    assert _align(then, now) == [(0, 0), (2, 2), (3, None)]
    strict = align(then, now, lambda x, y: same_tree(x, y, ordered=True), ordered=True)
    assert [i for i, _ in strict if i is not None] == [0, 1, 2, 3]
    numbered: list[Any] = [{"n": number, "m": {"z": 1, "a": 2}} for number in range(4)]
    moved = [{"n": "new"}, {"n": "newer"}, *numbered[:3], {"n": "last"}]
    same = align(numbered, moved, lambda x, y: same_tree(x, y, ordered=True), ordered=True)
    assert same == [(None, 0), (None, 1), (3, 5)]
