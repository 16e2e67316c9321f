"""Requests of a growing history: what is written and keyed is what was asked for, however the history was changed.

The fast path (``captures``, ``marks``, ``keys``, ``histories``) is held to the plain definitions: ``encode`` and
``request_key`` over the whole request. Seeds are in the test ids.
"""

from __future__ import annotations

import copy
import enum
import random
from collections.abc import Mapping
from typing import Any

import pytest

import agentloom
from agentloom import agent, sync
from agentloom.errors import NotSupported, ValueRefused
from agentloom.format.captures import Captures
from agentloom.format.declared import Types
from agentloom.format.digests import request_key
from agentloom.format.encoding import encode
from agentloom.runtime.profiles import get, split
from agentloom.runtime.registry import TYPES
from agentloom.store import MemoryStore

VALUES: list[Any] = [
    0, 1, True, False, None, 1.0, -0.0, 0.0, 2**63, 2**70, float("inf"), "", "x" * 300, "y" * 2000, "\udc80", b"ab",
    (1, 2), [1, 2], {"$ref": "a"}, {"b": 1, "a": 2}, {"a": 2, "b": 1}, [[], {}], {1: 2}, {"n": float("nan")},
]  # fmt: skip


class _Backend:
    """Answers, and does to the request what careless code would do."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.got: list[Any] = []

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.got.append(copy.deepcopy(request["messages"]))
        if request["messages"] and self.rng.random() < 0.3:
            request["messages"].pop()
        if request["messages"] and isinstance(request["messages"][0], dict) and self.rng.random() < 0.3:
            request["messages"][0]["content"] = "changed by the backend"
        return {"content": "z" * self.rng.choice([3, 400, 1500]), "tool_calls": []}

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    stream = complete
    stream_sync = complete_sync


def _edit(history: list[Any], rng: random.Random) -> list[Any]:
    """One change of a history, most often that something is added."""
    kind = rng.choice(["add", "add", "add", "edit", "insert", "drop", "compact", "copy", "retype", "nothing"])
    if kind == "add" or not history:
        added = [copy.deepcopy(rng.choice(VALUES)) for _ in range(rng.randint(1, 3))]
        history += [{"role": "user", "content": content} for content in added]
    elif kind == "edit":
        history[rng.randrange(len(history))]["content"] = copy.deepcopy(rng.choice(VALUES))
    elif kind == "insert":
        history.insert(rng.randrange(len(history)), {"role": "tool", "content": rng.choice(VALUES)})
    elif kind == "drop":
        del history[rng.randrange(len(history))]
    elif kind == "compact":
        del history[: rng.randrange(len(history))]
    elif kind == "copy":
        history = copy.deepcopy(history)
    elif kind == "retype":
        item = history[rng.randrange(len(history))]
        item["content"] = 1 if item["content"] is True else 1.0 if item["content"] == 1 else True
    return history


def _exact(value: Any) -> str:
    """A text that differs where types, order or bits differ."""
    return f"{type(value).__name__}:{value!r}"


@pytest.mark.parametrize("seed", range(60))
def test_any_history_is_written_and_keyed_as_it_was(seed: int) -> None:
    rng = random.Random(seed)
    sent: list[Any] = []

    @agent
    def talks(turns: int) -> int:
        history: list[Any] = []
        for turn in range(turns):
            history = _edit(history, rng)
            sent.append(copy.deepcopy(history))
            answer = sync.model("m", history, temperature=rng.choice([0, 1, 1.0]))
            if turn % 2:
                history.append(answer.message)
        return len(history)

    backend = _Backend(random.Random(seed))
    before = agentloom.set_backend(backend)  # type: ignore[arg-type]
    try:
        trace = talks.run(12, store=MemoryStore())
    finally:
        agentloom.set_backend(before)
    assert [_exact(messages) for messages in backend.got] == [_exact(messages) for messages in sent]
    assert [_exact(call.request["messages"]) for call in trace.calls] == [
        _exact(messages) for messages in sent
    ]
    nonce = trace.journal.nonce
    assert nonce is not None
    requests = [entry for entry in trace.journal.entries if entry["kind"] == "request"]
    for entry, call in zip(requests, trace.calls, strict=True):
        profile = str(entry["profile"])
        fields = encode(dict(split(get(profile), call.request).key), TYPES)
        assert entry["key"] == request_key(nonce, profile, {"type": "model", "name": "m", "fields": fields})


def test_who_only_reads_gets_the_list_and_who_does_not_gets_copies() -> None:
    captures = Captures(TYPES)
    history: list[Any] = [{"role": "user", "content": "hello"}]
    _, grown = captures.capture({"messages": history}, "s")
    read = grown["messages"].lend(read_only=True)
    lent = grown["messages"].lend()
    assert read == lent == history
    assert read[0] is not history[0]
    assert lent[0] is not read[0]
    read.clear()
    lent[0]["content"] = "changed"
    history.append({"role": "user", "content": "more"})
    _, grown = captures.capture({"messages": history}, "s")
    assert grown["messages"].lend() == grown["messages"].lend(read_only=True) == history


def _lists(*requests: list[Any]) -> list[Any]:
    """The histories that one series of requests leaves."""
    captures = Captures(TYPES)
    return [captures.capture({"messages": request}, "s")[1]["messages"] for request in requests]


def test_what_is_done_to_a_lent_list_changes_nothing_at_any_depth() -> None:
    request = [{"a": [{"b": {"c": [1]}}], "d": {"e": [2]}}, [[3], {"f": [4]}]]
    (grown,) = _lists(request)
    lent = grown.lend()
    assert lent == request
    lent[0]["a"][0]["b"]["c"].append(0)
    lent[0]["d"]["e"].append(0)
    lent[1][0].append(0)
    lent[1][1]["f"].append(0)
    assert grown.items == request
    assert grown.lend() == request


def test_lists_of_one_line_share_what_is_lent_until_it_is_changed() -> None:
    first, second = _lists([{"a": [1]}], [{"a": [1]}, {"b": [2]}])
    lent = first.lend()
    longer = second.lend()
    assert longer[0] is lent[0]
    assert first.lend() == [{"a": [1]}]  # the shorter again, after the longer
    longer[1]["b"].append(0)
    assert first.lend()[0] is lent[0]  # what it does not hold is no concern of it
    lent[0]["a"].append(0)
    assert second.lend() == [{"a": [1]}, {"b": [2]}]


def test_a_lent_list_that_cannot_be_compared_is_copied_anew() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise RuntimeError("not this one")

        def __hash__(self) -> int:
            return 0

    (grown,) = _lists([{"a": 1}])
    grown.lend()[0]["a"] = Odd()
    assert grown.lend() == [{"a": 1}]


def test_a_longer_list_says_what_it_extends_until_that_is_settled() -> None:
    first, second = _lists([{"a": 1}], [{"a": 1}, {"b": 2}])
    assert (first.base, first.keep) == (None, 0)
    assert (second.base, second.keep) == (first, 1)
    second.settle()
    assert (second.base, second.keep) == (None, 1)


@pytest.mark.parametrize("name", ["$", "$ref", "$tuple"])
def test_a_field_that_looks_like_a_tag_is_no_history(name: str) -> None:
    fields = {name: [{"a": 1}]}
    assert Captures(TYPES).capture(fields, "s") == (encode(fields, TYPES), {})


def test_without_a_series_there_are_no_histories() -> None:
    assert Captures(TYPES).capture({"messages": [{"a": 1}]}, None) == ({"messages": [{"a": 1}]}, {})


class Colour(enum.Enum):
    RED = 1


class Level(str, enum.Enum):  # noqa: UP042 - this is the old way that much code has
    LOW = "low"


USERS = Types()
USERS.register(Level)
USERS.register(Colour)


def test_fields_beside_a_history_are_captured_as_encode_does() -> None:
    captures = Captures(USERS)
    history = [{"a": 1}]
    for others in (
        {"n": 1},
        {"colour": Colour.RED},
        {"pair": (1, 2), "none": None},
        {"empty": [], "deep": {"x": [1.5]}},
        {},
    ):
        for fields in ({**others, "messages": history}, {"messages": history, **others}):
            tree, grown = captures.capture(fields, "s")
            assert tree == encode(fields, USERS)
            assert list(tree) == list(fields)
            assert list(grown) == ["messages"]
            assert tree["messages"] is grown["messages"].items
    tree, grown = captures.capture({"x": 1, "one": [1], "two": [2], "tail": 3}, "s")
    assert (list(grown), tree) == (["one", "two"], {"x": 1, "one": [1], "two": [2], "tail": 3})


def test_what_no_field_may_hold_is_refused_with_its_path() -> None:
    captures = Captures(USERS)
    for fields, path in (
        ({"messages": [1], "x": {"y": object()}}, "x.y"),
        ({"messages": [object()], "x": 1}, "messages[0]"),
        ({"x": 1, "y": [2, len]}, "y[1]"),
    ):
        for series in ("s", None):
            with pytest.raises(ValueRefused) as caught:
                captures.capture(fields, series)
            assert caught.value.path == path


def test_names_that_json_does_not_have_make_no_histories() -> None:
    names: list[Any] = ["\ud800", "$list", 1]
    for name in names:
        for fields in ({name: [1], "m": [2]}, {"m": [2], name: 3}):
            assert Captures(USERS).capture(fields, "s") == (encode(fields, USERS), {})
            assert Captures(USERS).capture(fields, None) == (encode(fields, USERS), {})


def test_lists_with_values_of_their_own_types_are_no_histories() -> None:
    captures = Captures(USERS)
    for value in ([(1,)], [Colour.RED], [Level.LOW], [{"$a": 1}], [float("inf")], [{"deep": [b"x"]}]):
        fields = {"messages": [{"a": 1}, *value]}
        assert captures.capture(fields, "s") == (encode(fields, USERS), {})
    first, second = (captures.capture({"m": items}, "s")[1].get("m") for items in ([1, 2], [1, 2, 3]))
    assert first is not None
    assert second is not None
    assert captures.capture({"m": [1, 2, 3, (4,)]}, "s") == ({"m": [1, 2, 3, {"$tuple": [4]}]}, {})


def test_what_a_history_adds_comes_with_its_texts() -> None:
    first, second, same = _lists([{"a": 1}], [{"a": 1}, "x", [2.5]], [{"a": 1}, "x", [2.5]])
    assert first.texts == [b'{"a":1}']
    assert second.texts == [b'"x"', b"[2.5]"]
    assert same is second
    assert second.items == [{"a": 1}, "x", [2.5]]
    assert second.items[0] is first.items[0]


def test_histories_of_fields_and_series_are_told_apart() -> None:
    captures = Captures(USERS)

    def grown(series: str, field: str, items: list[Any]) -> Any:
        return captures.capture({field: items}, series)[1][field]

    first = grown("s", "m", [1])
    assert grown("s", "m", [1]) is first
    assert grown("t", "m", [1]) is not first
    assert grown("s", "n", [1]) is not first
    assert grown("s", "m", [1, 2]).base is first
    assert grown("t", "m", [1, 2]).base is not first
    assert grown("s", "m", [1]).base is None  # the longer one took its place


def test_a_reader_that_changed_what_it_was_lent_is_told() -> None:
    captures = Captures(USERS)
    first = captures.capture({"m": [{"a": [1]}]}, "s")[1]["m"]
    first.check()
    lent = first.lend()
    lent[0]["a"].append("mine")
    captures.check()  # it was given copies
    shared = first.lend(read_only=True)
    captures.check()
    shared[0]["a"].append("mine")
    for check in (first.check, captures.check):
        with pytest.raises(NotSupported, match="it only reads requests") as caught:
            check()
        assert caught.value.hint is not None
        assert "reads_only = True" in caught.value.hint
    longer = Captures(USERS)
    base = longer.capture({"m": [{"a": [1]}]}, "s")[1]["m"]
    base.lend(read_only=True)
    after = longer.capture({"m": [{"a": [1]}, 2]}, "s")[1]["m"]
    after.check()
    lent = after.lend(read_only=True)
    lent[0]["a"].append("mine")
    with pytest.raises(NotSupported):
        after.check()
