"""What somebody sees of an error: the lines of their own code."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import pytest

import agentloom
import agentloom.sync
from agentloom import Workflow
from agentloom.api.tracebacks import user_frames
from agentloom.errors import ModelError
from agentloom.store import MemoryStore

PACKAGE = str(Path(agentloom.__file__).parent)


@agentloom.agent
async def asks() -> str:
    """Has no key."""
    return (await agentloom.model("gpt-4o", "Hello!")).text


@agentloom.agent
def asks_sync() -> str:
    """The same, not awaited."""
    return agentloom.sync.model("gpt-4o", "Hello!").text


async def streamed(graph: Workflow) -> None:
    async for _ in graph.stream("in", store=MemoryStore()):
        pass


def graph() -> Workflow:
    inner = Workflow("inner").step("ask", model="gpt-4o")
    return Workflow("w").step("in_", workflow=inner)


STARTS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "async": (lambda: asks.run(store=MemoryStore()), ["asks"]),
    "awaited": (lambda: asyncio.run(asks.arun(store=MemoryStore())), ["asks"]),
    "sync": (lambda: asks_sync.run(store=MemoryStore()), ["asks_sync"]),
    "workflow": (lambda: graph().run("in", store=MemoryStore()), []),
    "workflow, awaited": (lambda: asyncio.run(graph().arun("in", store=MemoryStore())), []),
    "stream": (lambda: asyncio.run(streamed(graph())), ["streamed"]),
    "stream_sync": (lambda: list(graph().stream_sync("in", store=MemoryStore())), []),
}


def names(trace: TracebackType | None) -> list[str]:
    """The functions of this file and of agentloom in a traceback."""
    return [
        frame.name if frame.filename == __file__ else f"agentloom {frame.name}"
        for frame in traceback.extract_tb(trace)
        if frame.filename == __file__ or frame.filename.startswith(PACKAGE)
    ]


@pytest.mark.parametrize("kind", STARTS)
def test_a_missing_key_shows_the_users_lines_alone(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    start, own = STARTS[kind]
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set") as caught:
        start()
    found = names(caught.value.__traceback__)
    assert [name for name in found if not name.startswith(("agentloom", "<lambda>", "test_"))] == own
    assert len(found) <= 4, found  # in a stream there is one more


def test_all_frames_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("AGENTLOOM_TRACEBACK", "full")
    with pytest.raises(ModelError) as caught:
        asks.run(store=MemoryStore())
    assert "agentloom call_async" in names(caught.value.__traceback__)


def test_an_error_of_the_users_own_keeps_its_lines() -> None:
    def helper() -> None:
        raise KeyError("mine")

    @agentloom.agent
    async def fails() -> None:
        helper()

    with pytest.raises(KeyError) as caught:
        fails.run(store=MemoryStore())
    assert names(caught.value.__traceback__)[-2:] == ["fails", "helper"]
    assert "agentloom _awaited" not in names(caught.value.__traceback__)


def test_where_agentloom_itself_fails_its_frames_stay_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(length: int) -> bytes:
        raise AttributeError("a bug", length)

    monkeypatch.setattr("agentloom.runtime.recorder.os.urandom", broken)
    with pytest.raises(AttributeError) as caught:
        asks_sync.run(store=MemoryStore())
    assert names(caught.value.__traceback__)[-1] == "broken"
    assert user_frames(AttributeError("never raised")) is None


def test_frames_of_agentloom_at_the_end_of_an_error_that_it_did_not_mean() -> None:
    with pytest.raises(AttributeError) as caught:
        agentloom.Trace.of_run("run", None, None)  # type: ignore[arg-type]
    assert names(user_frames(caught.value))[-1] == "agentloom of_run"
    meant = agentloom.LoomError("on purpose").with_traceback(caught.value.__traceback__)
    assert names(user_frames(meant))[-1].startswith("test_")
