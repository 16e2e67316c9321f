"""A backend that says that it only reads requests and changes them all the same is found out, and no key is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest

import agentloom
from agentloom import agent, profile, sync
from agentloom.errors import NotSupported
from agentloom.format.digests import request_key
from agentloom.format.values import encode
from agentloom.store import MemoryStore


class Meddler:
    reads_only = True

    def __init__(self, change: Callable[[list[Any]], None]) -> None:
        self.change = change

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        self.change(request["messages"])
        return {"content": "ok"}

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.complete_sync(request)

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError


def marks_the_last(messages: list[Any]) -> None:
    messages[-1]["cache_control"] = {"type": "ephemeral"}


def talk(turns: int, **more: Any) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief. " * 30}]
    for turn in range(turns):
        messages.append({"role": "user", "content": f"question {turn}"})
        options = {name: value(turn) for name, value in more.items()}
        messages.append({"role": "assistant", "content": str(sync.model("m", messages, **options))})
    return messages


@pytest.fixture
def meddled() -> Iterator[Callable[[Callable[[list[Any]], None]], None]]:
    before = agentloom.set_backend(None)

    def chosen(change: Callable[[list[Any]], None]) -> None:
        agentloom.set_backend(Meddler(change))

    yield chosen
    agentloom.set_backend(before)


def test_it_is_said_at_the_end_and_the_trace_holds_what_the_agent_asked(meddled: Any) -> None:
    meddled(marks_the_last)

    @agent
    def talks() -> None:
        talk(4)

    with pytest.warns(RuntimeWarning, match=r"others were sent: whoever .* only reads requests"):
        trace = talks.run(store=MemoryStore())
    assert b"cache_control" not in trace._data.partition(b'"kind":"request"')[2]
    assert trace.replay().verdict == "identical"


def test_a_key_is_never_made_of_what_was_changed(meddled: Any) -> None:
    meddled(marks_the_last)

    @agent
    def talks() -> None:
        talk(4, max_tokens=lambda turn: 100 + turn)  # sorts before the messages: their text is hashed again

    store = MemoryStore()
    with pytest.warns(RuntimeWarning), pytest.raises(NotSupported, match="take reads_only = True away"):
        talks.run(store=store)
    trace = agentloom.Trace.open(store=store)
    nonce = trace.journal.nonce
    assert nonce is not None
    for entry in (one for one in trace.journal.entries if one["kind"] == "request"):
        fields = encode(trace.journal.tree(str(entry["req"])))
        wanted = {"type": "model", "name": "m", "fields": fields}
        assert entry["key"] == request_key(nonce, "agentloom.model/1", wanted)


def test_nor_under_a_changed_profile(meddled: Any) -> None:
    meddled(marks_the_last)

    @agent(profiles=[profile("agentloom.model/1", noted=["messages[].name"])])
    def talks() -> None:
        talk(4)

    with pytest.warns(RuntimeWarning), pytest.raises(NotSupported):
        talks.run(store=MemoryStore())


def test_changing_the_list_alone_is_allowed(meddled: Any) -> None:
    meddled(lambda messages: messages.clear())

    @agent
    def talks() -> None:
        talk(4, max_tokens=lambda turn: 100 + turn)

    assert talks.run(store=MemoryStore()).replay().verdict == "identical"
