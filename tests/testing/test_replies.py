"""Scripted replies: whole and streamed forms of one reply say the same, in both protocols."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, Literal

import pytest

from agentloom.replay.answered import answer_of
from agentloom.testing import Fails, FakeProvider, Says, Wants
from agentloom.testing.replies import error_body, message, stream

REPLIES = [
    Says("It follows the moon."),
    Says("", tools=[Wants("refund", {"order": 812}), Wants("notify", {"who": "é"})]),
    Says("Let me see.", tools=[Wants("lookup", {})], reasoning="hm"),
    Says("a b", pieces=["a", " ", "b"], usage=(12, 4, 3, 1)),
]


def events(
    protocol: Literal["openai", "anthropic"], reply: Says, *, usage: bool = False
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for event in stream(protocol, reply, "m", 1, usage=usage):
        data = next(line for line in event.decode().splitlines() if line.startswith("data: ")).removeprefix(
            "data: "
        )
        if data != "[DONE]":
            found.append(json.loads(data))
    return found


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("reply", REPLIES, ids=lambda reply: str(reply.text))
def test_a_stream_adds_up_to_the_whole_answer(protocol: Literal["openai", "anthropic"], reply: Says) -> None:
    whole = answer_of({"json": message(protocol, reply, "m", 1)})
    streamed = answer_of(None, [{"json": event} for event in events(protocol, reply)])
    assert whole is not None
    assert streamed is not None
    assert streamed.text == whole.text == reply.text
    assert [(name, json.loads(text)) for name, text in streamed.tools] == [
        (w.name, w.arguments) for w in reply.tools
    ]


def test_usage_counts_cached_tokens_within_or_beside_the_input() -> None:
    reply = Says("x", usage=(12, 4, 3, 1))
    openai, anthropic = (
        message("openai", reply, "m", 1)["usage"],
        message("anthropic", reply, "m", 1)["usage"],
    )
    assert (openai["prompt_tokens"], openai["prompt_tokens_details"]["cached_tokens"]) == (12, 4)
    assert (anthropic["input_tokens"], anthropic["cache_read_input_tokens"]) == (8, 4)
    assert events("openai", reply, usage=True)[-1]["usage"] == openai


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_stream_breaks_off_or_fails_where_it_was_told(protocol: Literal["openai", "anthropic"]) -> None:
    assert len(events(protocol, Says("a b c d", break_after=3))) == 3
    failed = events(protocol, Says("a b c d", error_after=2))
    assert len(failed) == 3
    assert "Overloaded" in json.dumps(failed[-1])


def test_malformed_arguments_are_sent_as_they_are() -> None:
    body = message("openai", Says(tools=[Wants("x", "{not json")]), "m", 1)
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == "{not json"
    assert body["choices"][0]["finish_reason"] == "tool_calls"


def test_malformed_arguments_come_in_a_stream_of_anthropic_and_nowhere_else() -> None:
    reply = Says(tools=[Wants("x", "{not json")])
    deltas = [
        event["delta"] for event in events("anthropic", reply) if event["type"] == "content_block_delta"
    ]
    assert "".join(delta["partial_json"] for delta in deltas) == "{not json"
    with pytest.raises(ValueError, match="the arguments of x are no JSON"):
        message("anthropic", reply, "m", 1)


def test_a_reply_that_cannot_be_sent_says_why() -> None:
    with FakeProvider([Says(tools=[Wants("x", "{not json")])]) as fake:
        request = urllib.request.Request(fake.url + "/v1/messages", data=b'{"model": "m"}', method="POST")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        with caught.value as answer:
            assert "the arguments of x are no JSON" in answer.read().decode()


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "authentication_error"), (429, "rate_limit_error"), (599, "api_error")]
)
def test_errors_have_the_types_of_the_api(status: int, kind: str) -> None:
    assert error_body("anthropic", Fails(status))["error"]["type"] == kind
