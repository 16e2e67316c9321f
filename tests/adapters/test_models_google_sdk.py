"""Recorded answers of Google, read here and by Google's own SDK: the same text, calls and counts."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import types

from agentloom.adapters.models import backend
from agentloom.adapters.models_google_answer import Reader, whole
from agentloom.adapters.models_route import Route
from agentloom.errors import ModelError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble
from agentloom.testing import Exchange
from tests.adapters.native import ask, server
from tests.corpus.files import CORPUS, WHY, api_of, exchanges

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)


ROUTE = Route("google", "gemini", "m", "http://host")


def _load() -> Iterator[Any]:
    for _, one in exchanges():
        if api_of(one) == "generateContent" and one.url:
            yield pytest.param(one, id=one.name[-70:])


RECORDED = list(_load())


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    backend.close()


def _moved(one: Exchange) -> Exchange:
    """At an address of the Gemini API, whichever it was recorded from: both give answers of one form."""
    verb = "streamGenerateContent?alt=sse" if one.streamed else "generateContent"
    return dataclasses.replace(one, url=f"http://host/v1beta/models/m:{verb}")


def _told(parts: list[Any]) -> tuple[str, list[tuple[str, Any]]]:
    text = "".join(part.text for part in parts if part.text and not part.thought)
    calls = [(part.function_call.name, part.function_call.args) for part in parts if part.function_call]
    return text, calls


def _by_sdk(one: Exchange, url: str) -> tuple[str, list[tuple[str, Any]], Any]:
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url, api_version="v1beta"))
    ask_it = client.models.generate_content_stream if one.streamed else client.models.generate_content
    found: Any = ask_it(model="m", contents="x")
    events = list(found) if one.streamed else [found]
    parts = [part for event in events for part in event.candidates[0].content.parts or []]
    client.close()
    return *_told(parts), events[-1].usage_metadata


def test_there_is_enough_to_say_something() -> None:
    assert len(RECORDED) >= 20
    assert len({param.values[0].streamed for param in RECORDED}) == 2


@pytest.mark.parametrize("one", RECORDED)
def test_the_recorded_answer_is_read_as_the_sdk_reads_it(one: Exchange) -> None:
    with server(_moved(one)) as player:
        request = ask(player, "gemini:m")
        if one.status >= 400:
            with pytest.raises(ModelError) as caught:
                list(backend.stream_sync(request)) if one.streamed else backend.complete_sync(request)
            with pytest.raises(genai.errors.APIError) as theirs:
                _by_sdk(one, player.url)
            assert (caught.value.status, caught.value.code) == (theirs.value.code, theirs.value.status)
            assert str(theirs.value.message) in str(caught.value)
            return
        answer = assemble(backend.stream_sync(request)) if one.streamed else backend.complete_sync(request)
        if b'"finishReason": 1' in one.content:  # words as numbers, as that client had asked for
            with pytest.raises(AttributeError, match="upper"):
                _by_sdk(one, player.url)
            assert answer["finish_reason"] in ("stop", "tool_calls")
            return
        text, calls, counts = _by_sdk(one, player.url)
    typed = Answer(json.loads(json.dumps(answer)))
    assert typed.text == text
    assert [(call.name, call.arguments) for call in typed.tool_calls] == calls
    assert typed.usage is not None
    assert typed.usage.input == counts.prompt_token_count + (counts.tool_use_prompt_token_count or 0)
    assert typed.usage.reasoning == counts.thoughts_token_count
    assert typed.usage.output == counts.total_token_count - typed.usage.input


WHOLES = [p for p in RECORDED if not p.values[0].streamed and p.values[0].status == 200]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("one", WHOLES)
def test_a_recorded_answer_cut_into_a_stream_is_the_same(one: Exchange, seed: int) -> None:
    print(f"seed {seed}")
    dice = random.Random(seed)
    body = one.json()
    streamed = assemble(
        delta for reader in [Reader(ROUTE)] for e in _events(body, dice) for delta in reader.read(e)
    )
    assert streamed == whole(body, ROUTE)


def _events(body: dict[str, Any], dice: random.Random) -> Iterator[dict[str, Any]]:
    """A whole answer as the events of its stream: texts without marks in pieces, counts and the reason at the end."""
    counts = body.get("usageMetadata")
    head = {name: value for name, value in body.items() if name not in ("candidates", "usageMetadata")}
    (candidate,) = body["candidates"]
    for part in candidate["content"]["parts"]:
        text = part.get("text", "")
        places = sorted(dice.choices(range(len(text) + 1), k=3)) if set(part) == {"text"} else []
        edges = [0, *places, len(text)]
        pieces = [{"text": text[a:b]} for a, b in itertools.pairwise(edges)] if places else [part]
        for piece in pieces:
            yield {
                **head,
                "candidates": [{"content": {"role": "model", "parts": [piece]}}],
                "usageMetadata": {},
            }
    rest = {name: value for name, value in candidate.items() if name != "content"}
    yield {**head, "candidates": [rest], "usageMetadata": counts}
