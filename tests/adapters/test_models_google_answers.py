"""Google's answers: whole and streamed, broken off, refused, and what goes back on the next turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agentloom.adapters import models_google
from agentloom.adapters.models import backend
from agentloom.adapters.models_google_answer import Reader, usage, whole
from agentloom.adapters.models_route import Route
from agentloom.errors import ModelError, NotSupported
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble, empty_answer
from agentloom.testing import Faults, Player
from tests.adapters.native import MESSAGES, ask, exchange, failing, four_ways, server, sse

GEMINI = Route("google", "gemini", "gemini-3-pro", "http://host/v1beta")
VERTEX = Route("google", "vertex", "gemini-2.5-flash", "http://host/v1beta1/projects/p/locations/global")
SCHEMA = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}}
PATH = "/v1beta/models/gemini-3-pro"


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    yield
    backend.close()


def sent(route: Route = GEMINI, **request: Any) -> dict[str, Any]:
    return models_google.body({"messages": MESSAGES, **request}, route, stream=False)


def called(*calls: tuple[str, str, Any], **more: Any) -> dict[str, Any]:
    made = [
        {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        for name, tool, given in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made, **more}


# -- what comes back -------------------------------------------------------------------------------------------------

HEAD = {"modelVersion": "gemini-3-pro-001", "responseId": "r1"}
COUNTS = {
    "promptTokenCount": 30,
    "cachedContentTokenCount": 20,
    "toolUsePromptTokenCount": 5,
    "candidatesTokenCount": 7,
    "thoughtsTokenCount": 9,
    "totalTokenCount": 51,
    "trafficType": "ON_DEMAND",
}
PARTS: list[dict[str, Any]] = [
    {"text": "let me ", "thought": True},
    {"text": "see", "thought": True},
    {"text": "It "},
    {"text": "costs"},
    {"functionCall": {"name": "look", "args": {"id": 812, "name": "é"}}, "thoughtSignature": "c2ln"},
    {"functionCall": {"name": "stop"}},
    {"functionCall": {"name": "own", "args": {}, "id": "g1"}},
]
JOINED = [
    {"text": "let me see", "thought": True},
    {"text": "It costs"},
    *PARTS[4:],
]


def candidate(parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": parts}, **more}


WHOLE = {
    **HEAD,
    "candidates": [candidate(PARTS, finishReason="STOP", avgLogprobs=-0.5)],
    "usageMetadata": COUNTS,
}
EVENTS = [
    {**HEAD, "candidates": [candidate([part])], "usageMetadata": {"trafficType": "ON_DEMAND"}}
    for part in PARTS
] + [
    {
        **HEAD,
        "candidates": [candidate([{"text": ""}], finishReason="STOP", avgLogprobs=-0.5)],
        "usageMetadata": COUNTS,
    }
]


def serving(whole_: object = WHOLE, events: list[Any] | bytes = EVENTS, path: str = PATH) -> Player:
    data = events if isinstance(events, bytes) else sse(events)
    stream = exchange(f"{path}:streamGenerateContent?alt=sse", data, kind="text/event-stream")
    return server(exchange(f"{path}:generateContent", json.dumps(whole_).encode()), stream)


def test_an_answer_is_the_same_whole_and_streamed_blocking_and_awaited() -> None:
    with serving() as player:
        answers = four_ways(player, "gemini:gemini-3-pro")
        assert not player.misses
        assert {dict(one.headers)["x-goog-api-key"] for one in player.seen} == {"key-of-nobody"}
    first = answers[0]
    assert all(answer == first for answer in answers)
    assert list(first) == list(empty_answer())
    assert first["content"] == "It costs"
    assert first["reasoning"] == "let me see"
    assert (first["model"], first["id"]) == ("gemini-3-pro-001", "r1")
    assert (first["finish_reason"], first["native_finish_reason"]) == ("tool_calls", "STOP")
    assert first["usage"] == {"input": 35, "cached": 20, "cache_write": None, "output": 16, "reasoning": 9}
    assert first["raw_usage"] == COUNTS
    assert first["info"] == {"avgLogprobs": -0.5}
    calls = Answer(first).tool_calls
    assert [(call.name, call.arguments) for call in calls] == [
        ("look", {"id": 812, "name": "é"}),
        ("stop", {}),
        ("own", {}),
    ]
    assert calls[2].id == "g1"
    assert len({call.id for call in calls}) == 3
    assert all(call.id.startswith("call_") for call in calls[:2])
    assert first["blocks"] == {"google": {"parts": JOINED}}


def test_ids_are_the_same_each_time_and_differ_between_answers() -> None:
    def names(body: dict[str, Any]) -> list[str]:
        return [call["id"] for call in whole(body, GEMINI)["tool_calls"]]

    assert names(WHOLE) == names(WHOLE)
    assert set(names(WHOLE)[:2]).isdisjoint(names({**WHOLE, "responseId": "r2"})[:2])


def test_signatures_and_ids_go_back_with_their_calls() -> None:
    answer = Answer(whole(WHOLE, GEMINI))
    look, stop, own = answer.tool_calls
    messages = [*MESSAGES, answer.message, own.result("3"), look.result("1"), stop.result("2")]
    contents = sent(messages=messages)["contents"]
    assert contents[1] == {"role": "model", "parts": JOINED}
    assert contents[2]["parts"] == [
        {"functionResponse": {"name": "look", "response": {"output": "1"}}},
        {"functionResponse": {"name": "stop", "response": {"output": "2"}}},
        {"functionResponse": {"id": "g1", "name": "own", "response": {"output": "3"}}},
    ]


def test_an_answer_of_another_provider_goes_back_by_its_text_and_calls() -> None:
    message = called(("c", "look", {"a": 1}), blocks=[{"type": "thinking", "signature": "x"}], content="hm")
    assert sent(messages=[message])["contents"][0]["parts"] == [
        {"text": "hm"},
        {"functionCall": {"name": "look", "args": {"a": 1}}},
    ]


def test_a_text_with_a_signature_stays_alone() -> None:
    parts = [{"text": "a"}, {"text": "b"}, {"text": "", "thoughtSignature": "x"}, {"text": "c"}]
    answer = whole({**HEAD, "candidates": [candidate(parts, finishReason="STOP")]}, GEMINI)
    assert answer["content"] == "abc"
    assert answer["blocks"] == {
        "google": {"parts": [{"text": "ab"}, {"text": "", "thoughtSignature": "x"}, {"text": "c"}]}
    }


def test_plain_answers_keep_no_blocks() -> None:
    parts: list[dict[str, Any]] = [{"text": "a"}, {"functionCall": {"name": "f", "args": {"b": 1}}}]
    assert whole({**HEAD, "candidates": [candidate(parts, finishReason="STOP")]}, GEMINI)["blocks"] is None


def test_what_has_no_other_place_is_kept() -> None:
    parts: list[dict[str, Any]] = [
        {"executableCode": {"language": "PYTHON", "code": "1"}, "new": {"a": 1}},
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
    ]
    body: dict[str, Any] = {
        **HEAD,
        "candidates": [
            candidate(
                parts, finishReason="STOP", safetyRatings=[{"category": "X"}], brandNew=[1], tokenCount=3
            )
        ],
        "createTime": "2026-01-01T00:00:00Z",
        "anotherNew": {"b": 2},
    }
    body["candidates"][0]["content"]["odd"] = True
    answer = whole(body, GEMINI)
    assert answer["blocks"] == {"google": {"parts": parts}}
    assert answer["info"] == {
        "createTime": "2026-01-01T00:00:00Z",
        "anotherNew": {"b": 2},
        "safetyRatings": [{"category": "X"}],
        "brandNew": [1],
        "tokenCount": 3,
    }
    assert answer["extra"] == {"odd": True}


def test_several_candidates_and_logprobs() -> None:
    def scores(*tokens: str) -> dict[str, Any]:
        chosen = [{"token": token, "logProbability": -1.0} for token in tokens]
        return {"chosenCandidates": chosen, "topCandidates": [{"candidates": [one]} for one in chosen]}

    body = {
        **HEAD,
        "candidates": [
            candidate([{"text": "ab"}], finishReason="STOP", logprobsResult=scores("a", "b")),
            candidate([{"text": "c"}], index=1, finishReason="MAX_TOKENS", logprobsResult=scores("c")),
        ],
    }
    events = [
        {**HEAD, "candidates": [candidate([{"text": "c"}], index=1, logprobsResult=scores("c"))]},
        {**HEAD, "candidates": [candidate([{"text": "a"}], logprobsResult=scores("a"))]},
        {**HEAD, "candidates": [candidate([], index=1, finishReason="MAX_TOKENS")]},
        {**HEAD, "candidates": [candidate([{"text": "b"}], logprobsResult=scores("b"), finishReason="STOP")]},
    ]
    with serving(body, events) as player:
        answers = four_ways(player, "gemini:gemini-3-pro", n=2, logprobs=True)
    assert all(answer == answers[0] for answer in answers)
    assert [(one.text, one.finish_reason) for one in Answer(answers[0]).choices] == [
        ("ab", "stop"),
        ("c", "length"),
    ]
    assert answers[0]["logprobs"] == scores("a", "b")


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", 3])
def test_an_answer_that_was_blocked(reason: Any) -> None:
    answer = whole({**HEAD, "candidates": [{"finishReason": reason, "finishMessage": "why"}]}, GEMINI)
    assert (answer["finish_reason"], answer["native_finish_reason"]) == ("content_filter", str(reason))
    assert answer["info"]["finishMessage"] == "why"


def test_a_prompt_that_was_blocked_is_an_answer_with_the_reason() -> None:
    feedback = {"blockReason": "PROHIBITED_CONTENT", "safetyRatings": [{"category": "X", "blocked": True}]}
    body = {
        **HEAD,
        "promptFeedback": feedback,
        "usageMetadata": {"promptTokenCount": 3, "totalTokenCount": 3},
    }
    with serving(body, [body]) as player:
        answers = four_ways(player, "gemini:gemini-3-pro")
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["finish_reason"] == "content_filter"
    assert answers[0]["native_finish_reason"] == "PROHIBITED_CONTENT"
    assert answers[0]["info"]["promptFeedback"] == feedback
    assert answers[0]["usage"]["input"] == 3


def test_other_reasons_are_googles_own_words() -> None:
    answer = whole({**HEAD, "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, GEMINI)
    assert answer["finish_reason"] == "MALFORMED_FUNCTION_CALL"


def test_grounding_in_pieces_is_one() -> None:
    chunks = [{"web": {"uri": "a"}}, {"web": {"uri": "b"}}]
    reader = Reader(GEMINI)
    events = [
        {"candidates": [candidate([{"text": "a"}], groundingMetadata={})]},
        {"candidates": [candidate([{"text": "b"}], groundingMetadata={"groundingChunks": chunks[:1]})]},
        {"candidates": [candidate([], groundingMetadata={"groundingChunks": chunks})]},
        {
            "candidates": [
                candidate(
                    [],
                    finishReason="STOP",
                    groundingMetadata={"webSearchQueries": ["q"]},
                    citationMetadata={},
                )
            ]
        },
    ]
    answer = assemble(delta for event in events for delta in reader.read(event))
    assert answer["info"]["groundingMetadata"] == {"groundingChunks": chunks, "webSearchQueries": ["q"]}


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({}, (None, None, None)),
        ({"promptTokenCount": 3, "totalTokenCount": 3}, (3, None, None)),
        ({"promptTokenCount": 3, "thoughtsTokenCount": 4, "totalTokenCount": 7}, (3, 4, 4)),
        (
            {
                "promptTokenCount": 3,
                "candidatesTokenCount": 9,
                "thoughtsTokenCount": 4,
                "totalTokenCount": 12,
            },
            (3, 9, 4),
        ),
        (
            {
                "promptTokenCount": 3,
                "candidatesTokenCount": 9,
                "thoughtsTokenCount": 4,
                "totalTokenCount": 16,
            },
            (3, 13, 4),
        ),
    ],
)
def test_thinking_is_part_of_the_output_however_it_is_counted(
    raw: dict[str, int], expected: tuple[Any, ...]
) -> None:
    made = usage(raw)
    assert (made["input"], made["output"], made["reasoning"]) == expected


# -- streams that end otherwise --------------------------------------------------------------------------------------


def drained(player: Player, **params: Any) -> list[dict[str, Any]]:
    return list(backend.stream_sync(ask(player, "gemini:gemini-3-pro", **params)))


def test_a_stream_is_read_as_it_arrives_and_can_be_left() -> None:
    with serving() as player:
        player.faults = Faults(pieces=7)
        stream = backend.stream_sync(ask(player, "gemini:gemini-3-pro"))
        assert next(stream) == {"request_id": None}
        assert next(stream) == {"model": "gemini-3-pro-001", "id": "r1"}
        stream.close()  # type: ignore[attr-defined]

        async def left() -> None:
            async for delta in backend.stream(ask(player, "gemini:gemini-3-pro")):
                if "reasoning" in delta:
                    break

        asyncio.run(left())
        assert len(drained(player)) > 5


@pytest.mark.parametrize("cut", [0, 10, 200, 900])
def test_a_stream_that_breaks_off_is_an_error(cut: int) -> None:
    with serving() as player:
        player.faults = Faults(cut=cut)
        with pytest.raises(ModelError) as caught:
            drained(player)
    assert caught.value.kind == "connection"


def test_a_stream_that_ends_without_a_reason_is_an_error() -> None:
    with serving(events=EVENTS[:-1]) as player, pytest.raises(ModelError) as caught:
        drained(player)
    assert caught.value.kind == "connection"
    assert caught.value.retryable


def test_a_last_event_without_its_empty_line_counts() -> None:
    with serving(events=sse(EVENTS).rstrip()) as player:
        assert assemble(drained(player))["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("bare", [True, False])
def test_an_error_in_a_stream_is_an_error(bare: bool) -> None:
    error = {"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}}
    tail = json.dumps(error, indent=1).encode() if bare else sse([error])
    with serving(events=sse(EVENTS[:2]) + tail) as player, pytest.raises(ModelError) as caught:
        drained(player)
    assert (caught.value.kind, caught.value.status, caught.value.code) == ("overload", 503, "UNAVAILABLE")


@pytest.mark.parametrize(
    "events", [b"data: {nothing\n\n", b"data: [1]\n\n", b"\xff\xfe\n\n", b'data: {"candidates": 3}\n\n']
)
def test_a_stream_of_something_else_is_malformed(events: bytes) -> None:
    with serving(events=events) as player, pytest.raises(ModelError) as caught:
        drained(player)
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"{}", b'{"choices": []}'])
def test_an_answer_of_something_else_is_malformed(body: bytes) -> None:
    with server(exchange(f"{PATH}:generateContent", body)) as player, pytest.raises(ModelError) as caught:
        backend.complete_sync(ask(player, "gemini:gemini-3-pro"))
    assert caught.value.kind == "malformed"


def test_arguments_in_pieces_are_not_taken_for_a_whole_call() -> None:
    part = {"functionCall": {"name": "f", "willContinue": True}}
    with (
        serving(events=[{**HEAD, "candidates": [candidate([part])]}]) as player,
        pytest.raises(ModelError) as caught,
    ):
        drained(player)
    assert caught.value.kind == "malformed"


# -- errors ----------------------------------------------------------------------------------------------------------


def error(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.074824224s"}
REASON = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    ("status", "body", "kind", "delay"),
    [
        (
            429,
            error(429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", RETRY),
            "rate_limit",
            34.074824224,
        ),
        (429, error(429, "RESOURCE_EXHAUSTED", "Resource exhausted."), "rate_limit", None),
        (429, error(429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."), "quota", None),
        (503, error(503, "UNAVAILABLE", "The model is overloaded."), "overload", None),
        (529, error(529, "", "overloaded"), "overload", None),
        (500, error(500, "INTERNAL", "An internal error has occurred."), "server", None),
        (504, error(504, "DEADLINE_EXCEEDED", "too slow"), "timeout", None),
        (400, error(400, "INVALID_ARGUMENT", "API key not valid.", REASON), "auth", None),
        (401, error(401, "UNAUTHENTICATED", "no credentials"), "auth", None),
        (403, error(403, "PERMISSION_DENIED", "not you"), "auth", None),
        (404, error(404, "NOT_FOUND", "models/x is not found"), "not_found", None),
        (
            400,
            error(
                400,
                "INVALID_ARGUMENT",
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
            ),
            "context_length",
            None,
        ),
        (400, error(400, "INVALID_ARGUMENT", "temperature is wrong"), "bad_request", None),
        (429, [error(429, "RESOURCE_EXHAUSTED", "in a list", RETRY)], "rate_limit", 34.074824224),
        (502, b"<html>bad gateway</html>", "server", None),
    ],
)
def test_errors_by_class(status: int, body: Any, kind: str, delay: float | None) -> None:
    answers = [
        failing(f"{PATH}:{verb}", status, body)
        for verb in ("generateContent", "streamGenerateContent?alt=sse")
    ]
    with server(*answers) as player:
        for ask_it in (backend.complete_sync, lambda request: list(backend.stream_sync(request))):
            with pytest.raises(ModelError) as caught:
                ask_it(ask(player, "gemini:gemini-3-pro"))
            assert (caught.value.kind, caught.value.delay, caught.value.status) == (kind, delay, status)
            assert "key-of-nobody" not in str(caught.value)
            assert caught.value.__context__ is None


def test_nobody_there() -> None:
    with server() as player:
        url = player.url
    with pytest.raises(ModelError) as caught:
        backend.complete_sync({"model": "gemini:m", "messages": MESSAGES, "base_url": url})
    assert caught.value.kind == "connection"


def test_no_answer_in_time() -> None:
    with serving() as player:
        player.faults = Faults(delay=5)
        with pytest.raises(ModelError) as caught:
            backend.complete_sync(ask(player, "gemini:gemini-3-pro", timeout=0.05))
    assert caught.value.kind == "timeout"


def test_retries_of_an_sdk_are_not_promised() -> None:
    with serving() as player, pytest.raises(NotSupported, match="max_retries"):
        backend.complete_sync(ask(player, "gemini:gemini-3-pro", max_retries=2))


def test_a_number_that_json_lacks_is_refused() -> None:
    with (
        serving() as player,
        pytest.raises(ModelError, match="cannot be sent: temperature: nan is no number") as caught,
    ):
        backend.complete_sync(ask(player, "gemini:gemini-3-pro", temperature=float("nan")))
    assert caught.value.kind == "bad_request"


def test_fields_that_steer_the_call() -> None:
    with serving() as player:
        ask_ = ask(
            player,
            "gemini:gemini-3-pro",
            extra_headers={"x-one": "1"},
            extra_query={"$alt": "json;enum-encoding=int"},
            extra_body={"labels": {"a": "é"}},
            max_retries=0,
        )
        backend.complete_sync(ask_)
        seen = player.seen[0]
    assert dict(seen.headers)["x-one"] == "1"
    assert seen.url == f"{PATH}:generateContent?%24alt=json%3Benum-encoding%3Dint"
    assert seen.json()["labels"] == {"a": "é"}
