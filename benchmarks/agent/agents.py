"""Workload W as agents: the same loop, once sync and once async."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import agentloom
from agentloom import agent, sync, tool
from benchmarks.agent import workload


class Backend:
    """Answers model calls with workload W's model. It only reads, as the backend that performs real calls does."""

    reads_only = True

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        message = workload.model(request["messages"])
        return {"content": message["content"], "tool_calls": message["tool_calls"]}

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.complete_sync(request)

    def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        raise NotImplementedError

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        raise NotImplementedError


lookup = tool(effect="read", name="lookup")(workload.tool)


@tool(effect="read", name="lookup")
async def lookup_async(q: str, n: int) -> dict[str, Any]:
    return workload.tool(q, n)


@agent
def sync_agent(turns: int) -> int:
    """Workload W as a sync agent."""
    return len(workload.loop(lambda messages: sync.model("m", messages).message, lookup, turns))


@agent
async def async_agent(turns: int) -> int:
    """Workload W as an async agent."""
    messages = workload.start()
    for _ in range(turns):
        answer = (await agentloom.model("m", messages)).message
        messages.append(answer)
        call = answer["tool_calls"][0]
        arguments = json.loads(call["function"]["arguments"])
        result = await lookup_async(arguments["q"], arguments["n"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result)})
    return len(messages)
