"""Recorded traffic of real providers through the backend: what was sent, what came back, what failed."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState

from agentloom.adapters.models import backend
from agentloom.errors import ModelError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble
from agentloom.testing import FakeProvider, Raw

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
pytestmark = pytest.mark.skipif(
    not CORPUS.is_dir(), reason="no folder of recorded traffic beside the repository"
)


@dataclass(frozen=True)
class Exchange:
    name: str
    api: str
    body: dict[str, Any]
    status: int
    content_type: str
    text: str

    @property
    def streaming(self) -> bool:
        return bool(self.body.get("stream"))

    def raw(self) -> Raw:
        return Raw(self.text.encode(), self.status, {"content-type": self.content_type})


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


def _header(headers: Mapping[str, Any], name: str) -> str:
    for key, value in headers.items():
        if key.lower() == name:
            return str(value[0] if isinstance(value, list) else value)
    return ""


def _exchange(name: str, item: Any) -> Exchange | None:
    if not isinstance(item, dict) or "request" not in item:
        return None
    request, response = item["request"], item.get("response") or {}
    uri = str(request.get("uri") or request.get("url") or "")
    api = (
        "openai"
        if "/chat/completions" in uri
        else "anthropic"
        if uri.split("?", maxsplit=1)[0].endswith("/messages")
        else ""
    )
    text = (response.get("body") or {}).get("string")
    if not api or not isinstance(request.get("body"), str) or not isinstance(text, str) or not text:
        return None
    status = int((response.get("status") or {}).get("code") or 200)
    kind = _header(response.get("headers") or {}, "content-type") or "application/json"
    return Exchange(name, api, json.loads(request["body"]), status, kind, text)


def _load() -> Iterator[Exchange]:
    yaml: Any = importlib.import_module("yaml")
    for path in sorted(CORPUS.glob("*.yaml")):
        data = path.read_bytes()
        if b"/chat/completions" not in data and b"/messages" not in data:
            continue
        try:
            whole = yaml.load(data, Loader=yaml.CSafeLoader)
        except yaml.constructor.ConstructorError:  # a tag that only Python's own loader builds
            continue
        items = (
            whole.get("interactions") or whole.get("http_interactions") or []
            if isinstance(whole, dict)
            else []
        )
        for number, item in enumerate(items):
            found = _exchange(f"{path.stem}#{number}", item)
            if found is not None:
                yield found


EXCHANGES = list(_load()) if CORPUS.is_dir() else []
GOOD = [e for e in EXCHANGES if e.status == 200]
BAD = [e for e in EXCHANGES if e.status >= 400]
CASES = [pytest.param(e, id=e.name[:90]) for e in GOOD]


def _request(exchange: Exchange, fake: FakeProvider) -> dict[str, Any]:
    url = fake.openai_url if exchange.api == "openai" else fake.anthropic_url
    return {**exchange.body, "model": f"{exchange.api}:{exchange.body.get('model', 'm')}", "base_url": url}


def _call(exchange: Exchange, fake: FakeProvider) -> dict[str, Any]:
    request = _request(exchange, fake)
    return assemble(backend.stream_sync(request)) if exchange.streaming else backend.complete_sync(request)


def _assembled(chunks: list[Any]) -> Any:
    state = ChatCompletionStreamState()
    for chunk in chunks:
        for choice in chunk.choices:
            for call in choice.delta.tool_calls or []:
                call.index = call.index or 0  # a server without indexes: the SDK's own assembly fails on it
        state.handle_chunk(chunk)
    return state.current_completion_snapshot


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
    assert typed.finish_reason


def test_a_recorded_stream_and_a_whole_answer_have_the_same_shape(player: Player) -> None:
    shapes = {tuple(_call(exchange, player.play(exchange))) for exchange in GOOD}
    assert len(shapes) == 1


@pytest.mark.parametrize("exchange", [pytest.param(e, id=e.name[:90]) for e in BAD])
def test_a_recorded_failure_says_what_the_provider_said(exchange: Exchange, player: Player) -> None:
    with pytest.raises(ModelError) as caught:
        _call(exchange, player.play(exchange))
    assert caught.value.status == exchange.status
    assert caught.value.kind not in ("server", "malformed") or exchange.status >= 500
    assert caught.value.__context__ is None
    body = json.loads(exchange.text) if exchange.text.startswith("{") else {}
    error = body.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    if isinstance(said, str):
        assert said[:60] in caught.value.message
