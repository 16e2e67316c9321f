"""Bedrock's answers: whole and streamed, broken off, refused; AWS's event streams."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.adapters.models import backend
from agentloom.adapters.models_bedrock_answer import Reader, usage, whole
from agentloom.adapters.models_route import Route
from agentloom.errors import ModelError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble, empty_answer
from agentloom.testing import Faults, Player
from tests.adapters.native import EVENT_STREAM, ask, aws, exchange, failing, four_ways, server

ROUTE = Route("bedrock", "bedrock", "m", "http://host")
PATH = "/model/m/"
COUNTS = {
    "inputTokens": 10,
    "outputTokens": 5,
    "totalTokens": 25,
    "cacheReadInputTokens": 8,
    "cacheWriteInputTokens": 2,
}


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    backend.close()


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


CONTENT: list[dict[str, Any]] = [
    {"reasoningContent": {"reasoningText": {"text": "let me see", "signature": "c2ln"}}},
    {"reasoningContent": {"redactedContent": b64(b"secret thoughts")}},
    {"text": "It costs $40."},
    {"toolUse": {"toolUseId": "t1", "name": "look", "input": {"id": 812, "name": "é"}}},
    {"toolUse": {"toolUseId": "t2", "name": "stop", "input": {}}},
    {"toolUse": {"toolUseId": "s1", "name": "run", "type": "server_tool_use", "input": {"code": "1"}}},
    {
        "toolResult": {
            "toolUseId": "s1",
            "status": "success",
            "content": [{"text": "ab"}, {"json": {"exit": 0}}],
        }
    },
    {"citationsContent": {"content": [{"text": " As said."}], "citations": [{"title": "T"}, {"title": "U"}]}},
]
END = {"metrics": {"latencyMs": 7}, "serviceTier": {"type": "default"}, "brandNew": [1]}
WHOLE = {
    "output": {"message": {"role": "assistant", "content": CONTENT}},
    "stopReason": "tool_use",
    "additionalModelResponseFields": {"stop_sequence": None},
    "usage": COUNTS,
    **END,
}


def delta(index: int, **piece: Any) -> tuple[str, object]:
    return "contentBlockDelta", {"contentBlockIndex": index, "delta": piece, "p": "abc"}


def start(index: int, **block: Any) -> tuple[str, object]:
    return "contentBlockStart", {"contentBlockIndex": index, "start": block, "p": "ab"}


EVENTS: list[tuple[str, object]] = [
    ("messageStart", {"role": "assistant", "p": "a"}),
    delta(0, reasoningContent={"text": "let me "}),
    delta(0, reasoningContent={"text": "see"}),
    delta(0, reasoningContent={"signature": "c2ln"}),
    ("contentBlockStop", {"contentBlockIndex": 0, "p": "abcd"}),
    delta(1, reasoningContent={"redactedContent": b64(b"secret ")}),
    delta(1, reasoningContent={"redactedContent": b64(b"thoughts")}),
    delta(2, text="It "),
    delta(2, text="costs $40."),
    start(3, toolUse={"toolUseId": "t1", "name": "look"}),
    delta(3, toolUse={"input": ""}),
    delta(3, toolUse={"input": '{"id": 812, "na'}),
    delta(3, toolUse={"input": 'me": "é"}'}),
    start(4, toolUse={"toolUseId": "t2", "name": "stop"}),
    start(5, toolUse={"toolUseId": "s1", "name": "run", "type": "server_tool_use"}),
    delta(5, toolUse={"input": '{"code": "1"}'}),
    start(6, toolResult={"toolUseId": "s1", "status": "success"}),
    delta(6, toolResult=[{"text": "a"}]),
    delta(6, toolResult=[{"text": "b"}, {"json": {"exit": 0}}]),
    delta(7, text=" As "),
    delta(7, citation={"title": "T"}),
    delta(7, text="said."),
    delta(7, citation={"title": "U"}),
    (
        "messageStop",
        {"stopReason": "tool_use", "additionalModelResponseFields": {"stop_sequence": None}, "p": "a"},
    ),
    ("metadata", {"usage": COUNTS, **END, "p": "abcdef"}),
]


def serving(whole_: object = WHOLE, events: list[tuple[str, object]] | bytes = EVENTS) -> Player:
    headers = {"x-amzn-RequestId": "req-1"}
    data = events if isinstance(events, bytes) else aws(events)
    return server(
        exchange(f"{PATH}converse", json.dumps(whole_).encode(), headers=headers),
        exchange(f"{PATH}converse-stream", data, kind=EVENT_STREAM, headers=headers),
    )


def test_an_answer_is_the_same_whole_and_streamed_blocking_and_awaited() -> None:
    with serving() as player:
        answers = four_ways(player, "bedrock:m")
        assert not player.misses
    first = answers[0]
    assert all(answer == first for answer in answers)
    assert list(first) == list(empty_answer())
    assert first["content"] == "It costs $40. As said."
    assert first["reasoning"] == "let me see"
    assert (first["finish_reason"], first["native_finish_reason"]) == ("tool_calls", "tool_use")
    assert first["usage"] == {"input": 20, "cached": 8, "cache_write": 2, "output": 5, "reasoning": None}
    assert first["raw_usage"] == COUNTS
    assert first["request_id"] == "req-1"
    assert first["info"] == {**END, "additionalModelResponseFields": {"stop_sequence": None}}
    assert first["blocks"] == {"bedrock": {"content": CONTENT}}
    calls = Answer(first).tool_calls
    assert [(call.id, call.name, call.arguments) for call in calls] == [
        ("t1", "look", {"id": 812, "name": "é"}),
        ("t2", "stop", {}),
    ]


def test_plain_answers_keep_no_blocks() -> None:
    content = [{"text": "a"}, {"toolUse": {"toolUseId": "t", "name": "f", "input": {}, "type": "tool_use"}}]
    assert whole({"output": {"message": {"content": content}}, "stopReason": "tool_use"})["blocks"] is None


def test_what_has_no_other_place_is_kept() -> None:
    content = [
        {"newKind": {"a": 1}},
        {"text": "x", "odd": 2},
        {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}, "odd": 1},
    ]
    body = {
        "output": {"message": {"role": "assistant", "content": content, "more": 1}},
        "stopReason": "new_reason",
    }
    answer = whole(body)
    assert answer["blocks"] == {"bedrock": {"content": content}}
    assert answer["extra"] == {"more": 1}
    assert answer["finish_reason"] == "new_reason"
    reader = Reader(ROUTE)
    events: list[tuple[str, Any]] = [
        delta(0, newKind={"a": 1}),
        start(1, image={"format": "png"}),
        delta(1, image={"source": {"bytes": "AA=="}}),
        ("surprise", {"b": 2}),
        ("messageStop", {"stopReason": "end_turn"}),
    ]
    answer = assemble(one for kind, payload in events for one in reader.read({kind: payload}))
    assert answer["blocks"]["bedrock"]["content"] == [
        {"unread_deltas": [{"newKind": {"a": 1}}]},
        {"image": {"format": "png", "source": {"bytes": "AA=="}}},
    ]
    assert answer["info"] == {"surprise": {"b": 2}}


def test_arguments_that_were_cut_off_can_be_given_back() -> None:
    reader = Reader(ROUTE)
    events: list[tuple[str, Any]] = [
        delta(0, reasoningContent={"text": "hm"}),
        start(1, toolUse={"toolUseId": "t", "name": "f"}),
        delta(1, toolUse={"input": '{"a": '}),
        ("messageStop", {"stopReason": "max_tokens"}),
    ]
    answer = assemble(one for kind, payload in events for one in reader.read({kind: payload}))
    assert answer["tool_calls"][0]["function"]["arguments"] == '{"a": '
    assert answer["blocks"]["bedrock"]["content"][1]["toolUse"]["input"] == {"unparsed": '{"a": '}
    assert answer["finish_reason"] == "length"


@pytest.mark.parametrize("reason", ["content_filtered", "guardrail_intervened"])
def test_an_answer_that_was_blocked(reason: str) -> None:
    trace = {"guardrail": {"actionReason": "x"}, "promptRouter": {"invokedModelId": "arn:nova"}}
    answer = whole(
        {"output": {"message": {"content": [{"text": "No."}]}}, "stopReason": reason, "trace": trace}
    )
    assert answer["finish_reason"] == "content_filter"
    assert answer["model"] == "arn:nova"
    assert answer["info"] == {"trace": trace}


@pytest.mark.parametrize(
    ("raw", "given"),
    [
        ({}, None),
        ({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}, 10),
        ({"inputTokens": 10, "outputTokens": 5, "totalTokens": 18, "cacheReadInputTokens": 3}, 13),
        ({"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadInputTokens": 3}, 10),
    ],
)
def test_cached_tokens_are_part_of_the_input_however_they_are_counted(
    raw: dict[str, int], given: int | None
) -> None:
    assert usage(raw)["input"] == given


# -- streams that end otherwise --------------------------------------------------------------------------------------


def drained(player: Player, **params: Any) -> list[dict[str, Any]]:
    return list(backend.stream_sync(ask(player, "bedrock:m", **params)))


def test_a_stream_is_read_as_it_arrives_and_can_be_left() -> None:
    with serving() as player:
        player.faults = Faults(pieces=11)
        stream = backend.stream_sync(ask(player, "bedrock:m"))
        assert next(stream) == {"request_id": "req-1"}
        assert next(stream) == {"reasoning": "let me "}
        stream.close()  # type: ignore[attr-defined]

        async def left() -> None:
            async for piece in backend.stream(ask(player, "bedrock:m")):
                if "content" in piece:
                    break

        asyncio.run(left())
        assert len(drained(player)) > 5


@pytest.mark.parametrize("cut", [0, 5, 100, 1500])
def test_a_stream_that_breaks_off_is_an_error(cut: int) -> None:
    with serving() as player:
        player.faults = Faults(cut=cut)
        with pytest.raises(ModelError) as caught:
            drained(player)
    assert caught.value.kind == "connection"


def test_a_stream_that_ends_without_a_reason_is_an_error() -> None:
    with serving(events=EVENTS[:-2]) as player, pytest.raises(ModelError) as caught:
        drained(player)
    assert caught.value.kind == "connection"


@pytest.mark.parametrize("place", [2, 13, 40, -2])
def test_a_flipped_bit_is_malformed(place: int) -> None:
    data = bytearray(aws(EVENTS))
    data[place] ^= 1
    with serving(events=bytes(data)) as player, pytest.raises(ModelError) as caught:
        drained(player)
    assert caught.value.kind == "malformed"


def test_an_event_of_another_shape_is_malformed() -> None:
    with serving(events=[("contentBlockDelta", {"delta": 3})]) as player, pytest.raises(ModelError) as caught:
        drained(player)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"output": {"message": 3}}'])
def test_an_answer_of_something_else_is_malformed(body: bytes) -> None:
    with server(exchange(f"{PATH}converse", body)) as player, pytest.raises(ModelError) as caught:
        backend.complete_sync(ask(player, "bedrock:m"))
    assert caught.value.kind == "malformed"


# -- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "more", "kind", "status"),
    [
        ("throttlingException", {}, "rate_limit", None),
        ("serviceUnavailableException", {}, "overload", None),
        ("internalServerException", {}, "server", None),
        ("modelStreamErrorException", {"originalStatusCode": 503, "originalMessage": "why"}, "server", 503),
        ("validationException", {}, "bad_request", 400),
    ],
)
def test_an_exception_in_a_stream_is_an_error(
    name: str, more: dict[str, Any], kind: str, status: int | None
) -> None:
    events = [*EVENTS[:3], (name, {"message": "told so", **more})]
    with serving(events=events) as player, pytest.raises(ModelError) as caught:
        drained(player)
    assert (caught.value.kind, caught.value.status) == (kind, status)
    assert caught.value.code == name[0].upper() + name[1:]
    assert "told so" in str(caught.value)
    assert str(more.get("originalMessage", "")) in str(caught.value)


@pytest.mark.parametrize(
    ("status", "name", "message", "kind"),
    [
        (429, "ThrottlingException", "Too many requests, please wait.", "rate_limit"),
        (429, "ModelNotReadyException", "not yet", "overload"),
        (503, "ServiceUnavailableException", "later", "overload"),
        (529, "", "overloaded", "overload"),
        (500, "InternalServerException", "oh", "server"),
        (424, "ModelErrorException", "the model failed", "server"),
        (408, "ModelTimeoutException", "too slow", "timeout"),
        (400, "ServiceQuotaExceededException", "too much", "quota"),
        (403, "AccessDeniedException", "not you", "auth"),
        (403, "UnrecognizedClientException", "The security token is invalid.", "auth"),
        (403, "ExpiredTokenException", "expired", "auth"),
        (404, "ResourceNotFoundException", "no such model", "not_found"),
        (400, "ValidationException", "The provided model identifier is invalid.", "not_found"),
        (400, "ValidationException", "Input is too long for requested model.", "context_length"),
        (400, "ValidationException", "temperature is wrong", "bad_request"),
    ],
)
@pytest.mark.parametrize("place", ["header", "body"])
def test_errors_by_class(status: int, name: str, message: str, kind: str, place: str) -> None:
    headers = {"x-amzn-RequestId": "req-9", "retry-after": "3"}
    body: dict[str, Any] = {"message": message}
    if place == "header":
        headers["x-amzn-ErrorType"] = f"{name}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    else:
        body = {"__type": f"com.amazon.coral#{name}", "Message": message}
    answers = [failing(f"{PATH}{verb}", status, body, headers) for verb in ("converse", "converse-stream")]
    with server(*answers) as player:
        for call in (backend.complete_sync, lambda request: list(backend.stream_sync(request))):
            with pytest.raises(ModelError) as caught:
                call(ask(player, "bedrock:m"))
            assert (caught.value.kind, caught.value.status, caught.value.code) == (kind, status, name or None)
            assert (caught.value.request_id, caught.value.delay) == ("req-9", 3)
            assert message in str(caught.value)
            assert "key-of-nobody" not in str(caught.value)
            assert caught.value.__context__ is None


def test_an_error_that_is_no_json() -> None:
    with (
        server(failing(f"{PATH}converse", 502, b"<html>bad gateway")) as player,
        pytest.raises(ModelError) as caught,
    ):
        backend.complete_sync(ask(player, "bedrock:m"))
    assert caught.value.kind == "server"
    assert "bad gateway" in str(caught.value)


# -- InvokeModel -----------------------------------------------------------------------------------------------------

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-5",
    "content": [{"type": "text", "text": "hi"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 1},
}


def chunk(event: object) -> tuple[str, object]:
    return "chunk", {"bytes": b64(json.dumps(event).encode()), "p": "abc"}


CHUNKS = [
    chunk({"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}),
    chunk({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    chunk({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}}),
    chunk({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": MESSAGE["usage"]}),
    chunk({"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 3}}),
]


def invoking(events: list[tuple[str, object]]) -> Player:
    return server(
        exchange(f"{PATH}invoke", json.dumps(MESSAGE).encode()),
        exchange(f"{PATH}invoke-with-response-stream", aws(events), kind=EVENT_STREAM),
    )


def test_invoke_is_read_as_anthropics_answers_are() -> None:
    with invoking(CHUNKS) as player:
        answers = four_ways(player, "bedrock:m", api="invoke")
    assert all(answer == answers[0] for answer in answers)
    assert (answers[0]["content"], answers[0]["model"], answers[0]["id"]) == (
        "hi",
        "claude-sonnet-5",
        "msg_1",
    )
    assert answers[0]["usage"]["output"] == 1


@pytest.mark.parametrize(
    ("last", "kind"),
    [
        (("throttlingException", {"message": "slow"}), "rate_limit"),
        (chunk({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}), "overload"),
    ],
)
def test_a_failure_in_a_stream_of_invoke(last: tuple[str, object], kind: str) -> None:
    with invoking([*CHUNKS[:3], last]) as player, pytest.raises(ModelError) as caught:
        drained(player, api="invoke")
    assert caught.value.kind == kind
    with invoking(CHUNKS[:3]) as player, pytest.raises(ModelError) as caught:
        drained(player, api="invoke")
    assert caught.value.kind == "connection"
