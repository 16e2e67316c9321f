"""Recorded traffic of real providers through the backend: what was sent, what came back, what failed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk

from agentloom.adapters.models import backend
from agentloom.errors import ModelError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble
from agentloom.testing import Exchange as Recorded
from agentloom.testing import FakeProvider, Raw
from tests.corpus import oracle
from tests.corpus.files import CORPUS, WHY, api_of, exchanges

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)


@dataclass(frozen=True)
class Exchange:
    recorded: Recorded
    api: str
    body: dict[str, Any]

    @property
    def name(self) -> str:
        return self.recorded.name[-90:]

    @property
    def streaming(self) -> bool:
        return bool(self.body.get("stream"))

    def said(self) -> oracle.Said:
        return oracle.read(self.recorded, {"openai": "chat", "anthropic": "messages"}[self.api])

    def raw(self) -> Raw:
        kind = self.recorded.header("content-type") or self.recorded.content_type
        return Raw(self.recorded.content, self.recorded.status, {"content-type": kind})


class Player:
    """One server for all exchanges, which answers with the recorded bytes of the current one."""

    def __init__(self) -> None:
        self.reply = Raw(b"")
        self.fake = FakeProvider(lambda _: self.reply)

    def play(self, exchange: Exchange) -> FakeProvider:
        self.reply = exchange.raw()
        return self.fake


@pytest.fixture(scope="module")
def player() -> Iterator[Player]:
    made = Player()
    with made.fake:
        yield made


@pytest.fixture(scope="module")
def sdks(player: Player) -> Iterator[tuple[openai.OpenAI, anthropic.Anthropic]]:
    first = openai.OpenAI(base_url=player.fake.openai_url, api_key="k", max_retries=0)
    second = anthropic.Anthropic(base_url=player.fake.anthropic_url, api_key="k", max_retries=0)
    with first, second:
        yield first, second


def _load() -> Iterator[Exchange]:
    """Chat completions and messages whose request is known: of every container, in the manifest's order."""
    for _, one in exchanges():
        api = {"chat": "openai", "messages": "anthropic"}.get(api_of(one))
        body = one.request()
        if api is not None and isinstance(body, dict) and one.body and one.url:
            yield Exchange(one, api, body)


EXCHANGES = list(_load())
# Somebody's mistake that the provider refused; what is no mapping cannot be translated, so here nothing is sent.
FORMLESS = [
    e for e in EXCHANGES if e.api == "anthropic" and not all(isinstance(m, dict) for m in e.body["messages"])
]
BAD = [e for e in EXCHANGES if e.recorded.status >= 400 and e not in FORMLESS]
# A stream may begin with status 200 and then tell of a failure.
BROKEN = [e for e in EXCHANGES if e.recorded.status == 200 and e.said().failed]
GOOD = [e for e in EXCHANGES if e.recorded.status == 200 and e not in BROKEN]
CASES = [pytest.param(e, id=e.name) for e in GOOD]


def _request(exchange: Exchange, fake: FakeProvider) -> dict[str, Any]:
    url = fake.openai_url if exchange.api == "openai" else fake.anthropic_url
    return {**exchange.body, "model": f"{exchange.api}:{exchange.body.get('model', 'm')}", "base_url": url}


def _call(exchange: Exchange, fake: FakeProvider) -> dict[str, Any]:
    request = _request(exchange, fake)
    return assemble(backend.stream_sync(request)) if exchange.streaming else backend.complete_sync(request)


def _assembled(chunks: list[Any]) -> Any:
    """The SDK's own assembly, helped over what it fails on: nulls, no index of a call, text in parts."""
    state = ChatCompletionStreamState()
    for chunk in chunks:
        said = _without_nulls(chunk.to_dict(warnings=False))
        for choice in said["choices"]:
            for call in choice["delta"].get("tool_calls") or []:
                call.setdefault("index", 0)
            content = choice["delta"].get("content")
            if isinstance(content, list):
                choice["delta"]["content"] = "".join(p["text"] for p in content if p["type"] == "text")
        state.handle_chunk(ChatCompletionChunk.construct(**said))
    return state.current_completion_snapshot


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(one) for name, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


