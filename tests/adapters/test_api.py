"""Which exchanges are which calls, and what they tell of tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom.adapters import api_anthropic, api_google, api_openai
from agentloom.adapters.exchanges import Classified, Exchange, exchange_of
from agentloom.runtime import profiles


def asked(path: str, body: Any = None, method: str = "POST") -> Exchange:
    data = b"" if body is None else json.dumps(body).encode()
    return exchange_of(method, f"https://h{path}", path.partition("?")[0], "application/json", None, data)


def claimed(exchange: Exchange) -> Classified | None:
    found = (api.classify(exchange) for api in (api_anthropic, api_google, api_openai))
    return next((one for one in found if one is not None), None)


M: dict[str, Any] = {"model": "m", "messages": []}


@pytest.mark.parametrize(
    ("path", "body", "kind", "name", "profile", "stream"),
    [
        ("/v1/chat/completions", M, "model", "m", "openai.chat/1", False),
        ("/v1/chat/completions", M | {"stream": True}, "model", "m", "openai.chat/1", True),
        ("/openai/deployments/d/chat/completions?api-version=1", M, "model", "m", "openai.chat/1", False),
        ("/v1/responses", {"model": "m", "input": "x"}, "model", "m", "openai.responses/1", False),
        ("/v1/completions", {"model": "m", "prompt": "x"}, "model", "m", "openai.completions/1", False),
        ("/v1/embeddings", {"model": "m", "input": "x"}, "model", "m", "openai.embeddings/1", False),
        (
            "/v1/images/generations",
            {"prompt": "x"},
            "http",
            "openai POST images.generations",
            "http/1",
            False,
        ),
        ("/v1/messages", M, "model", "m", "anthropic.messages/1", False),
        ("/v1/messages/count_tokens", M, "http", "anthropic POST count_tokens", "http/1", False),
        (
            "/model/a.b%3A0/invoke",
            {"anthropic_version": "v", "messages": []},
            "model",
            "a.b:0",
            "anthropic.messages/1",
            False,
        ),
        (
            "/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict",
            {"anthropic_version": "v", "messages": []},
            "model",
            "c",
            "anthropic.messages/1",
            True,
        ),
        ("/v1beta/models/g:generateContent", {"contents": []}, "model", "g", "google.generate/1", False),
        ("/v1/x/models/g:streamGenerateContent", {"contents": []}, "model", "g", "google.generate/1", True),
        ("/v1beta/models/g:countTokens", {"contents": []}, "http", "google countTokens", "http/1", False),
        ("/v1beta/models/e:batchEmbedContents", {"requests": []}, "model", "e", "google.embed/1", False),
    ],
)
def test_an_exchange_is_the_call_of_its_api(
    path: str, body: Any, kind: str, name: str, profile: str, stream: bool
) -> None:
    found = claimed(asked(path, body))
    assert found is not None
    spec = found.spec
    assert (spec.type, spec.name, spec.profile, spec.stream) == (kind, name, profile, stream)
    known = profiles.split(profiles.get(spec.profile), spec.request)
    assert known.unknown == []


@pytest.mark.parametrize(
    ("path", "body", "method"),
    [
        ("/orders", {"model": "m"}, "POST"),
        ("/v1/messages", {"text": "hi"}, "POST"),
        ("/v1/threads", None, "PUT"),
        ("/v1beta/models/g:generateContent", None, "GET"),
    ],
)
def test_anything_else_is_nobodys(path: str, body: Any, method: str) -> None:
    found = claimed(asked(path, body, method))
    assert found is None or found.spec.type == "http"


def test_responses_are_fetched_by_http_and_their_ids_are_no_part_of_the_name() -> None:
    found = claimed(asked("/v1/responses/resp_abcdefgh1234", None, "GET"))
    assert found is not None
    assert (found.spec.type, found.spec.name) == ("http", "openai GET responses")


def usage(path: str, body: Any, *answers: Any) -> Any:
    found = claimed(asked(path, body))
    assert found is not None
    assert found.usage is not None
    return [found.usage(answer) for answer in answers]


def test_token_counts_of_every_api_by_class() -> None:
    chat = {
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
    }
    assert usage("/v1/chat/completions", M, chat, {"choices": []}, None) == [
        {"input": 9, "cached": 3, "output": 4},
        {},
        {},
    ]
    ended = {"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 2}}}
    assert usage("/v1/responses", {"model": "m"}, ended, {"type": "x"}) == [{"input": 5, "output": 2}, {}]
    start = {
        "type": "message_start",
        "message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1}},
    }
    last = {"type": "message_delta", "usage": {"output_tokens": 20}}
    assert usage("/v1/messages", M, start, {"type": "ping"}, last) == [
        {"input": 10, "cached": 3, "output": 1},
        None,
        {"input": 10, "cached": 3, "output": 20},
    ]
    google = {"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2, "thoughtsTokenCount": 1}}
    assert usage("/v1beta/models/g:generateContent", {}, google, [1]) == [
        {"input": 4, "output": 3, "reasoning": 1},
        None,
    ]
