"""The memory behind the host function."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentloom import agent, sync
from agentloom.runtime.memory import DictMemory, memory_backend, use_memory
from agentloom.store import MemoryStore


@pytest.fixture(autouse=True)
def backend() -> Iterator[DictMemory]:
    mine = DictMemory()
    before = use_memory(mine)
    yield mine
    assert use_memory(before) is mine


def test_search_ranks_by_shared_words(backend: DictMemory) -> None:
    backend.put("a", "the moon")
    backend.put("b", "the moon and the tides of the moon")
    backend.put("c", "nothing")
    assert [item["key"] for item in backend.search("Moon", 5)] == ["b", "a"]
    assert len(backend.search("the", 1)) == 1
    assert memory_backend() is backend


@agent
def remembering(word: str) -> tuple[object, list[dict[str, object]]]:
    before = sync.memory.get("word")
    sync.memory.put("word", word)
    return before, sync.memory.search(word)


def test_operations_are_recorded_and_a_replay_writes_nothing(backend: DictMemory) -> None:
    trace = remembering.run("tide", store=MemoryStore())
    assert trace.output == (None, [{"key": "word", "value": "tide", "score": 1}])
    assert [(call.name, call.effect) for call in trace.calls] == [
        ("get", "read"),
        ("put", "write"),
        ("search", "read"),
    ]
    backend.put("word", "something else")
    assert trace.replay().verdict == "identical"
    assert backend.get("word") == "something else"