def _whole(
    exchange: Exchange, client: openai.OpenAI, other: anthropic.Anthropic
) -> tuple[str | None, list[Any], Any]:
    """Text, tool calls and generated tokens, as the provider's own SDK reads the same bytes."""
    if exchange.api == "openai":
        made: Any = client.chat.completions.create(model="m", messages=[], stream=exchange.streaming)
        made = _assembled(list(made)) if exchange.streaming else made
        message = made.choices[0].message
        calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or []]
        return message.content, calls, made.usage and made.usage.completion_tokens
    if exchange.streaming:
        with other.messages.stream(max_tokens=9, model="m", messages=[]) as opened:
            final: Any = opened.get_final_message()
    else:
        final = other.messages.create(max_tokens=9, model="m", messages=[])
    texts = [block.text for block in final.content if block.type == "text"]
    inputs = [(block.name, block.input) for block in final.content if block.type == "tool_use"]
    return "".join(texts) if texts else None, inputs, final.usage.output_tokens


def test_there_is_enough_to_say_something() -> None:
    kinds = {(e.api, e.streaming) for e in GOOD}
    assert kinds == {("openai", False), ("openai", True), ("anthropic", False), ("anthropic", True)}
    assert len(GOOD) >= 60
    assert len(BAD) >= 3
    assert len(FORMLESS) >= 1


@pytest.mark.parametrize("exchange", CASES)
def test_the_recorded_request_arrives_as_it_was(exchange: Exchange, player: Player) -> None:
    _call(exchange, player.play(exchange))
    sent = player.fake.seen[-1].body
    expected = dict(exchange.body)
    if exchange.api == "openai" and exchange.streaming:
        expected.setdefault("stream_options", {"include_usage": True})
    if exchange.body.get("stream") is False:
        del expected["stream"]
    expected.setdefault("model", "m")
    assert sent == {name: value for name, value in expected.items() if value is not None or name in sent}


@pytest.mark.parametrize("exchange", CASES)
def test_the_recorded_answer_is_read_as_the_sdk_reads_it(
    exchange: Exchange, player: Player, sdks: tuple[openai.OpenAI, anthropic.Anthropic]
) -> None:
    fake = player.play(exchange)
    answer = _call(exchange, fake)

    async def again() -> dict[str, Any]:
        request = _request(exchange, fake)
        if not exchange.streaming:
            return await backend.complete(request)
        return assemble([delta async for delta in backend.stream(request)])

    other = asyncio.run(again())
    text, calls, tokens = _whole(exchange, *sdks)
    other["request_id"] = answer["request_id"]
    assert other == answer
    typed = Answer(json.loads(json.dumps(answer)))
    assert (answer["content"] or None) == (text or None)
    if exchange.api == "anthropic":
        assert [(call.name, call.arguments) for call in typed.tool_calls] == calls
    else:
        assert [(call.name, call.arguments_text) for call in typed.tool_calls] == calls
    assert (typed.usage.output if typed.usage else None) == tokens
    said = exchange.said()
    assert (answer["content"] or "", typed.model) == (said.text, said.model)
    assert typed.finish_reason or not said.finished


def test_a_recorded_stream_and_a_whole_answer_have_the_same_shape(player: Player) -> None:
    shapes = {tuple(_call(exchange, player.play(exchange))) for exchange in GOOD}
    assert len(shapes) == 1


@pytest.mark.parametrize("exchange", [pytest.param(e, id=e.name) for e in BAD])
def test_a_recorded_failure_says_what_the_provider_said(exchange: Exchange, player: Player) -> None:
    with pytest.raises(ModelError) as caught:
        _call(exchange, player.play(exchange))
    assert caught.value.status == exchange.recorded.status
    assert caught.value.kind not in ("server", "malformed") or exchange.recorded.status >= 500
    assert caught.value.__context__ is None
    content = exchange.recorded.content
    body = json.loads(content) if content.startswith(b"{") else {}
    error = body.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    if isinstance(said, str):
        assert said[:60] in caught.value.message


@pytest.mark.parametrize("exchange", [pytest.param(e, id=e.name) for e in FORMLESS])
def test_messages_that_are_none_are_refused_before_they_are_sent(exchange: Exchange, player: Player) -> None:
    assert exchange.recorded.status == 400
    fake = player.play(exchange)
    seen = len(fake.seen)
    with pytest.raises(ModelError, match=r"messages\[0\]: it must be a mapping, not str") as caught:
        _call(exchange, fake)
    assert (caught.value.kind, caught.value.status, len(fake.seen)) == ("bad_request", None, seen)


@pytest.mark.parametrize("exchange", [pytest.param(e, id=e.name) for e in BROKEN])
def test_a_failure_in_a_recorded_stream_is_an_error(exchange: Exchange, player: Player) -> None:
    with pytest.raises(ModelError) as caught:
        _call(exchange, player.play(exchange))
    assert caught.value.kind not in ("malformed", "connection")
