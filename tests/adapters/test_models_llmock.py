"""The backend on llmock, an independent server of both protocols, without a key.

By hand: ``llmock serve --port 8000``, then ``OPENAI_BASE_URL=http://127.0.0.1:8000/v1`` and
``ANTHROPIC_BASE_URL=http://127.0.0.1:8000/anthropic``.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentloom.adapters.models import backend
from agentloom.errors import ModelError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble

testing: Any = pytest.importorskip("llmock.testing", reason="llmock (extra dev) is not installed")
simulation: Any = pytest.importorskip("llmock.simulation")
scenarios: Any = pytest.importorskip("llmock.scenarios")

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What does 812 cost?"}]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
        },
    }
]


@pytest.fixture(scope="module")
def server() -> Any:
    with testing.LLMockServer(responses=simulation.MockResponseSettings()) as running:
        yield running
    backend.close()


@pytest.fixture(autouse=True)
def _environment(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_BASE_URL", server.base_url("openai"))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url("anthropic"))


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_an_answer_without_a_key(model: str) -> None:
    request = {"model": model, "messages": MESSAGES, "temperature": 0}

    async def awaited() -> list[dict[str, Any]]:
        return [await backend.complete(request), assemble([delta async for delta in backend.stream(request)])]

    made = [backend.complete_sync(request), assemble(backend.stream_sync(request)), *asyncio.run(awaited())]
    for answer in map(Answer, made):
        assert answer.text
        assert answer.finish_reason == "stop"
        assert answer.model == model
        assert answer.usage is not None
        assert answer.usage.output
    assert len({tuple(answer) for answer in made}) == 1


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
def test_a_tool_call_and_its_result(model: str) -> None:
    request: dict[str, Any] = {
        "model": model,
        "messages": MESSAGES,
        "tools": TOOLS,
        "tool_choice": {"type": "function", "function": {"name": "look"}},
    }
    for answer in (Answer(backend.complete_sync(request)), Answer(assemble(backend.stream_sync(request)))):
        assert answer.finish_reason == "tool_calls"
        call = answer.tool_calls[0]
        assert (call.name, list(call.arguments)) == ("look", ["id"])
        again = {"model": model, "messages": [*MESSAGES, answer.message, call.result("40")]}
        assert Answer(backend.complete_sync(again)).text


@pytest.mark.parametrize("model", ["gpt-4o", "claude-haiku-4-5"])
@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit"), (500, "server"), (503, "overload")])
def test_its_failures(server: Any, model: str, status: int, kind: str) -> None:
    server.state.scenarios.add(scenarios.Fail(status))
    with pytest.raises(ModelError) as caught:
        backend.complete_sync({"model": model, "messages": MESSAGES})
    assert (caught.value.kind, caught.value.status) == (kind, status)
