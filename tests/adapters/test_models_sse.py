"""Events of a stream as values, and errors that come in a line of their own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from agentloom.adapters.models import ModelBackend
from agentloom.adapters.models_sse import Decoder, hear_errors
from agentloom.errors import ModelError
from agentloom.runtime.assembly import assemble
from agentloom.testing import FakeProvider, Raw

CHUNK = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]}
START = f"data: {json.dumps(CHUNK)}\n\n"
SAID = {"code": 500, "message": "the context was shifted away", "type": "server_error"}
FORMS = {
    "an object": f"error: {json.dumps(SAID)}\n\n",
    "an object without a space": f"error:{json.dumps(SAID)}\n\n",
    "under error": f"error: {json.dumps({'error': SAID})}\n\n",
    "text": "error: the context was shifted away\n\n",
    "without an empty line": f"error: {json.dumps(SAID)}\n",
    "after an event's name": f"event: error\nerror: {json.dumps(SAID)}\n\n",
}
MODELS: dict[str, dict[str, Any]] = {
    "openai": {"model": "gpt-4o"},
    "responses": {"model": "gpt-4o", "api": "responses"},
    "anthropic": {"model": "anthropic:claude-haiku-4-5", "max_tokens": 9},
}


Ask = Callable[[], object]


def failure(said: str, model: str, *, awaited: bool = False) -> ModelError:
    backend = ModelBackend()

    async def reads(request: dict[str, Any]) -> None:
        async for _ in backend.stream(request):
            pass

    with FakeProvider([Raw(said.encode(), 200, {"content-type": "text/event-stream"})]) as fake:
        url = fake.url if model == "anthropic" else fake.openai_url
        request = {
            **MODELS[model],
            "messages": [{"role": "user", "content": "x"}],
            "api_key": "k",
            "base_url": url,
        }
        ask: Ask = (
            (lambda: asyncio.run(reads(request))) if awaited else (lambda: list(backend.stream_sync(request)))
        )
        with pytest.raises(ModelError) as caught:
            ask()
    backend.close()
    return caught.value


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("awaited", [False, True])
def test_what_the_server_said_is_told(form: str, awaited: bool) -> None:
    error = failure(START + FORMS[form], "openai", awaited=awaited)
    assert "the context was shifted away" in error.message
    assert error.kind == "server"
    assert error.status == (None if form == "text" else 500)


@pytest.mark.parametrize("model", MODELS)
def test_by_every_protocol(model: str) -> None:
    error = failure(FORMS["an object"], model)
    assert "the context was shifted away" in error.message
    assert error.kind == "server"


def test_a_stream_that_says_nothing_is_still_cut_off() -> None:
    assert failure(START, "openai").kind == "connection"


@pytest.mark.parametrize("awaited", [False, True])
def test_done_ends_an_answer_that_does_not_say_why_it_ended(awaited: bool) -> None:
    backend = ModelBackend()

    async def reads(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [delta async for delta in backend.stream(request)]

    body = START + "data: [DONE]\n\n"
    with FakeProvider([Raw(body.encode(), 200, {"content-type": "text/event-stream"})]) as fake:
        request = {**MODELS["openai"], "messages": [{"role": "user", "content": "x"}], "api_key": "k"}
        request["base_url"] = fake.openai_url
        deltas = asyncio.run(reads(request)) if awaited else list(backend.stream_sync(request))
    backend.close()
    answer = assemble(deltas)
    assert (answer["content"], answer["finish_reason"]) == ("Hel", None)


def test_the_same_without_an_sdk() -> None:
    decoder = Decoder()
    assert list(decoder.feed(FORMS["an object"].encode())) == [{"error": SAID}]
    assert list(decoder.feed(FORMS["text"].encode())) == [
        {"error": {"message": "the context was shifted away"}}
    ]
    assert list(decoder.feed(b": a comment\n\ndata: [1]\n\n")) == [[1]]


def test_a_client_that_decodes_in_another_way_is_left_alone() -> None:
    client = object()
    hear_errors(client)
    assert vars(type(client)) == vars(object)
