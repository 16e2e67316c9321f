"""A request that cannot be sent is a ``ModelError`` that names the part, whoever would be asked."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from agentloom.adapters.models import ModelBackend
from agentloom.errors import ModelError
from agentloom.testing import FakeProvider

HALF = "a\ud800b"
PROVIDERS: dict[str, dict[str, Any]] = {
    "openai": {"model": "gpt-4o", "api_key": "k"},
    "responses": {"model": "gpt-4o", "api_key": "k", "api": "responses"},
    "anthropic": {"model": "anthropic:claude-haiku-4-5", "api_key": "k", "max_tokens": 9},
    "google": {"model": "gemini:gemini-3-pro", "api_key": "k"},
    "bedrock": {"model": "bedrock:anthropic.claude-3-haiku-20240307-v1:0", "api_key": "k"},
    "mistral": {"model": "mistral:mistral-small-latest", "api_key": "k"},
    "groq": {"model": "groq:llama-3.1-8b-instant", "api_key": "k"},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": f'{{"x": "{HALF}"}}'}}
TOOL = {"type": "function", "function": {"name": "f", "description": HALF, "parameters": {"type": "object"}}}
PARTS: dict[str, dict[str, Any]] = {
    "messages[0].content": {"messages": [{"role": "user", "content": HALF}]},
    "messages[0].content[0].text": {
        "messages": [{"role": "user", "content": [{"type": "text", "text": HALF}]}]
    },
    "messages[1].tool_calls[0].function.arguments": {
        "messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "y"},
        ]
    },
    "messages[2].content": {
        "messages": [
            {"role": "user", "content": "x"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{**CALL, "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "c1", "content": HALF},
        ]
    },
    "tools[0].function.description": {"messages": [{"role": "user", "content": "x"}], "tools": [TOOL]},
    "temperature": {"messages": [{"role": "user", "content": "x"}], "temperature": math.nan},
}


def request(provider: str, fake: FakeProvider, **more: Any) -> dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": "x"}], **PROVIDERS[provider], **more}
    return {**asked, "base_url": fake.openai_url}


def refused(asked: dict[str, Any], *, stream: bool) -> ModelError:
    backend = ModelBackend()
    ask = (lambda: list(backend.stream_sync(asked))) if stream else (lambda: backend.complete_sync(asked))
    with pytest.raises(ModelError) as caught:
        ask()
    backend.close()
    return caught.value


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("where", PARTS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_part_is_named_and_nothing_is_sent(provider: str, where: str, stream: bool) -> None:
    with FakeProvider() as fake:
        error = refused(request(provider, fake, **PARTS[where]), stream=stream)
        assert fake.seen == []
    assert error.kind == "bad_request"
    assert not error.retryable
    assert f"cannot be sent: {where}: " in error.message
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize("provider", ["openai", "google"])
def test_awaited_as_well(provider: str) -> None:
    backend = ModelBackend()

    async def asks(asked: dict[str, Any]) -> None:
        with pytest.raises(ModelError, match=r"messages\[0\]\.content: character 2"):
            await backend.complete(asked)
        with pytest.raises(ModelError, match=r"messages\[0\]\.content: character 2"):
            async for _ in backend.stream(asked):
                pass

    with FakeProvider() as fake:
        asyncio.run(asks(request(provider, fake, messages=[{"role": "user", "content": HALF}])))
    backend.close()


@pytest.mark.parametrize("provider", ["anthropic", "google", "bedrock"])
def test_an_escape_that_becomes_half_a_pair_is_told_too(provider: str) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": "\\ud800"}'}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "y"},
    ]
    with FakeProvider() as fake:
        error = refused(request(provider, fake, messages=messages), stream=False)
    assert error.kind == "bad_request"
    assert "an escape that is half of a surrogate pair" in error.message


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google"])
def test_headers_hold_ascii_and_a_key_is_not_told(provider: str) -> None:
    with FakeProvider() as fake:
        error = refused(request(provider, fake, extra_headers={"x-who": "Zoë"}), stream=False)
        assert (error.kind, "extra_headers.x-who: a header holds ASCII only" in error.message) == (
            "bad_request",
            True,
        )
        error = refused(request(provider, fake, api_key="sk-secrët-123456"), stream=False)
    assert error.kind == "auth"
    assert "sk-secr" not in str(error) + repr(error.args) + repr(error.__context__)
