"""Rules for parts of a request: paths, parts by role, secrets taken out and put back."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentloom.errors import ValueRefused
from agentloom.format.values import Types, encode
from agentloom.runtime.fieldrules import (
    MISSING,
    Node,
    Role,
    part,
    steps_of,
    tree_of_rules,
    with_secrets_below,
    without_secrets,
)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("user", ("user",)),
        ("args.request_id", ("args", "request_id")),
        ("messages[].name", ("messages", "[]", "name")),
        ("rows[][].x-y", ("rows", "[]", "[]", "x-y")),
    ],
)
def test_a_path_is_names_and_items(path: str, steps: tuple[str, ...]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize("path", ["", ".", "a.", ".a", "a..b", "a[0]", "a[", "[]", "a[]b", "a.[].b"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no path of a field"):
        steps_of(path)


def _key(tree: Any, *noted: str, collapsed: tuple[str, ...] = ()) -> Any:
    return part(tree, tree_of_rules([(path, "noted") for path in noted], collapsed), "key", "key")


def _noted(tree: Any, *noted: str) -> Any:
    return part(tree, tree_of_rules([(path, "noted") for path in noted], ()), "key", "noted")


def test_a_noted_place_is_not_in_the_key() -> None:
    tree = {"args": {"order": 812, "meta": {"trace": "t", "deep": [1]}}}
    assert _key(tree, "args.meta.trace") == {"args": {"order": 812, "meta": {"deep": [1]}}}
    assert _noted(tree, "args.meta.trace") == {"args": {"meta": {"trace": "t"}}}
    assert _key(tree, "args.nothing.here") is tree
    assert _noted(tree, "args.nothing.here") is MISSING


def test_untouched_parts_are_the_same_objects() -> None:
    tree: dict[str, Any] = {"messages": [{"a": 1}], "extra": {"id": 1}}
    assert _key(tree, "extra.id")["messages"] is tree["messages"]


def test_items_of_lists() -> None:
    tree = {"messages": [{"name": "a", "content": "x"}, "text", {"content": "y"}]}
    assert _key(tree, "messages[].name") == {"messages": [{"content": "x"}, "text", {"content": "y"}]}
    assert _noted(tree, "messages[].name") == {"messages": [{"name": "a"}]}


def test_headers_are_named_without_case() -> None:
    assert _key({"headers": {"X-Request-Id": "r", "Accept": "a"}}, "headers.x-request-ID") == {
        "headers": {"Accept": "a"}
    }
    assert _key({"args": {"Id": 1}}, "args.id") == {"args": {"Id": 1}}, "other names have their case"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    number: int
    trace: str


class Model(BaseModel):
    number: int
    trace: str


def test_objects_tuples_and_odd_mappings_are_looked_into() -> None:
    types = Types()
    for cls in (Order, Model, Point):
        types.register(cls)
    for make in (Order, Model):
        one, two = (encode({"o": make(number=1, trace=t)}, types) for t in "ab")
        assert _key(one, "o.trace") == _key(two, "o.trace") != MISSING
        assert _key(one, "o.trace") != _key(encode({"o": make(number=2, trace="a")}, types), "o.trace")
    pair = encode({"o": ({"t": 1, "v": 2}, 3)}, types)
    assert _key(pair, "o[].t") == {"o": {"$tuple": [{"v": 2}, 3]}}
    odd = encode({"o": {1: "a", "t": "b"}}, types)
    assert _key(odd, "o.t") == {"o": {"$map": [[1, "a"]]}}
    tagged = encode({"o": {"$t": 1}}, types)
    assert _noted(tagged, "o.$t") == {"o": {"$map": [["$t", 1]]}}


def test_spacing_collapses_in_the_key_only() -> None:
    tree = {"q": " a\n  b\t", "rows": [" x ", {"k": "y  z"}], "s": {"$set": ["b", "a  c"]}}
    rules = tree_of_rules([], ["q", "rows", "s"])
    assert part(tree, rules, "key", "key") == {
        "q": "a b",
        "rows": ["x", {"k": "y z"}],
        "s": {"$set": ["a c", "b"]},
    }
    assert part({"q": " a "}, tree_of_rules([], ["other"]), "key", "key") == {"q": " a "}


# -- secrets ----------------------------------------------------------------------------------------------------------


def _secret(*paths: str) -> Node:
    return tree_of_rules([(path, "secret") for path in paths], ())


def test_secrets_are_taken_out_and_put_back_in_their_places() -> None:
    value = {
        "user": "u",
        "login": {"password": "p", "name": "n"},
        "rows": [{"pin": 1, "n": 1}, {"n": 2}],
        "t": ({"pin": 2},),
    }
    node = _secret("login.password", "rows[].pin", "t[].pin")
    left = without_secrets(value, node, "args")
    assert left == {"user": "u", "login": {"name": "n"}, "rows": [{"n": 1}, {"n": 2}], "t": ({},)}
    back = with_secrets_below(value, left, node)
    assert back == value
    assert list(back["login"]) == ["password", "name"]
    assert value["login"] == {"password": "p", "name": "n"}


def test_a_value_without_secrets_is_the_same_object() -> None:
    value = {"a": {"b": 1}}
    assert without_secrets(value, tree_of_rules([("a.c", "noted")], ()), "x") is value


def test_a_secret_inside_an_object_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueRefused) as caught:
        without_secrets({"login": Order(1, "t")}, _secret("login.trace"), "args")
    assert caught.value.path == "args.login"
    assert "args.login as a whole secret" in (caught.value.hint or "")


names = st.sampled_from(["a", "b", "c"])
trees = st.recursive(
    st.integers(0, 3) | st.text("x ", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=12,
)
steps = st.lists(names | st.just("[]"), min_size=1, max_size=3)
rules = st.lists(st.tuples(steps, st.sampled_from(["key", "noted", "secret"])), max_size=5)


def _path(steps: list[str]) -> str:
    return "top" + "".join("[]" if step == "[]" else f".{step}" for step in steps)


def _plain_part(tree: Any, at: list[str], roles: dict[tuple[str, ...], Role], wanted: Role) -> Any:
    """The definition: each value goes where the longest path that leads to it says."""
    role = next((roles[tuple(at[:n])] for n in range(len(at), 0, -1) if tuple(at[:n]) in roles), "key")
    deeper = any(len(path) > len(at) and path[: len(at)] == tuple(at) for path in roles)
    if not deeper or not isinstance(tree, (dict, list)):
        return tree if role == wanted else MISSING
    if isinstance(tree, dict):
        parts = {name: _plain_part(item, [*at, name], roles, wanted) for name, item in tree.items()}
        kept: Any = OrderedDict((name, one) for name, one in parts.items() if one is not MISSING)
        kept = dict(kept)
    else:
        kept = [
            one
            for one in (_plain_part(item, [*at, "[]"], roles, wanted) for item in tree)
            if one is not MISSING
        ]
    return MISSING if not kept and role != wanted else kept


@given(tree=trees, given_rules=rules, wanted=st.sampled_from(["key", "noted"]))
def test_parts_are_those_of_the_definition(
    tree: Any, given_rules: list[tuple[list[str], Role]], wanted: Role
) -> None:
    roles = {("top", *steps): role for steps, role in given_rules}
    node = tree_of_rules([(_path(list(path[1:])), role) for path, role in roles.items()], ())
    found = part({"top": tree}, node, "key", wanted)
    expected = _plain_part(tree, ["top"], roles, wanted)
    if expected is MISSING:
        assert found is MISSING or found == {}
    else:
        assert found == {"top": expected}


@given(tree=trees, given_rules=rules)
def test_secrets_put_back_give_the_value_again(tree: Any, given_rules: list[tuple[list[str], Role]]) -> None:
    node = _secret(*(_path(steps) for steps, _ in given_rules)) if given_rules else Node()
    value = {"top": tree}
    left = without_secrets(value, node, "x")
    assert with_secrets_below(value, left, node) == value


# -- corners ----------------------------------------------------------------------------------------------------------


def test_what_is_no_text_is_no_path() -> None:
    with pytest.raises(TypeError, match="5 is no path: a path is a text"):
        steps_of(5)  # type: ignore[arg-type]


def test_names_but_those_of_headers_have_their_case() -> None:
    tree = {"User": 1, "user": 2, "args": {"Id": 1, "id": 2}}
    assert _key(tree, "User") == {"user": 2, "args": {"Id": 1, "id": 2}}
    assert _key(tree, "args.Id") == {"User": 1, "user": 2, "args": {"id": 2}}
    assert _key({"Headers": {"A": 1, "a": 2}}, "Headers.A") == {"Headers": {"a": 2}}


def test_spacing_collapses_beside_other_rules_too() -> None:
    rules = tree_of_rules([("a.b", "noted"), ("l[].b", "noted"), ("m.b", "noted"), ("t.b", "noted")], ())
    tree = {
        "a": {"b": " x  y ", "c": " x  y ", "d": {"e": " x  y "}},
        "l": [{"b": 1, "c": " x  y "}, " x  y "],
        "m": {"$map": [["b", 1], [2, " x  y "]]},
        "t": " x  y ",
    }
    collapsed_parts = {
        "a": {"c": "x y", "d": {"e": "x y"}},
        "l": [{"c": "x y"}, "x y"],
        "m": {"$map": [[2, "x y"]]},
        "t": "x y",
    }
    assert part(tree, rules, "key", "key", True) == collapsed_parts
    every = tree_of_rules(
        [("a.b", "noted"), ("l[].b", "noted"), ("m.b", "noted"), ("t.b", "noted")], ["a", "l", "m", "t"]
    )
    assert part(tree, every, "key", "key") == collapsed_parts
    assert part(tree, rules, "key", "noted", True) == {
        "a": {"b": " x  y "},
        "l": [{"b": 1}],
        "m": {"$map": [["b", 1]]},
    }


def test_a_text_where_a_rule_expects_fields_is_of_the_role_around_it() -> None:
    rules = tree_of_rules([("a", "noted"), ("a.b", "key")], ())
    assert part({"a": "text"}, rules, "key", "noted") == {"a": "text"}
    assert part({"a": "text"}, rules, "key", "key") == {}


def test_untouched_lists_and_tagged_values_are_the_same_objects() -> None:
    tree: dict[str, Any] = {"l": [1, {"a": 1}], "t": {"$tuple": [{"a": 1}]}, "z": {"b": 1, "c": 2}}
    kept = _key(tree, "l[].b", "t[].b", "z.b")
    assert kept["z"] == {"c": 2}
    assert kept["l"] is tree["l"]
    assert kept["t"] is tree["t"]
    changed = _key({"l": [{"a": 1, "b": 2}, {"c": 3}]}, "l[].b")
    assert changed == {"l": [{"a": 1}, {"c": 3}]}


def test_names_of_any_kind_may_stand_in_a_mapping() -> None:
    odd = {"o": {"$map": [[{"$tuple": [1]}, "a"], [["x"], "b"], ["t", "c"]]}}
    assert _key(odd, "o.t") == {"o": {"$map": [[{"$tuple": [1]}, "a"], [["x"], "b"]]}}


def test_objects_are_closed_again_as_they_were() -> None:
    types = Types()
    types.register(Order)
    types.register(Model)
    order, model = (encode({"o": make(number=1, trace="t")}, types) for make in (Order, Model))
    kept: Any = _key(order, "o.trace")
    assert kept["o"]["$obj"] == {"type": f"{__name__}:Order", "how": "dataclass", "data": {"number": 1}}
    body: Any = model
    kept = _key(model, "o.trace")
    assert kept["o"]["$obj"] == {
        **body["o"]["$obj"],
        "data": {**body["o"]["$obj"]["data"], "fields": {"number": 1}},
    }


def test_members_of_sets_are_sorted_again_after_their_spacing() -> None:
    rules = tree_of_rules([], ["s"])
    for tag in ("$set", "$frozenset"):
        assert part({"s": {tag: ["a  z", "a b", 1]}}, rules, "key", "key") == {"s": {tag: ["a b", "a z", 1]}}
        two = {"s": {tag: ["b", "a"], "x": 1}}
        assert part(two, rules, "key", "key") == two
        assert part({"s": {tag: "b  a"}}, rules, "key", "key") == {"s": {tag: "b a"}}


@pytest.mark.parametrize("value", [None, "text", b"bytes", 5, 1.5, True])
def test_plain_values_hold_no_secrets(value: Any) -> None:
    node = _secret("a.upper", "a.real", "a.__class__", "a[].x")
    assert without_secrets({"a": value}, node, "args") == {"a": value}


def test_where_nothing_secret_is_the_value_stays() -> None:
    order = Order(1, "t")
    assert without_secrets({"rows": order}, _secret("rows[].pin"), "args")["rows"] is order
    assert without_secrets({"rows": order}, _secret("rows.password"), "args")["rows"] is order
    beside = tree_of_rules([("rows.password", "secret"), ("rows.trace", "noted")], ())
    assert without_secrets({"rows": order}, beside, "args")["rows"] is order
    items = [{"pin": 1}]
    assert without_secrets({"rows": items}, _secret("rows.pin"), "args")["rows"] is items
    assert without_secrets({"headers": {1: "x", "A": 2, "b": 3}}, _secret("headers.a"), "x") == {
        "headers": {1: "x", "b": 3}
    }


def test_a_refusal_names_place_type_and_reason() -> None:
    with pytest.raises(ValueRefused) as caught:
        without_secrets({"rows": [{}, Order(1, "t")]}, _secret("rows[].trace"), "args")
    assert (caught.value.path, caught.value.type_name) == ("args.rows[1]", "Order")
    assert "a field below it is secret and cannot be taken out of it" in str(caught.value)


def test_secrets_go_back_to_their_places_and_nothing_else_does() -> None:
    value = {
        "a": {"pin": 1, "n": "made", 5: "five"},
        "l": [{"pin": 2, "n": "made"}, {"n": "made"}],
        "t": ({"pin": 3},),
        "s": ["one", "two"],
        "o": Order(1, "t"),
        "headers": {"A": "x", 7: "y"},
        "plain": "made",
    }
    node = _secret("a.pin", "l[].pin", "t[].pin", "s[]", "o.password", "headers.a", "plain.x")
    left = without_secrets(value, node, "x")
    assert left["s"] == []
    recorded = {
        **left,
        "a": {"n": "recorded", 5: "kept"},
        "l": [{"n": "r1"}, {"n": "r2"}],
        "plain": "recorded",
    }
    assert with_secrets_below(value, recorded, node) == {
        "a": {"pin": 1, "n": "recorded", 5: "kept"},
        "l": [{"pin": 2, "n": "r1"}, {"n": "r2"}],
        "t": ({"pin": 3},),
        "s": ["one", "two"],
        "o": Order(1, "t"),
        "headers": {"A": "x", 7: "y"},
        "plain": "recorded",
    }
    assert with_secrets_below("made", "recorded", _secret("a")) == "recorded"
    assert with_secrets_below({"a": 1}, "recorded", _secret("a")) == "recorded"
    assert with_secrets_below("made", {"a": 1}, _secret("a")) == {"a": 1}
    whole = tree_of_rules([("a", "secret")], ()).below["a"]
    assert with_secrets_below("made", "recorded", whole) == "made"
    assert with_secrets_below({"a": 1}, {"a": 2}, Node()) == {"a": 2}
