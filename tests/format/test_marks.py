"""Marks: equal bytes are equal values, type for type."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest

from agentloom.format.marks import Marks, _free, is_plain, mark


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
    """With small parts and with large ones."""
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
        assert len(marks._parts) == 1


def test_what_is_too_deep_or_holds_itself_has_no_mark() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert mark(circle) is None


def test_nothing_begins_with_what_has_no_mark() -> None:
    items: list[Any] = ["a", object(), "b"]
    marks = Marks(items)
    assert not marks.begin(items)
    assert not marks.begin([*items, "more"])


@pytest.mark.parametrize("size", [10, 2_000, 70_000])
@pytest.mark.parametrize("known", [False, True])
def test_parts_cover_the_list_one_after_the_other(size: int, known: bool) -> None:
    """No item is marked twice, however the list grows. What is added is joined to the last part while that is under
    64 KiB, and the mark of a part is what the pickler writes for all of it at once."""
    items: list[Any] = []
    marks = Marks()
    for number in range(60):
        added: list[Any] = ["x" * size, {"n": (1, 2), "deep": [number, {}]}, (1, 2, 3, 4), b"x"][
            : 1 + number % 4
        ]
        items += added
        marks.extend(items, mark(added) if known else None)
        parts = marks._parts
        assert [0, *(end for _, end, _ in parts)] == [*(start for start, _, _ in parts), len(items)]
        assert [data for _, _, data in parts] == [mark(items[start:end]) for start, end, _ in parts]
    full = [len(data or b"") >= 1 << 16 for _, _, data in marks._parts]
    assert full[:-1] == [True] * (len(full) - 1)
    assert len(full) == {10: 1, 2_000: 2, 70_000: 60}[size]


@pytest.mark.parametrize("items", [998, 999, 1000, 1001, 1002, 1999, 2001])
def test_a_part_holds_what_the_pickler_writes_in_one_batch(items: int) -> None:
    """From 1 001 items on it writes several: nothing is joined to such a mark."""
    for first in (1, 2, 900):
        whole: list[Any] = ["x", 1] * (items // 2) + [None] * (items % 2)
        marks = Marks(whole[:first])
        marks.extend(whole)
        assert [data for _, _, data in marks._parts] == [
            mark(whole[start:end]) for start, end, _ in marks._parts
        ]
        assert len(marks._parts) == 1 + (items > 1000)
        assert marks.begin(whole)
        assert not marks.begin(whole[:-1])


def test_a_large_part_is_marked_once_and_nothing_is_joined_to_it() -> None:
    """64 KiB: as large as fits a processor's nearest cache."""
    text = "x" * ((1 << 16) - len(mark([""]) or b""))
    for more, parts in ((0, 2), (-1, 1)):
        items: list[Any] = [text[: len(text) + more] if more else text]
        assert len(mark(items) or b"") == (1 << 16) + more
        marks = Marks(items)
        marks.extend([*items, "y"])
        assert len(marks._parts) == parts


def test_what_is_added_behind_a_large_part_is_joined_to_what_was_added_there_before() -> None:
    """However many items stand before it: how many a part holds is counted from its first one."""
    items = ["x" * 200] * 600
    assert len(mark(items) or b"") > 1 << 16
    marks = Marks(items)
    for text in "yz":
        items = [*items, text]
        marks.extend(items)
    assert [(start, end) for start, end, _ in marks._parts] == [(0, 600), (600, 602)]
    assert marks.begin(items)


def test_marks_of_long_texts_and_bytes_tell_what_follows_them_apart() -> None:
    """The pickler writes these by themselves."""
    for long in ("x" * 200_000, b"y" * 200_000, ["z" * 100_000, b"w" * 100_000]):
        marks = {mark([long, 1]), mark([long, 2]), mark([long]), mark([1, long]), mark([2, long])}
        assert len(marks) == 5
        assert None not in marks


def test_a_plain_value_is_one_that_has_a_mark() -> None:
    class Text(str):
        __slots__ = ()

    class Foreign:
        def __reduce__(self) -> Any:
            raise AssertionError("its code ran")

    plain: list[Any] = [{"a": [1, None]}, [], "x", {"a": "y" * 70_000}]
    for value in plain:
        assert is_plain(value, len(str(value)))
    other: list[Any] = [{"a": Text("b")}, {Text("a"): 1}, [Foreign()], [Text("y" * 70_000)]]
    for value in other:
        assert not is_plain(value, len(str(value)))
    assert is_plain({"a": 1}, 7), "what was refused leaves nothing behind"


def test_asking_whether_a_value_is_plain_keeps_no_large_memory_and_works_inside_itself() -> None:
    """Each has a marker of its own meanwhile: a destructor, or another thread, may ask in the middle."""
    _free.clear()
    assert is_plain(["x" * 10_000_000], 10_000_000)
    assert not _free
    assert is_plain(["x"], 5)
    kept = len(_free)
    held = _free.pop()
    assert is_plain(["y"], 5)
    _free.append(held)
    assert (kept, len(_free)) == (1, 2)


def test_asking_whether_a_value_is_plain_tells_no_audit_hook() -> None:
    """A process that has replayed has one, and it costs a microsecond."""
    program = """
import sys
from agentloom.format.encoding import encode
heard = []
sys.addaudithook(lambda event, _: heard.append(event))
encode({"text": "x" * 300, "rows": [[1], [2]]})
print([event for event in heard if event != "object.__getattr__"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
