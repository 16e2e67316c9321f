"""Differences of two trees: paths, kinds, text spans, alignment, counts of what is the same, bounded cost."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from agentloom.replay.fields import Comparison, compare, join_path, same_tree
from agentloom.replay.text import plain


def _one(comparison: Comparison) -> Any:
    assert comparison.total == 1, [item.path for item in comparison.items]
    return comparison.items[0]


def _messages(count: int) -> list[Any]:
    return [{"role": "user", "content": f"message {number}"} for number in range(count)]


def test_a_changed_argument_is_one_line() -> None:
    found = _one(compare({"args": {"target": "staging", "n": 1}}, {"args": {"target": "production", "n": 1}}))
    assert (found.path, found.kind) == ("args.target", "changed")
    assert plain(found.lines(80)) == '  "staging" -> "production"'


def test_a_changed_message_shows_its_text_and_what_is_the_same() -> None:
    then: Any = {
        "model": "gpt-4o",
        "messages": [
            *_messages(100),
            {"role": "system", "content": "Answer in one sentence. Ask before deleting."},
        ],
        "tools": [{"name": "search"}],
        "temperature": 0,
    }
    now: Any = {
        **then,
        "messages": [*_messages(100), {"role": "system", "content": "Answer in one sentence."}],
    }
    comparison = compare(then, now)
    found = _one(comparison)
    assert found.path == "messages[100].content"
    assert (
        plain(found.lines(80))
        == "  - Answer in one sentence. Ask before deleting.\n  + Answer in one sentence."
    )
    assert comparison.same == ("100 earlier messages", "tools", "parameters")


def test_an_insertion_in_the_middle_is_one_insertion() -> None:
    new: Any = {"role": "user", "content": "inserted"}
    comparison = compare(
        {"messages": _messages(200)}, {"messages": [*_messages(50), new, *_messages(200)[50:]]}
    )
    found = _one(comparison)
    assert (found.path, found.kind, found.now) == ("messages[50]", "added", new)
    assert comparison.same == ("50 earlier messages", "150 later messages")


def test_an_insertion_and_a_change_further_on_are_two() -> None:
    then, now = _messages(100), _messages(100)
    now.insert(10, {"role": "user", "content": "inserted"})
    now[71] = {"role": "user", "content": "message seventy"}
    found = compare(then, now)
    assert [(item.path, item.kind, item.recorded_path) for item in found.items] == [
        ("[10]", "added", None),
        ("[71].content", "changed", "[70].content"),
    ]


def test_a_removed_item_keeps_its_recorded_index() -> None:
    then = _messages(20)
    found = _one(compare(then, then[:5] + then[6:]))
    assert (found.path, found.kind) == ("[5]", "removed")


def test_a_permuted_list_is_one_finding() -> None:
    found = _one(compare({"q": ["a", "b", "c"]}, {"q": ["c", "a", "b"]}))
    assert (found.path, found.kind) == ("q", "order")
    assert plain(found.lines(80)) == "  order a, b, c -> c, a, b"


@pytest.mark.parametrize(
    ("then", "now", "kind"),
    [
        (1, 1.0, "type"),
        (1, True, "type"),
        ("1", 1, "type"),
        (None, "x", "changed"),
        ([], {}, "type"),
        (1, 2, "changed"),
    ],
)
def test_types_are_part_of_equality(then: Any, now: Any, kind: str) -> None:
    assert not same_tree(then, now)
    assert _one(compare({"n": then}, {"n": now})).kind == kind


def test_mapping_order_counts_only_where_asked() -> None:
    then: Any = {"a": 1, "b": 2}
    now: Any = {"b": 2, "a": 1}
    assert not compare(then, now)
    found = _one(compare({"out": then}, {"out": now}, ordered=True))
    assert (found.path, found.kind) == ("out", "order")


def test_tagged_values_are_opened_by_kind() -> None:
    then: Any = {"t": {"$tuple": [1, {"x": 2}]}, "when": {"$datetime": "2026-01-01T00:00:00+00:00"}}
    now: Any = {"t": {"$tuple": [1, {"x": 3}]}, "when": {"$datetime": "2026-01-02T00:00:00+00:00"}}
    assert [item.path for item in compare(then, now).items] == ["t[1].x", "when"]
    assert _one(compare({"t": {"$tuple": [1]}}, {"t": [1]})).kind == "type"
    obj: Any = {"$obj": {"type": "m:Point", "how": "dataclass", "data": {"x": 1}}}
    moved: Any = {"$obj": {"type": "m:Point", "how": "dataclass", "data": {"x": 2}}}
    assert _one(compare({"p": obj}, {"p": moved})).path == "p.x"


def test_odd_keys_are_quoted() -> None:
    assert join_path(join_path("headers", "x-y"), "a b") == 'headers.x-y["a b"]'


def test_a_long_text_shows_the_changed_span_with_context() -> None:
    common = "word " * 20_000
    comparison = compare(
        {"text": common + "when paid, " + common}, {"text": common + "within 30 days, " + common}
    )
    text = plain(_one(comparison).lines(80))
    assert "when paid" in text
    assert "within 30 days" in text
    assert text.count("...") == 4
    assert all(len(line) <= 80 for line in text.splitlines())


def test_two_changes_far_apart_are_two_hunks() -> None:
    filler = "the quick brown fox jumps over the lazy dog and goes home again. "
    found = _one(compare({"t": f"one {filler * 5}two"}, {"t": f"1 {filler * 5}2"}))
    assert found.hunk_count == 2
    assert [(hunk.old, hunk.new) for hunk in found.hunks] == [("one", "1"), ("two", "2")]
    assert "1 more change in this text" in plain(found.lines(80))


def test_a_line_changed_in_a_long_prompt_shows_that_line() -> None:
    lines = [f"rule {number}: do as told" for number in range(300)]
    then, now = "\n".join(lines), "\n".join([*lines[:150], "rule 150: do not", *lines[151:]])
    text = plain(_one(compare({"t": then}, {"t": now})).lines(80))
    assert text == "  - rule 150: do as told\n  + rule 150: do not"


def test_huge_values_cost_little_and_say_when_they_are_cut() -> None:
    then: Any = {"rows": [{"id": number, "text": "x" * 50} for number in range(20_000)]}
    now: Any = {"rows": [{"id": number, "text": "y" * 50} for number in range(20_000)]}
    began = time.process_time()
    comparison = compare(then, now)
    assert time.process_time() - began < 2
    assert len(comparison.items) == 40
    assert not comparison.complete
    assert sum(len(plain(item.lines(80))) for item in comparison.items[:4]) < 1200


def test_random_edits_are_all_found() -> None:
    seed = 7
    generator = random.Random(seed)
    print("seed", seed)
    for _ in range(200):
        then: Any = {f"k{number}": generator.choice([1, "a", None, [1, 2], {"x": 1}]) for number in range(10)}
        now = dict(then)
        changed = generator.sample(sorted(then), 3)
        for key in changed:
            now[key] = f"new {key}"
        assert sorted(item.path for item in compare(then, now).items) == sorted(changed)


def test_json_is_bounded() -> None:
    found = _one(compare({"t": "a" * 10_000, "u": 1}, {"t": "b" * 10_000, "u": 1}))
    out: Any = found.to_json()
    assert out["path"] == "t"
    assert out["kind"] == "changed"
    assert len(str(out)) < 12_000


def test_an_order_is_told_by_names() -> None:
    tools: Any = [{"type": "function", "function": {"name": name}} for name in ("look", "buy")]
    messages: Any = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    found = compare({"tools": tools}, {"tools": tools[::-1]})
    assert "order look, buy -> buy, look" in plain(found.items[0].lines())
    assert 'order system "Be kind.", user "Hi"' in plain(
        compare({"messages": messages}, {"messages": messages[::-1]}).items[0].lines()
    )
