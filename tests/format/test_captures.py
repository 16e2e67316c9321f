"""Requests of a growing history: what is written and keyed is what was asked for, however the history was changed.

The fast path (``captures``, ``marks``, ``keys``, ``histories``) is held to the plain definitions: ``encode`` and
``request_key`` over the whole request. Seeds are in the test ids.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Mapping
from typing import Any

import pytest

import agentloom
from agentloom import agent, sync
from agentloom.format.captures import Captures
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
