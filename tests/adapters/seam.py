"""Records a function against a scripted provider, then replays it with the provider stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agentloom.adapters import sdks
from agentloom.format.journal import Journal
from agentloom.replay.recording import RecordedCall, Recording
from agentloom.replay.replayer import replay
from agentloom.replay.report import Report
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.recorder import RunOptions, begin, record_async, record_blocking
from agentloom.store import MemoryStore
from agentloom.testing.fake_provider import FakeProvider


@dataclass
class Taped:
    """Both runs of a function: what it returned each time, the trace, the report, and what the server saw."""

    live: Any
    again: Any
    data: bytes
    report: Report
    recording: Recording
    seen: int

    @property
    def calls(self) -> list[RecordedCall]:
        return self.recording.calls

    def types(self) -> list[str]:
        return [call.type for call in self.calls]

    def statuses(self) -> list[str | None]:
        return [call.status for call in self.calls]


def tape(
    function: Callable[[str], Any], script: list[Any], *, edited: Callable[[str], Any] | None = None
) -> Taped:
    """``function`` gets the provider's base URL. ``edited`` is replayed in its place, when given."""
    sdks.watch()
    store = MemoryStore()
    with FakeProvider(script) as provider:
        url = provider.openai_url
        agent = AgentFunction.of(function)
        data = _record(agent, url, store)
        seen = provider.count
    results: list[Any] = []
    chosen = AgentFunction.of(_kept(edited or function, results))
    journal = Journal.parse(data)
    report = replay(journal, chosen, refuse=False)
    recording = Recording.from_journal(journal)
    output = recording.output()
    return Taped(output, results[-1] if results else None, data, report, recording, seen)


def _record(agent: AgentFunction, url: str, store: MemoryStore) -> bytes:
    async def live() -> str:
        loop = asyncio.get_running_loop()
        recording = begin(agent, (url,), {}, store=store, options=RunOptions(), outer=loop)
        await record_async(recording, agent)
        return recording.run_id

    if agent.is_async:
        return store.read(asyncio.run(live()))
    recording = begin(agent, (url,), {}, store=store, options=RunOptions(), outer=None)
    record_blocking(recording, agent)
    return store.read(recording.run_id)


def _kept(function: Callable[[str], Any], results: list[Any]) -> Callable[[str], Any]:
    """``function`` that also leaves what it returned in ``results`` (the report says only whether it was equal)."""
    if asyncio.iscoroutinefunction(function):

        async def awaited(url: str) -> Any:
            results.append(await function(url))
            return results[-1]

        awaited.__name__ = function.__name__
        return awaited

    def called(url: str) -> Any:
        results.append(function(url))
        return results[-1]

    called.__name__ = function.__name__
    return called
