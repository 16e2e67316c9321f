from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agentloom.errors import AnswerError, LoomError
from agentloom.runtime.answers import Answer, StreamedAnswer, ToolCall, Usage
from agentloom.runtime.assembly import assemble, empty_answer

CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": '{"id": 812, "tags": ["a"]}'},
}
RAW: dict[str, Any] = {
    **empty_answer(),
    "content": "It costs $40.",
    "tool_calls": [CALL],
    "finish_reason": "tool_calls",
    "model": "gpt-4o-2024-08-06",
    "usage": {"input": 12, "cached": 4, "cache_write": None, "output": 6, "reasoning": None},
}
DELTAS: list[dict[str, Any]] = [
    {"id": "x", "model": "m"},
    {"content": "one "},
    {"choice": 1, "content": "other"},
    {"reasoning": "hm"},
    {"content": "two"},
    {"finish_reason": "stop"},
]


def test_a_typed_view() -> None:
    answer = Answer(RAW)
    assert answer.text == str(answer) == "It costs $40."
    assert answer.usage == Usage(12, 4, None, 6, None)
    assert (answer.finish_reason, answer.model, answer.reasoning, answer.refusal) == (
        "tool_calls",
        "gpt-4o-2024-08-06",
        None,
        None,
    )
    assert answer.tool_calls == [ToolCall("call_1", "look", '{"id": 812, "tags": ["a"]}')]
    assert answer.tool_calls[0].arguments == {"id": 812, "tags": ["a"]}
    assert answer.choices == [answer]


def test_an_answer_of_nothing() -> None:
    answer = Answer(empty_answer())
    assert (answer.text, answer.tool_calls, answer.usage, answer.logprobs) == ("", [], None, None)
    assert answer.message == {"role": "assistant", "content": None}


def test_the_message_to_append_is_fresh_each_time() -> None:
    answer = Answer(RAW)
    message = answer.message
    assert message == {"role": "assistant", "content": "It costs $40.", "tool_calls": [CALL]}
    message["tool_calls"][0]["function"]["name"] = "changed"
    message["content"] = "changed"
    assert answer.message == {"role": "assistant", "content": "It costs $40.", "tool_calls": [CALL]}
    assert answer.tool_calls[0].result("40") == {"role": "tool", "tool_call_id": "call_1", "content": "40"}


@pytest.mark.parametrize("text", ['{"id": 812', "", "null", "[1]", "7", "{'a': 1}", "[" * 100_000])
def test_malformed_arguments_are_an_error_with_the_text(text: str) -> None:
    call = ToolCall("call_1", "look", text)
    with pytest.raises(AnswerError, match=r"arguments of tool call call_1 \(look\)") as caught:
        _ = call.arguments
    assert isinstance(caught.value, LoomError)
    assert caught.value.text == text
    assert caught.value.hint
    assert len(str(caught.value)) < 600


def test_json() -> None:
    answer = Answer({**RAW, "content": '{"a": [1, 2.0, null]}'})
    first = answer.json()
    first["a"].append("mine")
    assert answer.json() == {"a": [1, 2.0, None]}
    with pytest.raises(AnswerError, match="the answer's text is not JSON") as caught:
        Answer({**RAW, "content": '{"target": production}'}).json()
    assert caught.value.position == 11


def test_custom_tools_carry_text() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    assert Answer({**RAW, "tool_calls": [call]}).tool_calls == [ToolCall("c", "sql", "select 1")]


def test_several_choices() -> None:
    answer = Answer(assemble(DELTAS))
    assert [choice.text for choice in answer.choices] == ["one two", "other"]
    assert answer.choices[1].model == "m"


def test_a_stream_in_a_sync_agent() -> None:
    stream = StreamedAnswer(iter(DELTAS))
    with pytest.raises(AnswerError, match="has not ended"):
        _ = stream.answer
    pieces = iter(stream)
    assert next(pieces) == "one "
    assert stream.partial.text == "one "
    assert list(pieces) == ["two"]
    assert stream.answer.raw == assemble(DELTAS)


def test_a_stream_in_an_async_agent() -> None:
    async def source() -> AsyncIterator[dict[str, Any]]:
        for delta in DELTAS:
            yield delta

    async def read() -> tuple[list[str], Answer, list[dict[str, Any]]]:
        stream = StreamedAnswer(source())
        pieces = [piece async for piece in stream]
        other = StreamedAnswer(source())
        return pieces, stream.answer, [delta async for delta in other.aevents()]

    pieces, answer, events = asyncio.run(read())
    assert pieces == ["one ", "two"]
    assert answer.raw == assemble(DELTAS)
    assert events == DELTAS


def test_leaving_a_stream_closes_its_source() -> None:
    closed: list[str] = []

    def source() -> Iterator[dict[str, Any]]:
        try:
            yield from DELTAS
        finally:
            closed.append("sync")

    async def asource() -> AsyncIterator[dict[str, Any]]:
        try:
            for delta in DELTAS:
                yield delta
        finally:
            closed.append("async")

    with StreamedAnswer(source()) as stream:
        next(iter(stream))

    async def leave() -> None:
        async with StreamedAnswer(asource()) as stream:
            async for _ in stream:
                break

    asyncio.run(leave())
    assert closed == ["sync", "async"]
    with pytest.raises(AnswerError):
        _ = stream.answer


def test_the_wrong_kind_of_loop_is_said() -> None:
    async def asource() -> AsyncIterator[dict[str, Any]]:
        yield {}

    with pytest.raises(TypeError, match="async for"):
        list(StreamedAnswer(asource()))

    async def wrong() -> None:
        async for _ in StreamedAnswer(iter(DELTAS)):
            pass

    with pytest.raises(TypeError, match="use `for`"):
        asyncio.run(wrong())
