"""Other providers through any-llm, against a scripted server (its providers of OpenAI's protocol take a base URL)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from agentloom.adapters.models import backend
from agentloom.adapters.models_route import find_route
from agentloom.errors import ModelError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble, empty_answer
from agentloom.testing import Drops, Fails, FakeProvider, Reply, Says, Wants

pytest.importorskip("any_llm", reason="any-llm (extra providers) is not installed")

REQUEST: dict[str, Any] = {
    "model": "nebius:some-model",
    "messages": [{"role": "user", "content": "What does 812 cost?"}],
    "temperature": 0,
    "tools": [
        {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    ],
}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("NEBIUS_API_KEY", "a-nebius-key")


@contextmanager
def _serve(monkeypatch: pytest.MonkeyPatch, reply: Reply) -> Iterator[FakeProvider]:
    with FakeProvider(lambda _: reply) as fake:
        monkeypatch.setenv("NEBIUS_API_BASE", fake.openai_url)
        yield fake


async def _awaited(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [await backend.complete(request), assemble([delta async for delta in backend.stream(request)])]


def test_the_name_of_a_provider_routes_there() -> None:
    route = find_route(REQUEST)
    assert (route.api, route.provider, route.model) == ("any-llm", "nebius", "some-model")


def test_answers_have_the_shared_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    reply = Says("It costs $40.", tools=[Wants("look", {"id": 812})], reasoning="hm", usage=(12, 4, 6, 2))
    with _serve(monkeypatch, reply) as fake:
        made = [
            backend.complete_sync(REQUEST),
            assemble(backend.stream_sync(REQUEST)),
            *asyncio.run(_awaited(REQUEST)),
        ]
        bodies = [seen.body for seen in fake.seen]
        assert fake.seen[0].headers["authorization"] == "Bearer a-nebius-key"
    for answer in made:
        assert list(answer) == list(empty_answer())
        typed = Answer(answer)
        assert (typed.text, typed.finish_reason, typed.reasoning) == ("It costs $40.", "tool_calls", "hm")
        assert typed.tool_calls[0].arguments == {"id": 812}
        usage = typed.usage
        assert usage is not None
        assert (usage.input, usage.cached, usage.output, usage.reasoning) == (12, 4, 6, 2)
        assert answer["system_fingerprint"] == "fp_fake"
    assert all(body["model"] == "some-model" and body["temperature"] == 0 for body in bodies)
    assert bodies[0]["messages"] == REQUEST["messages"]


@pytest.mark.parametrize(
    ("reply", "kind", "status"),
    [
        (Fails(429, "slow down", retry_after=2), "rate_limit", 429),
        (Fails(401, "who are you"), "auth", 401),
        (Fails(400, "too long", code="context_length_exceeded"), "context_length", 400),
        (Fails(500, "oops"), "server", 500),
        (Drops(), "connection", None),
    ],
)
def test_failures(reply: Reply, kind: str, status: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with _serve(monkeypatch, reply) as fake:
        with pytest.raises(ModelError) as first:
            backend.complete_sync(REQUEST)
        with pytest.raises(ModelError) as second:
            asyncio.run(backend.complete(REQUEST))
        assert fake.count == 2, "a hidden retry"
    for caught in (first, second):
        assert (caught.value.kind, caught.value.status, caught.value.provider) == (kind, status, "nebius")
        assert caught.value.__context__ is None


def test_a_missing_key_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEBIUS_API_KEY")
    with pytest.raises(ModelError, match="NEBIUS_API_KEY") as caught:
        backend.complete_sync(REQUEST)
    assert caught.value.kind == "auth"


def test_a_parameter_that_any_llm_does_not_know_is_said_not_dropped() -> None:
    with pytest.raises((ModelError, TypeError), match="brand_new"):
        backend.complete_sync({**REQUEST, "brand_new": 1})


def test_it_is_imported_only_when_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "any_llm"]:
        monkeypatch.delitem(sys.modules, name)
    find_route({"model": "x", "base_url": "http://127.0.0.1:1/v1"})
    assert "any_llm" not in sys.modules
