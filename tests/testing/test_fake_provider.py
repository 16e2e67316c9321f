"""The fake provider, seen by the official SDKs."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, cast

import anthropic
import openai
import pytest

from agentloom.testing import Drops, Fails, FakeProvider, Raw, Says, Seen, Wants

MESSAGES: Any = [{"role": "user", "content": "hello"}]


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    with FakeProvider(_script) as running:
        yield running


def _script(seen: Seen) -> Says:
    return Says(
        "It costs $40.",
        tools=[Wants("look", {"id": 812, "name": "é"}), Wants("stop")],
        reasoning="let me see",
        usage=(12, 4, 6, 2),
        logprobs=[-0.1, -0.2, -0.3] if seen.protocol == "openai" else None,
    )


def _openai(fake: FakeProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=fake.openai_url, api_key="k", max_retries=0)


def _anthropic(fake: FakeProvider) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=fake.anthropic_url, api_key="k", max_retries=0)


def test_openai_whole_and_streamed_answers_agree(fake: FakeProvider) -> None:
    with _openai(fake) as client:
        whole = client.chat.completions.create(model="gpt-4o", messages=MESSAGES, logprobs=True)
        with client.chat.completions.stream(
            model="gpt-4o", messages=MESSAGES, logprobs=True, stream_options={"include_usage": True}
        ) as events:
            streamed = events.get_final_completion() if list(events) else None
    assert streamed is not None
    first, second = cast(Any, whole.choices[0]), cast(Any, streamed.choices[0])
    assert first.message.content == second.message.content == "It costs $40."
    assert first.finish_reason == second.finish_reason == "tool_calls"
    calls = [
        [
            (call.function.name, json.loads(call.function.arguments))
            for call in choice.message.tool_calls or []
        ]
        for choice in (first, second)
    ]
    assert calls[0] == calls[1] == [("look", {"id": 812, "name": "é"}), ("stop", {})]
    assert whole.usage == streamed.usage
    assert [len(choice.logprobs.content or []) if choice.logprobs else 0 for choice in (first, second)] == [
        3,
        3,
    ]


def test_anthropic_whole_and_streamed_answers_agree(fake: FakeProvider) -> None:
    with _anthropic(fake) as client:
        whole = client.messages.create(model="claude-x", max_tokens=9, messages=MESSAGES)
        with client.messages.stream(model="claude-x", max_tokens=9, messages=MESSAGES) as events:
            streamed = events.get_final_message()
    assert [block.type for block in whole.content] == ["thinking", "text", "tool_use", "tool_use"]
    normal = [
        [
            json.dumps(block.to_dict(), sort_keys=True).replace(f"_{n}_", "_N_").replace(f"sig-{n}", "sig")
            for block in m.content
        ]
        for n, m in ((1, whole), (2, streamed))
    ]
    assert [text.replace(', "parsed_output": null', "") for text in normal[1]] == normal[0]
    assert whole.stop_reason == streamed.stop_reason == "tool_use"
    assert (whole.usage.input_tokens, whole.usage.cache_read_input_tokens) == (8, 4)
    assert streamed.usage.output_tokens == whole.usage.output_tokens == 6


def test_requests_are_kept_as_they_arrived(fake: FakeProvider) -> None:
    with _openai(fake) as client:
        client.chat.completions.create(model="gpt-4o", messages=MESSAGES, temperature=0.5)
    assert fake.count == 1
    seen = fake.seen[0]
    assert (seen.number, seen.protocol, seen.streaming) == (1, "openai", False)
    assert seen.body == {"model": "gpt-4o", "messages": MESSAGES, "temperature": 0.5}
    assert seen.headers["authorization"] == "Bearer k"


def test_replies_come_in_order_and_then_the_script_is_over() -> None:
    with FakeProvider(["one", "two"]) as fake, _openai(fake) as client:
        texts = [
            client.chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content
            for _ in "ab"
        ]
        with pytest.raises(openai.InternalServerError, match="no reply for request 3"):
            client.chat.completions.create(model="m", messages=MESSAGES)
    assert texts == ["one", "two"]


@pytest.mark.parametrize(
    ("status", "of_openai", "of_anthropic"),
    [
        (400, openai.BadRequestError, anthropic.BadRequestError),
        (401, openai.AuthenticationError, anthropic.AuthenticationError),
        (404, openai.NotFoundError, anthropic.NotFoundError),
        (429, openai.RateLimitError, anthropic.RateLimitError),
        (500, openai.InternalServerError, anthropic.InternalServerError),
    ],
)
def test_failures_are_the_sdks_own_classes(
    status: int, of_openai: type[openai.APIStatusError], of_anthropic: type[anthropic.APIStatusError]
) -> None:
    with FakeProvider(lambda _: Fails(status, "no luck", retry_after=3)) as fake:
        with _openai(fake) as client, pytest.raises(of_openai, match="no luck") as first:
            client.chat.completions.create(model="m", messages=MESSAGES)
        with _anthropic(fake) as other, pytest.raises(of_anthropic, match="no luck"):
            other.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    assert first.value.response.headers["retry-after"] == "3"


def test_an_error_in_mid_stream() -> None:
    with FakeProvider(lambda _: Says("a b c d", error_after=3)) as fake:
        with _openai(fake) as client, pytest.raises(openai.APIError, match="Overloaded"):
            list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))
        with _anthropic(fake) as other, pytest.raises(anthropic.APIStatusError, match="Overloaded"):
            list(other.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True))


def test_connections_that_break() -> None:
    with FakeProvider([Drops(), Says("a b c d", break_after=3)]) as fake, _openai(fake) as client:
        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(model="m", messages=MESSAGES)
        with pytest.raises(openai.APIConnectionError):
            list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True))


def test_raw_bytes_are_sent_as_they_are() -> None:
    with FakeProvider([Raw(b"<html>", 502, {"content-type": "text/html"})]) as fake:
        connection = http.client.HTTPConnection("127.0.0.1", int(fake.url.rpartition(":")[2]))
        connection.request("POST", "/v1/messages", body="{}")
        response = connection.getresponse()
        assert (response.status, response.getheader("content-type"), response.read()) == (
            502,
            "text/html",
            b"<html>",
        )
        connection.close()


def test_other_paths_are_not_found(fake: FakeProvider) -> None:
    with _openai(fake) as client, pytest.raises(openai.NotFoundError, match="/v1/embeddings"):
        client.embeddings.create(model="m", input="x", encoding_format="float")
    assert fake.count == 0


def test_stopping_ends_the_port_and_waits_for_no_slow_reply() -> None:
    fake = FakeProvider([Says("late", latency=600)]).start()
    port = int(fake.url.rpartition(":")[2])
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/messages", body="{}")
    fake.stop()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        connection.getresponse()
    connection.close()
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", port).connect()
    with pytest.raises(ValueError, match="does not run"):
        fake.url.strip()


def test_the_environment_points_both_sdks_here(fake: FakeProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fake.env().items():
        monkeypatch.setenv(name, value)
    with openai.OpenAI() as client, anthropic.Anthropic() as other:
        client.chat.completions.create(model="m", messages=MESSAGES)
        other.messages.create(model="m", max_tokens=9, messages=MESSAGES)
    assert [seen.protocol for seen in fake.seen] == ["openai", "anthropic"]
