"""Marks: equal bytes are equal values, type for type."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from agentloom.format.marks import Marks, mark


def test_marks_tell_apart_what_compares_equal() -> None:
    alike: list[list[Any]] = [[1], [True], [1.0], [[1]], [(1,)], ["1"], [b"1"], [0.0], [-0.0], [{"a": 1, "b": 2}],
                              [{"b": 2, "a": 1}], [None], [False], [0]]  # fmt: skip
    marks = [mark(items) for items in alike]
    assert None not in marks
    assert len(set(marks)) == len(alike)


def test_marks_do_not_see_which_objects_are_the_same() -> None:
    item = {"a": "long enough to be an object of its own"}
    assert mark([item, item]) == mark([dict(item), copy.deepcopy(item)])


def test_a_foreign_value_has_no_mark_and_runs_no_code() -> None:
    class Foreign:
        def __reduce__(self) -> Any:
            raise AssertionError("its code ran")

    assert mark([Foreign()]) is None


def test_a_list_begins_with_itself_until_an_item_is_edited() -> None:
    items: list[Any] = [{"n": number, "text": "x" * 3000} for number in range(60)]
    marks = Marks(items)
    assert marks.begin([*items, "more"])
    items[3]["n"] = True
    assert not marks.begin([*items, "more"])


@pytest.mark.parametrize("size", [1, 10_000])
def test_a_list_that_grows_item_by_item_knows_every_item(size: int) -> None:
    """Past the number of pieces that are marked again as one, several times, with small parts and with large."""
    items: list[Any] = [{"n": 0, "text": "x" * size}]
    marks = Marks(items)
    for number in range(1, 40):
        items.append({"n": number, "text": "x" * size})
        marks.extend(items)
        assert marks.begin(items)
        assert marks.begin([*items, "more"])
        assert not marks.begin(items[:-1])
        for at in range(number + 1):
            assert not marks.begin([*items[:at], {**items[at], "n": -1}, *items[at + 1 :]]), (number, at)


def test_a_list_of_many_turns_is_kept_in_few_parts() -> None:
    items: list[Any] = ["x"]
    marks = Marks(items)
    for number in range(500):
        items.append(str(number))
        marks.extend(items)
        assert len(marks._parts) <= 13
