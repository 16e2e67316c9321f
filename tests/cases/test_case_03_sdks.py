"""Case 3 through the SDKs: exhausted, missing and changed are three words, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentloom import agent
from agentloom.adapters import sdks
from agentloom.replay.report import Report
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says
from tests.cases.three import aclaude, aclient, claude, client

Ask = Callable[[str, str, bool], None]


def _history(text: str) -> list[Any]:
    return [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "yes?"},
        {"role": "user", "content": [{"type": "text", "text": text}]},
    ]


def openai_sync(url: str, text: str, stream: bool) -> None:
    with client(url + "/v1") as made:
        answer: Any = made.chat.completions.create(model="m", messages=_history(text), stream=stream)
        assert not stream or list(answer)


def anthropic_sync(url: str, text: str, stream: bool) -> None:
    with claude(url) as made:
        answer: Any = made.messages.create(model="m", max_tokens=9, messages=_history(text), stream=stream)
        assert not stream or list(answer)


async def openai_async(url: str, text: str, stream: bool) -> None:
    async with aclient(url + "/v1") as made:
        answer: Any = await made.chat.completions.create(model="m", messages=_history(text), stream=stream)
        assert not stream or [one async for one in answer]


async def anthropic_async(url: str, text: str, stream: bool) -> None:
    async with aclaude(url) as made:
        asked: Any = {"model": "m", "max_tokens": 9, "messages": _history(text), "stream": stream}
        answer: Any = await made.messages.create(**asked)
        assert not stream or [one async for one in answer]


def replayed(ask: Any, stream: bool, recorded: list[str], now: list[str]) -> Report:
    """Record a program that asks ``recorded``, and replay one that asks ``now``."""
    sdks.watch()
    plan = list(recorded)

    program: Any
    if asyncio.iscoroutinefunction(ask):

        async def asks_async(url: str) -> None:
            for text in plan:
                await ask(url, text, stream)

        program = agent(name="asks")(asks_async)
    else:

        def asks(url: str) -> None:
            for text in plan:
                ask(url, text, stream)

        program = agent(name="asks")(asks)
    with FakeProvider(lambda _: Says("well")) as provider:
        trace = program.run(provider.url, store=MemoryStore())
    assert trace.replay(check=False).verdict == "identical"
    plan[:] = now
    report: Report = trace.replay(check=False)
    return report


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ask", [openai_sync, openai_async, anthropic_sync, anthropic_async])
def test_three_words(ask: Any, stream: bool) -> None:
    exhausted = replayed(ask, stream, ["a", "b"], ["a", "a", "b"])
    assert exhausted.finding is not None
    assert (exhausted.finding.cls, exhausted.finding.reason) == ("extra", "exhausted")
    assert "recorded once, asked a second time at call 2" in str(exhausted)

    missing = replayed(ask, stream, ["a", "b", "c"], ["a", "c"])
    assert missing.finding is not None
    assert (missing.finding.cls, missing.finding.reason) == ("missing", "skipped")

    changed = replayed(ask, stream, ["a", "Refund it when paid."], ["a", "Refund it within 30 days."])
    assert changed.finding is not None
    assert changed.finding.comparison is not None
    (item,) = changed.finding.comparison.items
    assert item.path == "messages[2].content[0].text"
    assert (item.recorded, item.now) == ("Refund it when paid.", "Refund it within 30 days.")
