"""What is said twice is written once, and comes back exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError
from agentloom.format import echoes
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


@pytest.mark.parametrize("tree", [ROWS, [1, [2.5, None]], {}, [], "\u00e9\x7f", 7, None, True], ids=str)
def test_text_is_that_of_json_dumps_with_and_without_its_quick_encoder(
    tree: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for style, (between, after_key, ascii_only) in STYLES.items():
        expected = json.dumps(tree, separators=(between, after_key), ensure_ascii=ascii_only)
        assert json_text(tree, style) == echoes._writer(between, after_key, ascii_only)(tree) == expected
        with monkeypatch.context() as patched:
            patched.setattr(json.encoder, "c_make_encoder", None)
            assert echoes._writer(between, after_key, ascii_only)(tree) == expected
    with pytest.raises(KeyError, match="pretty"):
        json_text(tree, "pretty")


@pytest.mark.parametrize(
    "value", ["s" * 250, 123, ["t" * 250], {"k": "u" * 250}], ids=lambda value: str(value)[:8]
)
def test_only_the_text_of_a_list_or_a_mapping_is_an_echo(value: Any) -> None:
    made = maker()
    hold(made, value)
    text = json.dumps(value).ljust(3)
    blob = hold(made, {"said": text, "more": "m" * 250})
    assert (b'"$json"' in made.data) == isinstance(value, (list, dict))
    assert journal(made).tree(blob) == {"said": text, "more": "m" * 250}


def test_what_is_forgotten_is_found_no_more() -> None:
    found = echoes.Echoes()
    found.whole = {b"1": "one", b"2": "two", b"3": "three"}
    found.forget({"two", "other"})
    assert found.whole == {b"1": "one", b"3": "three"}
    assert found.find(b"2") is None
    assert found.find(b"1") == {"$ref": "one"}


def test_a_part_stands_where_it_was_said_first() -> None:
    found = echoes.Echoes()
    part: Any = {"a": "x" * 250}
    found.learn("one", {"m": [0, part]})
    found.learn("two", part)
    found.learn("three", {"small": [1], "none": None, "again": [part], "later": {"b": "z" * 250}})
    known = found.identify(part)[1]
    assert found.find(known) == {"$part": [{"$ref": "one"}, "m", 1]}
    text = found.identify("x" * 250)[1]
    assert found.find(text) == {"$part": [{"$ref": "one"}, "m", 1, "a"]}
    later: Any = {"b": "z" * 250}
    assert found.find(found.identify(later)[1]) == {"$part": [{"$ref": "three"}, "later"]}
    found.whole[known] = "four"
    assert found.find(known) == {"$ref": "four"}
    found.learn("five", "y" * 250)
    assert found.find(found.identify("y" * 250)[1]) is None


def test_an_object_is_identified_while_its_payload_is_written() -> None:
    found = echoes.Echoes()
    item: Any = ["x"]
    first = found.identify(item)
    assert first == (b'["x"]', echoes.content(b"json", b'["x"]'))
    item.append("y")
    assert found.identify(item) is first  # it is not looked at again
    found.done()
    assert found.identify(item)[0] == b'["x","y"]'
    found.identified(item, b"text", b"known")
    assert found.identify(item) == (b"text", b"known")


@pytest.mark.parametrize(
    ("tree", "data"),
    [
        ([0.5], b"[0.5]"),
        ([1e300], b"[1e+300]"),
        ([1e-7], b"[1e-7]"),
        ([1], b"[1]"),
        (["1.5e+7"], b'["1.5e+7"]'),
    ],
)
def test_floats_are_written_with_a_point_or_a_signed_exponent(tree: Any, data: bytes) -> None:
    for text in (data, echoes.text_of(tree)):
        assert echoes._may_hold_floats(text) or not any(type(item) is float for item in tree)
    assert not echoes._may_hold_floats(b'[1,"be",true]')


def test_what_a_long_run_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echoes, "CONTENTS", 64)
    made = maker()
    said = {"rows": ["r" * 250, {"text": "t" * 250}]}
    first = hold(made, said)
    kept = made.blobs._echoes
    for number in range(500):
        hold(made, {"number": number, "text": f"{number} " * 60})
        assert len(kept.whole) <= 64 + 8
        assert len(kept.parts) <= 64 + 8
    again = hold(made, said)
    assert again != first  # forgotten, and so written again
    assert hold(made, said) == again  # remembered from now on
    read = journal(made)
    assert read.tree(first) == read.tree(again) == said
    assert read.tree(hold(made, {"number": 499, "text": "499 " * 60})) == {"number": 499, "text": "499 " * 60}


@pytest.mark.parametrize(("held", "left"), [(7, 7), (8, 8), (9, 7), (12, 9), (20, 15)])
def test_the_oldest_quarter_goes_where_too_many_are_held(
    held: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(echoes, "CONTENTS", 8)
    kept = {b"%d" % number: number for number in range(held)}
    echoes.drop_oldest(kept)
    assert list(kept.values()) == list(range(held - left, held))
