"""Odd forms of requests and answers: refused in words, or read, by every protocol alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom import agent, model
from agentloom.errors import ModelError
from agentloom.store import MemoryStore
from agentloom.testing import Exchange, Player

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
PROTOCOLS: dict[str, dict[str, Any]] = {
    "gemini:m": {},
    "anthropic:m": {"max_tokens": 3},
    "openai:m": {"api": "responses"},
    "bedrock:m": {},
    "bedrock:anthropic.m": {"api": "invoke", "max_tokens": 3},
}


@agent(name="asks")
async def asks(name: str, messages: list[Any], params: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict((await model(name, messages, **params)).raw)
    except ModelError as error:
        return {"error": error.kind, "message": error.message}


def ask(name: str, messages: list[Any], url: str, **params: Any) -> dict[str, Any]:
    trace = asks.run(name, messages, params | {"api_key": "unused", "base_url": url}, store=MemoryStore())
    assert trace.replay(check=False).verdict == "identical"
    found: dict[str, Any] = trace.output
    return found


def answers(path: str, body: dict[str, Any]) -> Exchange:
    kind = (("content-type", "application/json"),)
    return Exchange(
        "a#0", "POST", f"https://h.test{path}", kind, None, 200, kind, json.dumps(body).encode(), False
    )


@pytest.mark.parametrize("name", PROTOCOLS)
@pytest.mark.parametrize(
    ("messages", "place"),
    [(["hello"], "messages[0]"), ([{"role": "user", "content": ["hello"]}], "messages[0].content[0]")],
)
def test_messages_of_another_form_are_refused_in_words(name: str, messages: list[Any], place: str) -> None:
    found = ask(name, messages, "http://127.0.0.1:9", **PROTOCOLS[name])
    assert found["error"] == "bad_request"
    assert f"{place}: it must be a mapping, not str" in found["message"]


@pytest.mark.parametrize("name", ["amazon.some-v1:0", "us.meta.some-v1:0"])
def test_invoke_is_for_models_of_anthropic(name: str) -> None:
    found = ask(f"bedrock:{name}", HELLO, "http://127.0.0.1:9", api="invoke", max_tokens=3)
    assert found["error"] == "bad_request"
    assert "api='invoke' speaks Anthropic's form" in found["message"]


@pytest.mark.parametrize("function", [{"name": "now"}, {"name": "now", "arguments": None}])
def test_a_call_without_arguments_has_empty_ones(function: dict[str, Any]) -> None:
    call = {"id": "c", "type": "function", "function": function}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    body: dict[str, Any] = {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
    with Player(answers("/v1/chat/completions", body)) as player:
        found = ask("openai:m", HELLO, player.base_url("/chat/completions"))
    assert found["tool_calls"][0]["function"] == {"name": "now", "arguments": ""}


def test_converse_blocks_that_name_their_type_are_read() -> None:
    use: dict[str, Any] = {"toolUseId": "t", "name": "now", "input": {}}
    blocks: list[Any] = [{"type": "text", "text": "hi"}, {"type": "tool_use", "toolUse": use}]
    body: dict[str, Any] = {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use",
    }
    with Player(answers("/model/m/converse", body)) as player:
        found = ask("bedrock:m", HELLO, player.base_url("/model/m/converse"))
    assert found["content"] == "hi"
    assert found["tool_calls"][0]["function"]["name"] == "now"
