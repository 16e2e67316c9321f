"""The same answer whole and streamed: recorded answers cut into streams at random, streams cut off at random."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentloom.adapters import models_responses_answer as responses
from agentloom.adapters.models import backend
from agentloom.adapters.models_openai import answer as chat_answer
from agentloom.adapters.models_openai_answer import Reader
from agentloom.errors import ModelError
from agentloom.runtime.answers import StreamedAnswer
from agentloom.runtime.assembly import assemble
from agentloom.testing import Exchange, FakeProvider, Raw
from tests.corpus.files import CORPUS, WHY, api_of, exchanges

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=WHY)
SLOW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@functools.cache
def recorded(api: str, *, streamed: bool) -> tuple[Exchange, ...]:
    found = (one for _, one in exchanges() if one.status == 200 and api_of(one) == api and one.body)
    return tuple(one for one in found if one.streamed is streamed and not _fails(one))


def _fails(one: Exchange) -> bool:
    text = one.content.decode("utf-8", "replace").replace(" ", "")
    return '"error":{' in text or text.count('"type":"response.created"') > 1


def whole(api: str) -> list[dict[str, Any]]:
    bodies = [one.json() for one in recorded(api, streamed=False)]
    return [body for body in bodies if body.get("choices") or body.get("output")]


def cut(data: st.DataObject, text: str) -> list[str]:
    """``text`` in pieces, cut where Hypothesis likes."""
    places = data.draw(st.sets(st.integers(0, len(text)), max_size=4), label="cuts")
    edges = [0, *sorted(places), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


def chunks(data: st.DataObject, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A whole chat completion as chunks: the choices interleaved, texts and arguments in pieces, counts at the end."""
    head = {name: value for name, value in body.items() if name not in ("choices", "usage", "object")}
    lines = [list(_deltas(data, place, choice)) for place, choice in enumerate(body["choices"])]
    while any(lines):
        line = data.draw(st.sampled_from([line for line in lines if line]), label="choice")
        yield {**head, "object": "chat.completion.chunk", "choices": [line.pop(0)]}
    yield {**head, "choices": [], "usage": body.get("usage")}


def _deltas(data: st.DataObject, place: int, choice: dict[str, Any]) -> Iterator[dict[str, Any]]:
    message: dict[str, Any] = dict(choice["message"])
    said = {
        name: message.pop(name, None) for name in ("reasoning", "reasoning_content", "content", "refusal")
    }
    calls: list[dict[str, Any]] = message.pop("tool_calls", None) or []
    logprobs: dict[str, Any] = choice.get("logprobs") or {}
    yield {"index": place, "delta": message, "finish_reason": None}
    for name, text in said.items():
        for part in cut(data, text) if isinstance(text, str) else [] if text is None else [text]:
            yield {"index": place, "delta": {name: part}, "finish_reason": None}
    for number, call in enumerate(calls):
        function = call["function"]
        yield {
            "index": place,
            "delta": {"tool_calls": [{**call, "index": number, "function": {**function, "arguments": ""}}]},
        }
        for part in cut(data, function["arguments"]):
            yield {
                "index": place,
                "delta": {"tool_calls": [{"index": number, "function": {"arguments": part}}]},
            }
    for token in logprobs.get("content") or []:
        yield {"index": place, "delta": {}, "logprobs": {**logprobs, "content": [token]}}
    left = {name: value for name, value in choice.items() if name not in ("message", "logprobs", "index")}
    yield {**left, "index": place, "delta": {}}


def test_there_are_enough_recorded_answers() -> None:
    assert len(whole("chat")) >= 30
    assert len(whole("responses")) >= 12
    assert len(recorded("chat", streamed=True)) >= 20
    assert len(recorded("responses", streamed=True)) >= 5


@SLOW
@given(data=st.data())
def test_a_chat_answer_is_the_same_whole_and_streamed(data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(whole("chat")), label="answer")
    if data.draw(st.booleans(), label="twice"):  # n=2
        second = {**body["choices"][0], "index": 1, "finish_reason": "length"}
        body = {**body, "choices": [{**body["choices"][0], "index": 0}, second]}
    provider = data.draw(st.sampled_from(["openai", "openrouter", "deepseek", "mistral"]), label="provider")
    reader = Reader(provider=provider)
    streamed = assemble(delta for chunk in chunks(data, body) for delta in reader.read(chunk))
    assert reader.complete
    expected = chat_answer(body, provider)
    for answer in (streamed, expected):
        for one in [answer, *(answer["choices"] or [])]:  # no text and an empty one are the same in pieces
            one["content"] = one["content"] or None
            one["reasoning"] = one["reasoning"] or None
    assert streamed == expected


