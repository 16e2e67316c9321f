"""Captured histories against the plain definitions, over any edits: the tree is that of ``encode``, the key that of
``request_key``, and what was written reads back as the tree. With values that compare equal and are of other types."""

from __future__ import annotations

import copy
import enum
from collections.abc import Callable
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from agentloom.errors import ValueRefused
from agentloom.format.canonical import dump
from agentloom.format.captures import Captures
from agentloom.format.digests import request_key
from agentloom.format.keys import Keys
from agentloom.format.values import Types, encode
from tests.format.strategies import STEADY
from tests.format.traces import journal, maker

TYPES = Types()
NONCE = bytes(range(32))


class Word(str, enum.Enum):  # noqa: UP042 - a StrEnum has another base
    USER = "user"


class Level(enum.IntEnum):
    ONE = 1


for declared in (Word, Level):
    TYPES.register(declared)

LEAVES: list[Any] = [
    None, True, 1, 1.0, Level.ONE, 0, 0.0, -0.0, False, "", "user", Word.USER, "é", "\udc80", 2**64 - 1, 2**64, b"b",
    float("nan"), "$ref", "x" * 250, "y" * 1500, {"$ref": "z"}, {"$map": []}, (), [], {}, {"b": 1, "a": 2},
    {"a": 2, "b": 1}, {1: 2}, [[["deep"]]], ("a", 1), {1, 2}, object(),
]  # fmt: skip
leaves = st.sampled_from(LEAVES)
items = st.one_of(
    st.fixed_dictionaries({"role": leaves, "content": leaves}),
    st.fixed_dictionaries(
        {"content": leaves, "calls": st.lists(st.fixed_dictionaries({"f": leaves}), max_size=2)}
    ),
    leaves,
)
edits = st.one_of(
    st.tuples(st.just("add"), st.lists(items, min_size=1, max_size=3)),
    st.tuples(st.just("plain"), st.integers(0, 9)),
    st.tuples(st.just("put"), st.integers(0, 99), items),
    st.tuples(st.just("inside"), st.integers(0, 99), leaves),
    st.tuples(st.just("insert"), st.integers(0, 99), items),
    st.tuples(st.just("compact"), st.integers(0, 99)),
    st.tuples(st.just("copy")),
)


def edit(history: list[Any], change: tuple[Any, ...]) -> list[Any]:
    kind, *rest = change
    if kind == "add":
        history += copy.deepcopy(rest[0])
    elif kind == "plain":
        history.append({"role": "user", "content": f"message {rest[0]} " * 9, "n": rest[0]})
    elif kind == "copy":
        return copy.deepcopy(history)
    elif not history:
        return history
    elif kind == "compact":
        del history[: rest[0] % len(history)]
    elif kind == "put":
        history[rest[0] % len(history)] = copy.deepcopy(rest[1])
    elif kind == "insert":
        history.insert(rest[0] % len(history), copy.deepcopy(rest[1]))
    else:
        item = history[rest[0] % len(history)]
        if isinstance(item, dict):
            fields = cast("dict[Any, Any]", item)  # type: ignore[redundant-cast]
            fields[min(map(str, fields), default="new")] = copy.deepcopy(rest[1])
    return history


def refusal_of(work: Callable[..., object], *args: object) -> tuple[str, str] | None:
    try:
        work(*args)
    except ValueRefused as refused:
        return refused.path, refused.reason
    return None


@STEADY
@given(st.lists(edits, min_size=1, max_size=12), st.lists(leaves, min_size=1, max_size=3))
def test_quick_and_plain_ways_agree(changes: list[tuple[Any, ...]], temperatures: list[Any]) -> None:
    captures, keys, made = Captures(TYPES), Keys(NONCE), maker()
    history: list[Any] = []
    written: dict[str, bytes] = {}
    for turn, change in enumerate(changes):
        history = edit(history, change)
        fields = {
            "temperature": temperatures[turn % len(temperatures)],
            "messages": history,
            "tools": [1, "two"],
        }
        refusal = refusal_of(encode, fields, TYPES)
        assert refusal_of(captures.capture, fields, "series") == refusal
        if refusal is not None:
            continue
        plain = encode(fields, TYPES)
        assert type(plain) is dict
        tree, grown = captures.capture(fields, "series")
        assert dump(tree) == dump(plain)
        want = request_key(NONCE, "p/1", {"type": "model", "name": "m", "fields": plain})
        assert keys.key("p/1", "model", "m", tree, grown) == want
        blob = made.blobs.put(tree, series="series", grown=grown, encoded=True)
        made.entry("note", val=blob)
        written[blob] = dump(plain)
        for one in grown.values():
            one.settle()
    read = journal(made)
    assert {blob: dump(read.tree(blob)) for blob in written} == written
