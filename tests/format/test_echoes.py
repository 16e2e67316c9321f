"""What is said twice is written once, and comes back exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError
from agentloom.format.echoes import STYLES, json_text
from agentloom.format.journal import Journal
from spec.vector_maker import Maker
from tests.format.strategies import FEW, same, trees
from tests.format.traces import hold, journal, maker

ROWS: Any = {
    "rows": [{"id": n, "name": f"n\u00fcmber {n} \U0001f600\x7f\n"} for n in range(12)],
    "ok": True,
    "none": None,
}
OTHER_TEXTS = [json.dumps(ROWS, indent=1), json.dumps(ROWS, sort_keys=True), json.dumps(ROWS) + " "]
OTHER_TEXTS += [json.dumps({**ROWS, "x": 1}), "{" * 300]


@pytest.mark.parametrize("style", STYLES)
def test_a_result_that_comes_back_as_json_text_is_stored_once(style: str) -> None:
    made = maker()
    hold(made, ROWS)
    message = {"role": "tool", "content": json_text(ROWS, style)}
    before = len(made.data)
    blob = hold(made, {"messages": [{"role": "system", "content": "s" * 300}, message]}, "s")
    assert len(made.data) - before < 1000
    assert b'"$json"' in made.data
    assert journal(made).tree(blob) == {"messages": [{"role": "system", "content": "s" * 300}, message]}


def test_the_styles_are_those_of_json_dumps() -> None:
    assert json_text(ROWS, "spaced-ascii") == json.dumps(ROWS)
    assert json_text(ROWS, "compact") == json.dumps(ROWS, ensure_ascii=False, separators=(",", ":"))
    assert json_text("\x7f\u00e9\U0001f600\x1f/", "compact-ascii") == '"\\u007f\\u00e9\\ud83d\\ude00\\u001f/"'


@pytest.mark.parametrize("text", OTHER_TEXTS)
def test_other_text_is_kept_as_it_is(text: str) -> None:
    made = maker()
    hold(made, ROWS)
    blob = hold(made, [text])
    assert journal(made).tree(blob) == [text]


def test_text_with_floats_is_kept_as_it_is() -> None:
    made = maker()
    value: Any = {"price": [1.5] * 80}
    hold(made, value)
    blob = hold(made, [json.dumps(value)])
    assert b'"$json"' not in made.data
    assert journal(made).tree(blob) == [json.dumps(value)]


def test_parts_of_an_answer_are_stored_once() -> None:
    made = maker()
    answer: Any = {
        "id": "1",
        "choices": [{"message": {"role": "assistant", "content": "word " * 100}, "index": 0}],
    }
    hold(made, answer)
    message = {"role": "assistant", "content": "word " * 100, "name": "a"}
    blob = hold(made, {"messages": ["s" * 300, message]}, "s")
    same_message = hold(made, {"again": answer["choices"][0]["message"]})
    assert made.data.count(b"word " * 100) == 1
    read = journal(made)
    assert read.tree(blob) == {"messages": ["s" * 300, message]}
    assert read.tree(same_message) == {"again": answer["choices"][0]["message"]}


@FEW
@given(trees, st.lists(st.sampled_from(["part", "text", "wrap", "same"]), min_size=1, max_size=4))
def test_whatever_is_said_again_comes_back(tree: Any, ways: list[str]) -> None:
    made = maker()
    first: Any = {"a": [tree, "filler " * 50], "b": {"c": tree}}
    sent: list[tuple[str, Any]] = [(hold(made, first), first)]
    for way in ways:
        again: Any = {"x": first} if way == "wrap" else first
        again = {"m": json.dumps(first)} if way == "text" else [tree, first["a"]] if way == "part" else again
        sent.append((hold(made, again, "s" if way == "wrap" else None), again))
    read = journal(made)
    for blob, value in sent:
        assert same(read.tree(blob), value)


@pytest.mark.parametrize(
    "echo",
    [
        {"$part": []},
        {"$part": [{"$ref": "ID"}, "nowhere"]},
        {"$part": [{"$ref": "ID"}, 7]},
        {"$part": [{"$ref": "ID"}, -1]},
        {"$json": [{"$ref": "ID"}, "pretty"]},
        {"$json": [{"$ref": "ID"}]},
    ],
)
def test_an_echo_that_leads_nowhere_is_an_error(echo: Any) -> None:
    made = Maker("nowhere").start()
    source = made.put([1, 2])
    blob = made.put({"x": json.loads(json.dumps(echo).replace("ID", source))})
    data = made.entry("note", val=blob, reads=[source]).end().data
    with pytest.raises(FormatError) as caught:
        Journal.parse(data).tree(blob)
    assert caught.value.code == "value.parts"


def test_a_users_mapping_is_no_echo() -> None:
    made = maker()
    from agentloom.format.values import Types, decode, encode

    value = {"$part": [{"$ref": "0" * 64}, "x"]}
    blob = hold(made, encode(value))
    assert decode(journal(made).tree(blob), Types()) == value
