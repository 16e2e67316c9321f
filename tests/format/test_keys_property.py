"""A history edited in place, at any index and depth, by any kind of edit, has the key of its definition: the digest of
the canonical form of the whole request. On the quick way of growing histories and on the plain one."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agentloom.format.canonical import canonical
from agentloom.format.captures import Captures
from agentloom.format.digests import request_key
from agentloom.format.keys import Keys
from agentloom.format.values import Types, encode
from agentloom.runtime.changes import profile
from agentloom.runtime.profiles import Profile, get, parts_of
from tests.format.strategies import STEADY

NONCE = bytes(range(32))
MODEL = "agentloom.model/1"
RULES = [
    get(MODEL),
    profile(MODEL, noted=["messages[].name"]),
    profile(MODEL, noted=["temperature"], normalise="whitespace"),
    profile(MODEL, strict=True, noted=["messages[].content[].id"], normalise={"messages": "whitespace"}),
]
SWAPS: list[Any] = [
    True,
    1,
    1.0,
    "1",
    0,
    0.0,
    -0.0,
    False,
    None,
    "",
    " ",
    [],
    {},
    (),
    (1,),
    [1],
    {"a": 1},
    2**70,
    b"1",
]

leaf = st.one_of(st.integers(0, 3), st.sampled_from(["a", "b  c", "x" * 300, 1.0, True, None]))
content = st.one_of(
    leaf,
    st.lists(
        st.fixed_dictionaries({"type": leaf, "id": leaf, "deep": st.lists(leaf, max_size=2)}), max_size=2
    ),
)
message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": content}, optional={"name": leaf}
)
# An edit: numbers that choose the way down, what is done there, and with what.
kinds = st.sampled_from(["put", "delete", "add", "swap", "rename", "reorder", "retype", "append"])
edit = st.tuples(st.lists(st.integers(0, 9), max_size=6), kinds, st.sampled_from(SWAPS))


def edit_in_place(history: list[Any], change: tuple[list[int], str, Any]) -> None:
    """Go down as far as the numbers lead, and change what is there."""
    way, kind, value = change
    at: Any = history
    for step in way:
        below = [
            item
            for item in (at.values() if isinstance(at, dict) else at)
            if isinstance(item, (dict, list)) and item
        ]
        if not below:
            break
        at = below[step % len(below)]
    where = list(at) if isinstance(at, dict) else list(range(len(at)))
    value = copy.deepcopy(value)
    if kind == "append" or not where:
        history.append({"role": "user", "content": value})
        return
    name = where[sum(way) % len(where)]
    if kind == "put":
        at[name] = value
    elif kind == "delete":
        del at[name]
    elif kind == "add" and isinstance(at, dict):
        at["new"] = value
    elif kind == "rename" and isinstance(at, dict):
        at[f"{name}x"] = at.pop(name)
    elif kind == "reorder" and isinstance(at, dict):
        at[name] = at.pop(name)  # last now: the order is no part of a key
    elif kind == "retype":
        at[name] = _as_another_type(at[name])
    elif isinstance(at, list):
        at.insert(name, at.pop())


def _as_another_type(value: Any) -> Any:
    """A value that is equal, or reads the same, and is of another type."""
    if type(value) is bool:
        return int(value)
    return float(value) if type(value) is int else str(value)


def reference(rule: Profile, request: dict[str, Any]) -> str:
    """The definition, without anything that was kept from the request before."""
    fields = parts_of(rule, encode(request, Types()), "key")  # type: ignore[arg-type]
    return request_key(NONCE, rule.name, {"type": "model", "name": "m", "fields": fields})


@settings(STEADY, max_examples=250)
@given(
    st.lists(message, min_size=1, max_size=6),
    st.lists(st.lists(edit, min_size=1, max_size=2), min_size=1, max_size=8),
    st.sampled_from(RULES),
    st.sampled_from([{"max_tokens": 5}, {"temperature": 0.5, "tools": [{"name": "t"}]}, {"other": (1, 2)}]),
)
def test_the_key_of_an_edited_history_is_that_of_its_definition(
    history: list[Any], turns: list[list[tuple[list[int], str, Any]]], rule: Profile, more: dict[str, Any]
) -> None:
    captures, keys = Captures(Types()), Keys(NONCE)
    seen: dict[bytes, str] = {}
    for changes in [[], *turns]:
        for change in changes:
            edit_in_place(history, change)
        request = {"model": "m", "messages": history, **more}
        tree, grown = captures.capture(request, "s")
        fields = tree if rule.whole and not rule.noted & tree.keys() else parts_of(rule, tree, "key")
        compared = {name: one for name, one in grown.items() if fields.get(name) is one.items}
        key = keys.key(rule.name, "model", "m", fields, compared)
        assert key == reference(rule, request)
        form = canonical(parts_of(rule, tree, "key"))
        assert seen.setdefault(form, key) == key, "equal requests have equal keys"
        assert len(set(seen.values())) == len(seen), "and others have others"
        for one in grown.values():
            one.settle()


@STEADY
@given(st.lists(message, min_size=2, max_size=5), st.lists(edit, min_size=1, max_size=6))
def test_captured_requests_do_not_change_with_the_history(history: list[Any], changes: list[Any]) -> None:
    captures = Captures(Types())
    held: list[tuple[Any, Any]] = []
    for change in changes:
        tree, _ = captures.capture({"messages": history}, "s")
        held.append((tree, copy.deepcopy(tree)))
        edit_in_place(history, change)
    assert all(tree == before for tree, before in held)