def events(data: st.DataObject, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A whole response as the events of its stream; servers differ in what they repeat."""
    yield {
        "type": "response.created",
        "response": {**body, "output": [], "usage": None, "status": "in_progress"},
    }
    repeats = data.draw(st.booleans(), label="items are repeated at the end")
    for index, item in enumerate(body["output"]):
        place = {"output_index": index}
        if item["type"] in ("function_call", "message"):
            empty = {**item, "content": []} if item["type"] == "message" else {**item, "arguments": ""}
            yield {"type": "response.output_item.added", **place, "item": empty}
        if item["type"] == "function_call":
            for part in cut(data, item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": part}
        for number, part in enumerate(item.get("content") or [] if item["type"] == "message" else []):
            for text in cut(data, part["text"]):
                yield {"type": "response.output_text.delta", **place, "content_index": number, "delta": text}
        if not repeats or data.draw(st.booleans(), label="done"):
            yield {"type": "response.output_item.done", **place, "item": item}
    yield {"type": f"response.{body['status']}", "response": body if repeats else {**body, "output": []}}


@SLOW
@given(data=st.data())
def test_a_response_is_the_same_whole_and_streamed(data: st.DataObject) -> None:
    body = data.draw(st.sampled_from(whole("responses")), label="answer")
    reader = responses.Reader()
    streamed = assemble(delta for event in events(data, body) for delta in reader.read(event))
    assert reader.complete
    assert streamed == responses.answer(body)


@settings(SLOW, max_examples=15)
@given(data=st.data())
def test_a_stream_that_was_cut_off_is_never_a_short_answer(data: st.DataObject) -> None:
    api = data.draw(st.sampled_from(["chat", "responses"]), label="api")
    one = data.draw(st.sampled_from(recorded(api, streamed=True)), label="stream")
    content = one.content
    where = data.draw(st.integers(0, len(content)), label="cut")
    replies = [
        Raw(content[:end], 200, {"content-type": "text/event-stream"}) for end in (len(content), where)
    ]
    with FakeProvider(replies) as fake:
        request = {"model": "openai:m", "messages": [], "base_url": fake.openai_url, "api": api}
        full = assemble(backend.stream_sync(request))
        part = StreamedAnswer(backend.stream_sync(request))
        try:
            for _ in part.events():
                pass
        except ModelError as error:
            assert error.kind in ("connection", "malformed")  # noqa: PT017 - either way is right
            assert (full["content"] or "").startswith(part.partial.text)
        else:
            assert (part.answer.text, part.answer.tool_calls) == (full["content"] or "", _calls(full))
    backend.close()


def _calls(answer: dict[str, Any]) -> list[Any]:
    part = StreamedAnswer(iter([{name: value for name, value in answer.items() if name != "choices"}]))
    for _ in part.events():
        pass
    return part.answer.tool_calls


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_leaving_early_gives_what_had_arrived(api: str) -> None:
    for one in recorded(api, streamed=True)[:6]:
        with FakeProvider([Raw(one.content, 200, {"content-type": "text/event-stream"})] * 2) as fake:
            request = {"model": "openai:m", "messages": [], "base_url": fake.openai_url, "api": api}
            full = assemble(backend.stream_sync(request))
            part = StreamedAnswer(backend.stream_sync(request))
            for _, _delta in zip(range(4), part.events(), strict=False):
                pass
            part.close()
            assert (full["content"] or "").startswith(part.partial.text)
            assert part.partial.usage is None or part.partial.raw["usage"] == full["usage"]
    backend.close()


def test_log_probabilities_of_a_stream_are_those_of_the_whole_answer() -> None:
    counted = 0
    for api in ("chat", "responses"):
        for one in recorded(api, streamed=True):
            text = one.content.decode("utf-8", "replace")
            if '"logprob":' not in text:
                continue
            with FakeProvider([Raw(one.content, 200, {"content-type": "text/event-stream"})]) as fake:
                request = {"model": "openai:m", "messages": [], "base_url": fake.openai_url, "api": api}
                answer = assemble(backend.stream_sync(request))
            assert answer["logprobs"]["content"] == list(_tokens(text, api))
            counted += 1
    backend.close()
    assert counted >= 2


def _tokens(text: str, api: str) -> Iterator[Any]:
    for line in text.splitlines():
        event: Any = json.loads(line[6:]) if line.startswith("data: {") else {}
        if api == "chat":
            for choice in event.get("choices") or []:
                yield from (choice.get("logprobs") or {}).get("content") or []
        elif event.get("type") == "response.output_text.delta":
            yield from event["logprobs"]
