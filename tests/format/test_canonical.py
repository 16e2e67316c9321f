"""JSON text: exact, canonical and strict."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import math
import struct
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import FormatError, ValueRefused
from agentloom.format import canonical as module
from agentloom.format.canonical import canonical, dump, float_text, load
from agentloom.format.limits import LINE_DEPTH
from tests.format.strategies import STEADY, same, trees


@STEADY
@given(trees)
def test_text_reads_back_exactly(tree: Any) -> None:
    assert same(load(dump(tree)), tree)
    assert json.loads(dump(tree)) == tree


@STEADY
@given(trees)
def test_the_canonical_form_is_the_same_with_and_without_orjson(tree: Any) -> None:
    assert module._write(tree).encode() == canonical(tree)


@STEADY
@given(st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=6), st.randoms(use_true_random=False))
def test_order_of_members_does_not_matter(mapping: dict[str, int], random: Any) -> None:
    items = list(mapping.items())
    random.shuffle(items)
    assert canonical(dict(items)) == canonical(mapping)  # type: ignore[arg-type]
    names = list(json.loads(canonical(mapping)))  # type: ignore[arg-type]
    assert names == sorted(mapping)


def test_order_of_map_pairs_does_not_matter() -> None:
    one = {"x": {"$map": [[2, "b"], [{"$tuple": [1, 2]}, "a"], ["$", 0]]}}
    two = {"x": {"$map": [["$", 0], [2, "b"], [{"$tuple": [1, 2]}, "a"]]}}
    assert canonical(one) == canonical(two)  # type: ignore[arg-type]
    assert dump(one) != dump(two)  # type: ignore[arg-type]


def test_numbers_that_are_equal_in_python_differ() -> None:
    forms = {canonical([item]) for item in (1, 1.0, True, "1")}
    assert len(forms) == 4
    assert canonical(0.0) != canonical(-0.0)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (12.5, "12.5"),
        (0.1, "0.1"),
        (1e-4, "0.0001"),
        (1e-5, "0.00001"),
        (1.5e-5, "0.000015"),
        (1e-6, "1e-6"),
        (1.5e-7, "1.5e-7"),
        (1e15, "1000000000000000.0"),
        (9007199254740993.0, "9007199254740992.0"),
        (1e16, "1e+16"),
        (-1.2345678901234568e17, "-1.2345678901234568e+17"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_floats_have_one_text(number: float, text: str) -> None:
    assert float_text(number) == text
    assert canonical(number) == text.encode()


@STEADY
@given(st.binary(min_size=8, max_size=8).map(lambda raw: struct.unpack(">d", raw)[0]))
def test_every_float_has_the_text_of_the_rule(number: float) -> None:
    if math.isfinite(number):
        assert canonical(number) == float_text(number).encode()
        assert float(float_text(number)) == number


def test_an_orjson_that_prints_otherwise_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    tree: Any = {"b": [1e16, 1e-5, "\x7f\u2028\n\x1f"], "a": None}
    expected = canonical(tree)
    monkeypatch.setattr(module, "_ORJSON_IS_CANONICAL", False)
    monkeypatch.setattr(orjson, "dumps", lambda *a, **k: pytest.fail("used"))
    assert canonical(tree) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"a":1,"a":2}', "json.duplicate"),
        (b'[{"x":{"a":1,"b":2,"a":1}}]', "json.duplicate"),
        (b"[NaN]", "json.syntax"),
        (b"[Infinity]", "json.syntax"),
        (b"[1180591620717411303424]", "json.number"),
        (b"18446744073709551616", "json.number"),
        (b"-9223372036854775809", "json.number"),
        (b"[1e999]", "json.syntax"),
        (b'"\\ud800"', "json.syntax"),
        (b'"\xed\xa0\x80"', "json.syntax"),
        (b'"\xff"', "json.syntax"),
        (b"", "json.syntax"),
        (b"\xef\xbb\xbf1", "json.syntax"),
        (b"01", "json.syntax"),
        (b"[1,]", "json.syntax"),
        (b"[" * (LINE_DEPTH + 1) + b"]" * (LINE_DEPTH + 1), "json.depth"),
        (b"[" * 900 + b"]" * 900, "json.depth"),
        (b"[" * 100_000 + b"]" * 100_000, "json.syntax"),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else value,
)
def test_strict_reading(text: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        load(text)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        (b' { "a" : [ 1 , 2.50 ] } ', {"a": [1, 2.5]}),
        (b'"\\u0041\\/"', "A/"),
        (b"1E5", 100000.0),
        (b"18446744073709551615", 2**64 - 1),
        (b"-9223372036854775808", -(2**63)),
        (b"[" * LINE_DEPTH + b"]" * LINE_DEPTH, None),
    ],
)
def test_other_spellings_are_read(text: bytes, tree: Any) -> None:
    found = load(text)
    assert tree is None or same(found, tree)


@pytest.mark.parametrize(
    "tree", [math.nan, [math.inf], {"a": [-math.inf]}, object(), {1: 2}, {1}, 2**64, "\ud800"]
)
def test_what_is_no_tree_is_refused(tree: Any) -> None:
    with pytest.raises(ValueRefused):
        dump(tree)


def test_null_is_not_taken_for_nan() -> None:
    assert dump([None, "null"]) == b'[null,"null"]'


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (b"[1180591620717411303424111]", "json.number", "the integer 118059162071741130342411 is"),
        (b" [100000000000000000000]", "json.number", "the integer 100000000000000000000 is"),
        (b'{ "a":1,"a":2}', "json.duplicate", "the key 'a' stands twice"),
        (b'{"%b":1,"%b":2}' % (b"k" * 90, b"k" * 90), "json.duplicate", f"the key '{'k' * 80}' stands"),
        (b"[" * 211 + b"]" * 211, "json.depth", "more than 210 levels"),
        (b"[ " * 900 + b"]" * 900, "json.depth", "more than 210 levels"),
        (b"[1e999]", "json.syntax", "not JSON: number is infinity"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value,
)
def test_what_is_not_strict_is_named(text: bytes, code: str, words: str) -> None:
    with pytest.raises(FormatError, match=words.replace("[", r"\[")) as caught:
        load(text)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "number"),
    [(b" 18446744073709551615", 2**64 - 1), (b" -9223372036854775808", -(2**63)), (b" 0", 0)],
)
def test_the_greatest_and_least_integers_are_read_in_other_spellings(text: bytes, number: int) -> None:
    assert load(text) == number


@pytest.mark.parametrize(
    ("tree", "name", "reason"),
    [
        ({"a": object()}, "dict", "not a tree: Type is not JSON serializable: object"),
        (2**64, "int", "not a tree: Integer exceeds 64-bit range"),
        ({1: 2}, "dict", "not a tree: Dict key must be str"),
    ],
    ids=["object", "integer", "key"],
)
def test_what_is_no_tree_is_named(tree: Any, name: str, reason: str) -> None:
    for write in (dump, canonical):
        with pytest.raises(ValueRefused) as caught:
            write(tree)
        assert (caught.value.path, caught.value.type_name) == ("value", name)
        assert caught.value.reason.startswith(reason)


def test_a_number_without_json_form_is_named() -> None:
    with pytest.raises(ValueRefused) as caught:
        dump([1.5, {"a": math.inf}])
    assert (caught.value.path, caught.value.type_name) == ("value", "float")
    assert caught.value.reason == 'inf has no JSON form; write {"$float": ...}'


@pytest.mark.parametrize(
    ("tree", "name", "reason"),
    [
        ({"$map": [[1, 2], (3, 4)]}, "tuple", "$map holds [key, value] pairs"),
        ({"$map": [[1, 2, 3]]}, "list", "$map holds [key, value] pairs"),
        ({"$map": [[1, 2]], "a": {3}}, "set", "not a tree"),
        ({"a": {"$map": [[1, b"x"]]}}, "bytes", "not a tree"),
    ],
    ids=str,
)
def test_what_is_no_tree_is_named_on_the_exact_path_too(
    tree: Any, name: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ORJSON_IS_CANONICAL", False)
    with pytest.raises(ValueRefused) as caught:
        canonical(tree)
    assert (caught.value.path, caught.value.type_name, caught.value.reason) == ("value", name, reason)


def test_only_a_tag_alone_is_a_map() -> None:
    assert canonical({"x": 1, "$map": [[2, "b"], [1, "a"]]}) == b'{"$map":[[2,"b"],[1,"a"]],"x":1}'
    assert canonical({"$map": [[2, "b"], [1, "a"]]}) == b'{"$map":[[1,"a"],[2,"b"]]}'
    assert canonical({"$map": 7}) == b'{"$map":7}'


def test_too_deep_is_over_210_levels() -> None:
    def nested(depth: int) -> Any:
        tree: Any = 1
        for level in range(depth):
            tree = [0, tree] if level % 2 else {"a": "text", "k": tree}
        return tree

    assert not module.too_deep(nested(LINE_DEPTH))
    assert module.too_deep(nested(LINE_DEPTH + 1))
    assert not module.too_deep("[" * 300)
    assert dump(nested(LINE_DEPTH))
    with pytest.raises(ValueRefused, match="more than 210 levels deep") as caught:
        dump([nested(LINE_DEPTH)])
    assert (caught.value.path, caught.value.type_name) == ("value", "list")
    assert dump(["[" * 500])


def test_floats_are_found_wherever_they_stand() -> None:
    assert sorted(module.floats([1, 1.5, {"a": [True, {"b": 2.5}], "c": 3.5}, "4.5"])) == [1.5, 2.5, 3.5]
    assert list(module.floats(0.5)) == [0.5]


class Text(str):  # noqa: SLOT000
    pass


@pytest.mark.parametrize(
    "value",
    [Text("x"), {"a": Text("x")}, [{Text("x"): 1}], type("Fields", (dict,), {})(), dt.date(2026, 1, 2),
     dataclasses.make_dataclass("Box", ["x"])(1), b"x"],
    ids=repr,
)  # fmt: skip
def test_what_orjson_would_write_as_something_else_is_no_tree(value: Any) -> None:
    for write in (dump, canonical):
        with pytest.raises(ValueRefused):
            write(value)


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_too_deep_is_noticed_in_the_shortest_text(opening: bytes, closing: bytes) -> None:
    for depth, good in ((LINE_DEPTH, True), (LINE_DEPTH + 1, False)):
        text = opening * depth + (b"1" if closing == b"}" else b"") + closing * depth
        if good:
            assert dump(load(text)) == text
            continue
        with pytest.raises(FormatError, match="more than 210 levels") as caught:
            load(text)
        assert caught.value.code == "json.depth"
        with pytest.raises(ValueRefused, match="more than 210 levels"):
            dump(orjson.loads(text))
    assert not module.too_deep(7)


def test_the_key_that_stands_twice_is_named() -> None:
    with pytest.raises(FormatError, match="the key 'a' stands twice"):
        load(b'{"b":1,"a":2,"c":3,"a":4}')


@pytest.mark.parametrize(
    ("number", "text"),
    [(-1e-5, "-0.00001"), (-1.25e-5, "-0.0000125"), (9.5e-5, "0.000095"), (-1e-6, "-1e-6"), (-1e16, "-1e+16"),
     (-1.5e300, "-1.5e+300"), (-0.5, "-0.5"), (1e22, "1e+22"), (9.999e-5, "0.00009999")],
)  # fmt: skip
def test_negative_and_small_floats_have_one_text(number: float, text: str) -> None:
    assert float_text(number) == text
    assert canonical(number) == text.encode()
