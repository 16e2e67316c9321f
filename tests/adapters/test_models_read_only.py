"""The backend says that it only reads requests (``reads_only``): held to it on both SDKs."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import pytest

from agentloom.adapters.models import backend
from agentloom.testing import FakeProvider, Says, Wants

HISTORY: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "What do 812 and 813 cost?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{n}",
                "type": "function",
                "function": {"name": "look", "arguments": f'{{"id": {n}}}'},
            }
            for n in (812, 813)
        ],
    },
    {"role": "tool", "tool_call_id": "call_812", "content": "40"},
    {"role": "tool", "tool_call_id": "call_813", "content": [{"type": "text", "text": "41"}]},
    {"role": "assistant", "content": "40 and 41.", "blocks": [{"type": "text", "text": "40 and 41."}]},
    {"role": "user", "content": "And 814?"},
]
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_request_is_the_same_after_it_was_performed(api: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert backend.reads_only
    monkeypatch.setenv(f"{api.upper()}_API_KEY", "k")
    reply = Says("It costs $42.", tools=[Wants("look", {"id": 814})])
    with FakeProvider(lambda _: reply) as fake:
        url = fake.openai_url if api == "openai" else fake.anthropic_url
        request: dict[str, Any] = {
            "model": f"{api}:some-model", "messages": HISTORY, "tools": TOOLS, "base_url": url, "stop": ["x"],
            "tool_choice": {"type": "function", "function": {"name": "look"}}, "extra_headers": {"a": "b"},
            "extra_body": {"metadata": {"user_id": "u"}}, "temperature": 0.5,
        }  # fmt: skip
        before = copy.deepcopy(request)

        async def awaited() -> None:
            await backend.complete(request)
            _ = [delta async for delta in backend.stream(request)]

        backend.complete_sync(request)
        _ = list(backend.stream_sync(request))
        asyncio.run(awaited())
        assert fake.count == 4
    backend.close()
    assert request == before
