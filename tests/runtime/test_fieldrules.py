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
