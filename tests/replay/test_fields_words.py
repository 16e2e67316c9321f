"""Differences in words and as JSON, and the bounds of comparing: what is shown of a value, and where it is cut."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay import fields
from agentloom.replay.fields import Difference, compare, join_path, same_tree
from agentloom.replay.text import plain, show
from agentloom.replay.textdiff import hunk_lines


def _told(*parts: Any, **more: Any) -> Difference:
    return Difference(*parts, **more)


def _one(then: Any, now: Any, **options: Any) -> Difference:
    comparison = compare(then, now, **options)
    assert comparison.total == 1, [item.path for item in comparison.items]
    assert comparison.complete is True
    return comparison.items[0]


# -- equality ---------------------------------------------------------------------------------------------------------


def test_order_of_mappings_counts_only_when_asked_for_at_any_depth() -> None:
    then: Any = [{"a": 1, "b": {"x": 1, "y": 2}}]
    now: Any = [{"b": {"y": 2, "x": 1}, "a": 1}]
    assert same_tree(then, now)
    assert not same_tree(then, now, ordered=True)
    assert same_tree(then, [dict(then[0])], ordered=True)


@pytest.mark.parametrize("value", [None, "text", "t" * 50, 1, 1.5, True, [], {}, [1], {"a": None}])
def test_a_value_is_the_same_as_another_like_it(value: Any) -> None:
    like = "".join(list(value)) if isinstance(value, str) else value
    for ordered in (False, True):
        assert same_tree(value, like, ordered=ordered) is True
        assert same_tree([value], [like], ordered=ordered) is True
    assert same_tree(value, ["other"]) is False


# -- kinds and paths --------------------------------------------------------------------------------------------------


def test_what_was_added_and_what_was_removed_is_told_with_its_value() -> None:
    comparison = compare({"a": {"gone": [1], "same": 1}}, {"a": {"same": 1, "new": {"x": 2}}})
    assert comparison.total == 2
    gone, new = comparison.items
    assert (gone.path, gone.kind, gone.recorded, gone.now) == ("a.gone", "removed", [1], None)
    assert (new.path, new.kind, new.recorded, new.now) == ("a.new", "added", None, {"x": 2})


def test_items_of_lists_are_told_with_their_values_and_both_places() -> None:
    then: Any = [{"id": 1, "tail": [1, 2]}, {"id": 2, "v": "old"}, {"id": 3, "list": ["a", "b"]}]
    now: Any = [{"id": 2, "v": "new"}, {"id": 3, "list": ["b", "a"]}]
    removed, changed, order = compare(then, now).items
    assert (removed.path, removed.kind, removed.recorded) == ("[0]", "removed", then[0])
    assert (changed.path, changed.recorded_path, changed.kind) == ("[0].v", "[1].v", "changed")
    assert (changed.recorded, changed.now) == ("old", "new")
    assert (order.path, order.recorded_path, order.kind) == ("[1].list", "[2].list", "order")
    assert (order.recorded, order.now, order.hunks, order.hunk_count) == (["a", "b"], ["b", "a"], (), 0)


def test_what_is_removed_and_added_below_a_moved_item_has_its_own_place() -> None:
    then: Any = [{"id": "first"}, {"id": "second", "gone": 1, "same": "yes"}]
    now: Any = [{"id": "second", "new": 2, "same": "yes"}]
    found = [(item.path, item.kind) for item in compare(then, now).items]
    assert found == [("[0]", "removed"), ("[1].gone", "removed"), ("[0].new", "added")]


def test_an_item_of_another_type_is_told_with_both_places() -> None:
    then: Any = ["gone", {"id": 1, "text": "long enough to be alike", "v": 5}]
    now: Any = [{"id": 1, "text": "long enough to be alike", "v": "five"}]
    _, typed = compare(then, now).items
    assert (typed.path, typed.recorded_path, typed.kind) == ("[0].v", "[1].v", "type")
    assert (typed.recorded, typed.now) == (5, "five")


def test_nothing_moved_has_one_path() -> None:
    for item in compare({"q": ["a", "b"], "t": "x"}, {"q": ["b", "a"], "t": "y"}).items:
        assert item.recorded_path is None


def test_the_order_of_a_mapping_that_moved() -> None:
    then: Any = ["first", {"a": 1, "b": "long enough to be alike", "c": 3}]
    now: Any = [{"c": 3, "b": "long enough to be alike", "a": 1}]
    removed, order = compare(then, now, ordered=True).items
    assert (removed.path, removed.kind) == ("[0]", "removed")
    assert (order.path, order.recorded_path, order.kind) == ("[0]", "[1]", "order")
    assert (order.recorded, order.now) == (["a", "b", "c"], ["c", "b", "a"])
    assert compare(then[1], now[0]).total == 0


def test_a_mapping_that_differs_in_values_too_is_not_told_of_its_order() -> None:
    found = compare({"out": {"a": 1, "b": 2}}, {"out": {"b": 3, "a": 1}}, ordered=True)
    assert [(item.path, item.kind) for item in found.items] == [("out.b", "changed")]


def test_order_below_lists_is_found_where_it_counts() -> None:
    then: Any = [{"id": 1}, {"a": 1, "b": 2}]
    found = _one(then, [{"id": 1}, {"b": 2, "a": 1}], ordered=True)
    assert (found.path, found.kind) == ("[1]", "order")


def test_values_of_another_kind_or_type_are_changed_as_a_whole() -> None:
    point: Any = {"$obj": {"type": "m:Point", "how": "dataclass", "data": {"x": 1}}}
    other: Any = {"$obj": {"type": "m:Place", "how": "dataclass", "data": {"x": 1}}}
    assert (_one({"p": point}, {"p": other}).path, _one({"p": point}, {"p": other}).kind) == ("p", "type")
    assert _one({"p": [1]}, {"p": {"$set": [1]}}).kind == "type"
    assert _one({"p": {"a": 1}}, {"p": [1]}).kind == "type"
    assert _one({"p": {"$tuple": [1]}}, {"p": {"$set": [1]}}).kind == "type"
    assert _one({"p": None}, {"p": {"a": 1}}).kind == "changed"
    assert _one({"p": {"a": 1}}, {"p": None}).kind == "changed"


@pytest.mark.parametrize("tag", ["$tuple", "$set", "$frozenset"])
def test_items_of_tagged_lists_are_compared_one_by_one(tag: str) -> None:
    assert _one({"t": {tag: [1, 2, 3]}}, {"t": {tag: [1, 4, 3]}}).path == "t[1]"


def test_fields_of_errors_and_pairs_of_mappings_are_compared_one_by_one() -> None:
    then: Any = {"$error": {"type": "m:E", "args": ["a"], "message": "a"}}
    now: Any = {"$error": {"type": "m:E", "args": ["b"], "message": "a"}}
    assert _one({"e": then}, {"e": now}).path == "e.args[0]"
    pairs: Any = {"$map": [["x", 1], [3, "three"], [{"$tuple": [1]}, "one"]]}
    other: Any = {"$map": [["x", 1], [3, "four"], [{"$tuple": [1]}, "two"]]}
    found = compare({"m": pairs}, {"m": other})
    assert [(item.path, item.recorded, item.now) for item in found.items] == [
        ('m["3"]', "three", "four"),
        (r'm["{\"$tuple\":[1]}"]', "one", "two"),
    ]
    assert _one({"m": {"$map": [["x", 1]]}}, {"m": {"$map": [["x", 2]]}}).path == "m.x"
    broken: Any = {"$map": [["x", 1], ["y"]]}
    assert _one({"m": broken}, {"m": {"$map": [["x", 2], ["y"]]}}).path == "m[0][1]"
    odd: Any = {"$map": ["xy", 1]}
    assert _one({"m": odd}, {"m": {"$map": ["xz", 1]}}).path == "m[0]"


def test_one_field_that_is_no_tag_is_a_field() -> None:
    assert _one({"a": {"b": 1}}, {"a": {"b": 2}}).path == "a.b"
    assert _one({"a": {"$bytes": "eA=="}}, {"a": {"$bytes": "eQ=="}}).path == "a"


def test_paths_of_odd_names_are_cut() -> None:
    assert join_path("", "a b" * 40) == '["' + ("a b" * 40)[:60] + '"]'
    assert (join_path("", "a"), join_path("", 0), join_path("x", 3)) == ("a", "[0]", "x[3]")


def test_the_whole_value_has_the_name_that_it_is_given() -> None:
    assert _one("a", "b", root="output").path == "output"
    assert _one([1], [2], root="output").path == "output[0]"
    assert _one({"a": 1}, {"a": 2}, root="output").path == "output.a"


# -- bounds -----------------------------------------------------------------------------------------------------------


def test_only_the_first_differences_are_kept_and_all_are_counted() -> None:
    then: Any = {f"k{n}": "old" for n in range(8)}
    now: Any = {f"k{n}": "new" for n in range(8)}
    found = compare(then, now, limit=2)
    assert [item.path for item in found.items] == ["k0", "k1"]
    assert (found.total, found.complete) == (8, True)
    then["k8"], now["k8"] = "old", "new"
    found = compare(then, now, limit=2)
    assert (len(found.items), found.total, found.complete) == (2, 9, False)
    then |= {f"more{n}": "old" for n in range(9)}
    now |= {f"more{n}": "new" for n in range(9)}
    assert compare(then, now, limit=2).total == 9
    everything = compare(then, now)
    assert (len(everything.items), everything.total, everything.complete) == (18, 18, True)
    many: Any = compare({f"k{n}": 0 for n in range(100)}, {f"k{n}": 1 for n in range(100)})
    assert (len(many.items), many.total, many.complete) == (40, 100, True)


def test_a_walk_that_was_ended_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "_VISITS", 5)
    then: Any = {f"k{n}": "old" for n in range(4)}
    now: Any = {f"k{n}": "new" for n in range(4)}
    assert (compare(then, now).total, compare(then, now).complete) == (4, True)
    then["k4"], now["k4"] = "old", "new"
    assert (compare(then, now).total, compare(then, now).complete) == (5, False)
    then["k5"], now["k5"] = "old", "new"
    assert compare(then, now).total == 5


@pytest.mark.parametrize("make", [lambda inner: {"a": inner}, lambda inner: [inner]], ids=["fields", "items"])
def test_a_value_below_a_hundred_levels_is_taken_as_a_whole(make: Any) -> None:
    then: Any = "old"
    now: Any = "new"
    for _ in range(150):
        then, now = make(then), make(now)
    found = _one(then, now)
    assert found.path.count("a") + found.path.count("[0]") == 101
    assert found.kind == "changed"
    then, now = "old", "new"
    for _ in range(101):
        then, now = make(then), make(now)
    assert _one(then, now).now == "new"


def test_spans_of_texts_are_only_looked_for_in_what_is_kept() -> None:
    then: Any = {f"k{n}": "one old word" for n in range(4)}
    now: Any = {f"k{n}": "one new word" for n in range(4)}
    assert [bool(item.hunks) for item in compare(then, now, limit=3).items] == [True] * 3
    assert _one({"t": "one old word"}, {"t": None}).hunks == ()


def test_only_lists_of_the_same_items_are_in_another_order(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _one([1], ["1"]).path == "[0]"
    assert [item.kind for item in compare(["a", "b"], ["b"]).items] == ["removed"]
    assert _one([{"a": 1, "b": 2}, 3], [3, {"b": 2, "a": 1}]).kind == "order"
    assert [
        item.kind for item in compare([{"a": 1, "b": 2}, 3], [3, {"b": 2, "a": 1}], ordered=True).items
    ] != ["order"]
    assert _one([{"a": 1, "b": 2}, 3], [3, {"a": 1, "b": 2}], ordered=True).kind == "order"
    monkeypatch.setattr(fields, "_SORTED", 3)
    assert _one(["a", "b", "c"], ["c", "b", "a"]).kind == "order"
    assert [item.kind for item in compare(["a", "b", "c", "d"], ["d", "c", "b", "a"]).items] != ["order"]


def test_equal_ends_of_a_long_list_are_passed_over() -> None:
    then: Any = [f"item {number}" for number in range(2200)]
    found = _one({"l": then}, {"l": [*then[:1100], "new", *then[1100:]]})
    assert (found.path, found.kind) == ("l[1100]", "added")


def test_data_of_another_form_under_the_same_tag_is_changed_as_a_whole() -> None:
    def tagged(data: Any) -> Any:
        return {"o": {"$obj": {"type": "m:T", "how": "enum", "data": data}}}

    for then, now in (({"x": 1}, [1]), ([1], {"x": 1}), ("x", {"x": 1}), ([1], "x")):
        found = _one(tagged(then), tagged(now))
        assert (found.path, found.kind, found.hunk_count) == ("o", "changed", 0)
    assert _one({"m": {"$map": [["x", 1]]}}, {"m": {"$map": [1]}}).path == "m"


# -- lines ------------------------------------------------------------------------------------------------------------


def test_short_texts_stand_side_by_side() -> None:
    found = _one({"t": "x" * 32}, {"t": "y" * 32})
    assert found.inline()
    assert found.lines(100) == [
        [("", "  "), ("old", f'"{"x" * 32}"'), ("", " -> "), ("new", f'"{"y" * 32}"')]
    ]
    for long in ("y" * 33, "y\n"):
        assert not _one({"t": "x" * 32}, {"t": long}).inline()
        assert not _one({"t": long}, {"t": "x" * 32}).inline()


def test_a_long_text_is_shown_by_its_first_span_and_how_many_more_there_are() -> None:
    filler = "and a lot of words that are as they were before, "
    lines = "".join(f"line {n} {'of what is new ' * 8}\n" for n in range(6))
    found = _one({"t": f"one {filler * 9}two"}, {"t": f"{lines} {filler * 9}2"})
    for width, rows in ((60, 3), (61, 2), (100, 3)):
        wanted = [[("", "  "), *line] for line in hunk_lines(found.hunks[0], width - 4, rows)]
        more = [[("dim", f"  {found.hunk_count - 1} more change in this text")]]
        assert found.lines(width, rows) == wanted + more
    assert found.lines() == found.lines(100, 3)
    assert found.lines(100) != found.lines(101)
    assert found.lines(rows=3) != found.lines(rows=4)
    assert not found.inline()
    single = _one({"t": f"one {filler * 9}"}, {"t": f"1 {filler * 9}"})
    assert len(single.lines()) == 2
    thrice = _one({"t": f"one {filler * 9}two {filler * 9}three"}, {"t": f"1 {filler * 9}2 {filler * 9}3"})
    assert plain(thrice.lines()).endswith("\n  2 more changes in this text")


def test_what_was_added_or_removed_is_one_line() -> None:
    value = "v" * 100
    added, removed = _told("a", "added", now=value), _told("a", "removed", recorded=value)
    assert added.lines(50) == [[("", "  "), ("new", f"+ {show(value, 46)}")]]
    assert removed.lines(50) == [[("", "  "), ("old", f"- {show(value, 46)}")]]
    assert not added.inline()
    assert not removed.inline()


def test_values_stand_under_each_other_where_they_do_not_fit_beside() -> None:
    numbers = _told("n", "changed", list(range(10)), list(range(1, 11)))
    half = (60 - 1 - 8) // 2
    old, new = show(numbers.recorded, half), show(numbers.now, half)
    assert numbers.lines(60) == [[("", "  "), ("old", old), ("", " -> "), ("new", new)]]
    assert numbers.inline()
    assert numbers.lines(61)[0][1] == ("old", show(numbers.recorded, 26))
    assert _told("n", "type", 1, "1").inline()
    assert _told("n", "order", ["a"], ["b"]).inline()
    deep = _told("n" * 40, "changed", list(range(10)), list(range(1, 11)))
    assert deep.lines(60) == [
        [("", "  "), ("old", show(deep.recorded, 12)), ("", " -> "), ("new", show(deep.now, 12))]
    ]
    typed = _told("n", "type", "x" * 50, {"a": "y" * 50})
    assert typed.lines(60) == [
        [("", "  "), ("old", f"- str {show('x' * 50, half)}")],
        [("", "  "), ("new", f"+ dict {show(typed.now, half)}")],
    ]


def test_a_line_is_as_long_as_it_may_be_before_it_is_split() -> None:
    def lines(width: int) -> int:
        return len(_told("n", "order", ["aaaa", "bbbb"], ["bbbb", "aaaa"]).lines(width))

    fits = len("order aaaa, bbbb") + len("bbbb, aaaa") + 4 + 4
    assert (lines(fits), lines(fits - 1)) == (1, 2)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (None, "null"),
        ("x", "str"),
        (1, "int"),
        (1.5, "float"),
        (True, "bool"),
        ([1], "list"),
        ({}, "dict"),
        ({"a": 1}, "dict"),
        ({"$tuple": [1]}, "tuple"),
        ({"$a": 1, "b": 2}, "dict"),
        ({"b": 2, "$a": 1}, "dict"),
    ],
)
def test_types_are_named(value: Any, name: str) -> None:
    found = plain(_told("p", "type", value, "0").lines())
    assert found.strip().startswith(f"{name} {show(value)}")
    assert plain(_told("p", "type", "0", value).lines()).strip().endswith(f"{name} {show(value)}")


def test_an_order_is_told_by_what_tells_items_apart() -> None:
    def order(items: Any) -> str:
        return plain(_told("p", "order", items, ["x"]).lines(200)).strip()

    assert order(["a", "b"]) == "order a, b -> x"
    assert order(list("abcdef")) == "order a, b, c, d, e, f -> x"
    assert order(list("abcdefg")) == "order a, b, c, d, e, f, ... -> x"
    assert order([{"id": "i1", "n": 1}, {"name": "n1", "id": "i2"}]) == "order i1, n1 -> x"
    assert (
        order([{"function": {"name": "f1"}, "id": "i1"}, {"function": "f2", "name": "n2"}])
        == "order f1, n2 -> x"
    )
    assert order([{"role": "user", "content": "c" * 60}]) == f"order user {show('c' * 60, 20)} -> x"
    assert order([{"other": list(range(30))}, {"id": 7}]) == (
        f"order {show({'other': list(range(30))}, 20)}, {show({'id': 7}, 20)} -> x"
    )
    assert order(["n" * 100]) == f"order {'n' * 57}... -> x"


# -- JSON -------------------------------------------------------------------------------------------------------------


def test_json_has_what_the_kind_has() -> None:
    assert _told("p", "added", now=1).to_json() == {"path": "p", "kind": "added", "now": 1}
    assert _told("p", "removed", recorded=1).to_json() == {"path": "p", "kind": "removed", "recorded": 1}
    moved = _told("p[1]", "changed", 1, None, recorded_path="p[0]")
    assert moved.to_json() == {
        "path": "p[1]", "kind": "changed", "recorded_path": "p[0]", "recorded": 1, "now": None,
    }  # fmt: skip


def test_json_tells_the_spans_of_a_text() -> None:
    filler = " and a lot of words that are as they were before and after "
    found = _one({"t": f"one{filler * 3}two"}, {"t": f"1{filler * 3}2"}).to_json()
    assert found["spans"] == [
        {"before": "", "recorded": "one", "now": "1", "after": (filler * 3)[:200]},
        {"before": (filler * 3)[-200:], "recorded": "two", "now": "2", "after": ""},
    ]
    assert found["span_count"] == 2
    long: Any = _one({"t": "a" * 5000}, {"t": "b" * 5000}).to_json()
    assert long["spans"] == [{"before": "", "recorded": "a" * 2000, "now": "b" * 2000, "after": ""}]
    assert "spans" not in _told("p", "changed", 1, 2).to_json()


def test_large_values_are_cut_in_json_and_say_so() -> None:
    def now(value: Any) -> Any:
        return _told("p", "added", now=value).to_json()["now"]

    values: list[Any] = [None, True, 7, 1.5, "t" * 2000, ["i" * 3996], {}]
    for value in values:
        assert now(value) == value
    assert now("t" * 2001) == "t" * 2000 + "... (2,001 characters)"
    large: Any = ["i" * 3997]
    assert now(large) == {"$cut": show(large, 2000), "bytes": 4001}


# -- what is the same -------------------------------------------------------------------------------------------------


def test_equal_parts_are_named_beside_what_differs() -> None:
    def same(then: Any, now: Any) -> tuple[str, ...]:
        return compare(then, now).same

    assert same({"a": 1, "x": 1}, {"a": 1, "x": 2}) == ("a",)
    five: Any = {f"f{n}": n for n in range(5)}
    assert same({**five, "x": 1}, {**five, "x": 2}) == ("f0", "f1", "f2", "f3", "f4")
    six: Any = {f"f{n}": n for n in range(6)}
    assert same({**six, "x": 1}, {**six, "x": 2}) == ("f0", "f1", "f2", "f3", "f4", "1 more field")
    seven: Any = {f"f{n}": n for n in range(7)}
    assert same({**seven, "x": 1}, {**seven, "x": 2})[5:] == ("2 more fields",)
    eight: Any = {f"f{n}": n for n in range(8)}
    assert same({**eight, "x": 1}, {**eight, "x": 2}) == ("f0", "f1", "f2", "f3", "f4", "3 more fields")
    assert same({**five, "seed": 1, "x": 1}, {**five, "seed": 1, "x": 2})[5:] == ("parameters",)
    assert same({"seed": 1, "x": 1}, {"seed": 1, "x": 2}) == ("parameters",)
    assert same({"f": 1, "x": 1}, [1]) == ()
    assert same([1], {"f": 1, "x": 1}) == ()


def test_the_one_differing_field_is_followed_to_where_something_is_the_same() -> None:
    def wrapped(value: Any, levels: int) -> Any:
        for _ in range(levels):
            value = {"w": value}
        return value

    then, now = {"a": 1, "x": 1}, {"a": 1, "x": 2}
    assert compare(wrapped(then, 3), wrapped(now, 3)).same == ("a",)
    assert compare(wrapped(then, 4), wrapped(now, 4)).same == ()
    inner: Any = {"a": 1, "x": 1}
    assert compare({"w": inner, "s": 1}, {"w": {"a": 1, "x": 2}, "s": 1}).same == ("s",)
    assert compare({"v": inner, "w": inner}, {"v": {"a": 1, "x": 2}, "w": {"a": 1, "x": 3}}).same == ()
    assert compare({"x": 1}, {"y": 1}).same == ()


def test_equal_items_around_what_differs_are_counted() -> None:
    def same(then: Any, now: Any, name: str = "messages") -> tuple[str, ...]:
        return compare({name: then}, {name: now}).same

    assert same(["a", "x", "b", "c"], ["a", "y", "b", "c"]) == ("1 earlier message", "2 later messages")
    assert same(["a", "b", "x", "c"], ["a", "b", "y", "c"]) == ("2 earlier messages", "1 later message")
    assert same(["x", "b"], ["y", "b"]) == ("1 later message",)
    assert same(["a", "a"], ["a", "a", "a"]) == ("2 earlier messages",)
    assert same(["a", "a", "a"], ["a", "a"]) == ("2 earlier messages",)
    assert same(["a", "b", "b"], ["a", "b"]) == ("2 earlier messages",)
    assert same(["x", "b", "b"], ["b", "b"]) == ("2 later messages",)
    assert same(["a", "x"], ["a", "y"], "data") == ("1 earlier data",)
    assert same(["x"], ["y"]) == ()
    assert same(["a"] * 1200 + ["x"], ["a"] * 1200 + ["y"]) == ("1,200 earlier messages",)
    assert compare({"$tuple": ["a", "a", "x"]}, {"$tuple": ["a", "a", "y"]}).same == ("2 earlier items",)
    assert compare({"$tuple": ["a", "x"]}, {"$tuple": ["a", "y"]}).same == ("1 earlier item",)
    assert compare({"m": ["a", "x"]}, {"m": "a"}).same == ()
