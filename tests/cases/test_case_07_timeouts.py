"""Case 7: a timeout cancels the second of three tools midway; replay cancels at the same point without waiting."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import agentloom
from agentloom import agent, tool
from agentloom.store import MemoryStore
from agentloom.testing import FakeProvider, Says, Seen, Wants

_finished: list[str] = []
_cleaned: list[str] = []


@tool(effect="read")
async def quick(n: int) -> str:
    return f"quick {n}"


@tool(effect="read")
async def slow(n: int) -> str:
    try:
        await asyncio.sleep(30)
        _finished.append("slow")
    finally:
        _cleaned.append("slow")
    return "never"


TOOLS: Any = {"quick": quick, "slow": slow}
N = {"type": "object", "properties": {"n": {"type": "integer"}}}
SCHEMAS = [{"type": "function", "function": {"name": name, "parameters": N}} for name in TOOLS]


@agent
async def support(url: str, twice: bool = False) -> Any:
    messages: list[Any] = [{"role": "user", "content": "go"}]
    while True:
        answer = await agentloom.model("openai:m", messages, tools=SCHEMAS, base_url=url)
        if not answer.tool_calls:
            return [answer.text, messages]
        messages.append(answer.message)
        for call in answer.tool_calls:
            task = asyncio.ensure_future(TOOLS[call.name](**call.arguments))
            try:
                result = await asyncio.wait_for(task, 0.05)
            except TimeoutError:
                result = "timed out"
                if twice:
                    task.cancel()
                    task.cancel()
            messages.append(call.result(result))


def _script(seen: Seen) -> Says:
    messages = seen.body["messages"]
    if len(messages) == 1:
        return Says(tools=[Wants("quick", {"n": 1}), Wants("slow", {"n": 2}), Wants("quick", {"n": 3})])
    asked = [call["id"] for call in messages[1]["tool_calls"]]
    given = [message["tool_call_id"] for message in messages[2:]]
    assert asked == given  # a provider refuses a history where a call has no result
    return Says(" / ".join(str(message["content"]) for message in messages[2:]))


@pytest.mark.parametrize("twice", [False, True])
def test_a_timeout_cancels_the_second_of_three_tools(monkeypatch: pytest.MonkeyPatch, twice: bool) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")
    _finished.clear()
    _cleaned.clear()
    with FakeProvider(_script) as provider:
        trace = support.run(provider.openai_url, twice, store=MemoryStore())
        assert provider.count == 2
    assert trace.output[0] == "quick 1 / timed out / quick 3"
    tools = [(call.name, call.status) for call in trace.calls if call.kind == "tool"]
    assert tools == [("quick", "ok"), ("slow", "cancelled"), ("quick", "ok")]
    assert _cleaned == ["slow"]
    began = time.perf_counter()
    report = trace.replay(check=False)
    assert report.verdict == "identical", str(report)
    assert time.perf_counter() - began < 20
    assert _finished == []
    assert _cleaned == ["slow"]


@agent
async def group() -> Any:
    """All three at once: the time is up while the second works, and the others are cancelled with it."""
    try:
        async with asyncio.timeout(0.05), asyncio.TaskGroup() as tasks:
            made = [tasks.create_task(one(n)) for n, one in enumerate((quick, slow, slow))]
    except TimeoutError:
        return [task.cancelled() for task in made] + [made[0].result()]
    return None


def test_a_group_that_runs_out_of_time() -> None:
    trace = group.run(store=MemoryStore())
    assert trace.output == [False, True, True, "quick 0"]
    assert [call.status for call in trace.calls] == ["ok", "cancelled", "cancelled"]
    assert trace.replay().verdict == "identical"
    again = trace.replay()
    assert again.verdict == "identical"


@agent
async def patient(limit: float) -> str:
    try:
        return await asyncio.wait_for(slow(1), limit)
    except TimeoutError:
        return "timed out"


def test_a_replay_that_no_longer_cancels_is_a_divergence() -> None:
    trace = patient.run(0.05, store=MemoryStore())
    assert trace.output == "timed out"

    @agent(name="patient")
    async def waits(limit: float) -> str:
        return await slow(1)

    report = trace.replay(check=False, agent=waits)
    assert report.verdict == "diverged"
    assert report.finding is not None
    assert report.finding.cls in ("changed", "missing")
