"""Chat-completions requests in Anthropic's words, and Anthropic's answers in the shared mapping."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom.adapters.models_anthropic import DEFAULT_MAX_TOKENS, answer, body, reader
from agentloom.adapters.models_openai import body as openai_body
from agentloom.adapters.models_route import Route
from agentloom.errors import ModelError
from agentloom.runtime.answers import Answer
from agentloom.runtime.assembly import assemble

ROUTE = Route("anthropic", "anthropic", "claude-x")
HELLO = [{"role": "user", "content": "hello"}]


def said(**request: Any) -> dict[str, Any]:
    return body({"model": "claude-x", "messages": HELLO, **request}, ROUTE, stream=False)


def turns(*messages: dict[str, Any]) -> Any:
    return said(messages=list(messages))["messages"]


def test_the_smallest_request() -> None:
    assert said() == {"model": "claude-x", "max_tokens": DEFAULT_MAX_TOKENS, "messages": HELLO}


@pytest.mark.parametrize("role", ["system", "developer"])
def test_one_in_mid_conversation_stays_where_it_is(role: str) -> None:
    sent = said(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {
                "role": role,
                "content": [{"type": "text", "text": "In French.", "cache_control": {"type": "ephemeral"}}],
            },
        ]
    )
    assert sent["system"] == [{"type": "text", "text": "Be brief."}]
    assert [turn["role"] for turn in sent["messages"]] == ["user", "system"]
    assert sent["messages"][1]["content"] == [
        {"type": "text", "text": "In French.", "cache_control": {"type": "ephemeral"}}
    ]


def test_system_and_developer_messages_before_the_conversation() -> None:
    made = said(
        messages=[
            {"role": "system", "content": "one"},
            {
                "role": "developer",
                "content": [{"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}}],
            },
            *HELLO,
        ]
    )
    assert made["system"] == [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}},
    ]
    assert made["messages"] == HELLO


def test_tool_calls_and_their_results() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": ""}},
    ]
    made = turns(
        *HELLO,
        {"role": "assistant", "content": "I look.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": [{"type": "text", "text": "2"}], "is_error": True},
        {"role": "user", "content": "go on"},
    )
    assert made[1]["content"] == [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
        {"type": "tool_use", "id": "b", "name": "g", "input": {}},
    ]
    assert made[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": "1"},
            {
                "type": "tool_result",
                "tool_use_id": "b",
                "content": [{"type": "text", "text": "2"}],
                "is_error": True,
            },
        ],
    }
    assert made[3] == {"role": "user", "content": "go on"}


def test_images_documents_and_blocks_of_their_own() -> None:
    native = {"type": "document", "source": {"type": "file", "file_id": "f1"}}
    parts = [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"}},
        native,
    ]
    assert turns({"role": "user", "content": parts})[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
        {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "BBBB"},
            "title": "a.pdf",
        },
        native,
    ]


def test_tools() -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}}
    native = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}
    made = said(
        tools=[
            {
                "type": "function",
                "function": {"name": "f", "description": "d", "parameters": schema, "strict": True},
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "function", "function": {"name": "g"}},
            native,
        ]
    )
    assert made["tools"] == [
        {
            "cache_control": {"type": "ephemeral"},
            "name": "f",
            "description": "d",
            "strict": True,
            "input_schema": schema,
        },
        {"name": "g", "input_schema": {"type": "object", "properties": {}}},
        native,
    ]


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        (None, None, None),
        ("auto", None, {"type": "auto"}),
        ("none", None, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ({"type": "function", "function": {"name": "f"}}, None, {"type": "tool", "name": "f"}),
        ({"type": "any"}, False, {"type": "any", "disable_parallel_tool_use": True}),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (None, True, None),
    ],
)
def test_tool_choice(choice: Any, parallel: Any, expected: Any) -> None:
    assert said(tool_choice=choice, parallel_tool_calls=parallel).get("tool_choice") == expected


def test_parameters() -> None:
    schema = {"type": "object"}
    made = said(
        max_completion_tokens=9,
        stop="END",
        user="u-1",
        temperature=0,
        top_k=5,
        thinking={"type": "enabled", "budget_tokens": 1024},
        reasoning_effort="high",
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        stream_options={"include_usage": True},
        brand_new=1,
        timeout=3,
    )
    assert made == {
        "model": "claude-x",
        "messages": HELLO,
        "max_tokens": 9,
        "stop_sequences": ["END"],
        "metadata": {"user_id": "u-1"},
        "temperature": 0,
        "top_k": 5,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "high", "format": {"type": "json_schema", "schema": schema}},
        "brand_new": 1,
    }


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{broken"}}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"seed": 3}, "seed: Anthropic has no such parameter"),
    ({"logprobs": True}, "logprobs"),
    ({"n": 2}, "n: "),
    ({"response_format": {"type": "json_object"}}, "response_format: type 'json_object'"),
    ({"tool_choice": "sometimes"}, "tool_choice: 'sometimes'"),
    ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, r"tools\[0\]"),
    ({"messages": [{"role": "function", "content": "x"}]}, r"messages\[0\]: role 'function'"),
    ({"messages": [{"role": "user", "content": "x", "name": "ann"}]}, r"messages\[0\]\.name"),
    ({"messages": [{"role": "user", "content": 3}]}, r"messages\[0\]\.content: it is int"),
    (
        {"messages": [*HELLO, {"role": "assistant", "content": None, "tool_calls": [CALL]}]},
        r"messages\[1\]\.tool_calls\[0\]\.function\.arguments: they must be a JSON object",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}]},
        r"messages\[0\]\.content\[0\]: input_audio",
    ),
    (
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        "send file_data",
    ),
]


@pytest.mark.parametrize(("request_", "words"), REFUSED, ids=[str(i) for i in range(len(REFUSED))])
def test_what_cannot_be_said_is_refused_with_its_place(request_: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words) as caught:
        said(**request_)
    assert (caught.value.kind, caught.value.retryable) == ("bad_request", False)
    assert caught.value.__context__ is None


THINKING: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-x-20250101",
    "content": [
        {"type": "thinking", "thinking": "first", "signature": "sig"},
        {"type": "redacted_thinking", "data": "zzz"},
        {
            "type": "text",
            "text": "It costs 40.",
            "citations": [{"type": "char_location", "cited_text": "40"}],
        },
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "812"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"id": 812}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 6,
        "cache_read_input_tokens": 4,
        "cache_creation_input_tokens": 3,
        "output_tokens": 5,
    },
}


def test_blocks_that_only_anthropic_has_go_back_as_they_came() -> None:
    made = Answer(answer(THINKING))
    assert (made.text, made.reasoning, made.model) == ("It costs 40.", "first", "claude-x-20250101")
    assert [(call.name, call.arguments) for call in made.tool_calls] == [("look", {"id": 812})]
    usage = made.usage
    assert usage is not None
    assert (usage.input, usage.cached, usage.cache_write, usage.output) == (13, 4, 3, 5)
    again = turns(*HELLO, made.message, made.tool_calls[0].result("40"))
    assert again[1] == {"role": "assistant", "content": THINKING["content"]}
    assert again[2]["content"][0]["tool_use_id"] == "toolu_1"


def test_the_same_message_means_its_text_to_openai() -> None:
    message = Answer(answer(THINKING)).message
    sent = openai_body({"messages": [*HELLO, message]}, Route("openai", "openai", "gpt-4o"), stream=False)
    assert list(sent["messages"][1]) == ["role", "content", "tool_calls"]
    assert "blocks" in message


def test_blocks_of_another_form_are_left_where_they_belong() -> None:
    message = {
        "role": "assistant",
        "content": "hi",
        "blocks": {"responses": [{"type": "reasoning", "id": "rs_1"}]},
    }
    assert turns(*HELLO, message, *HELLO)[1] == {"role": "assistant", "content": "hi"}


def test_a_plain_answer_keeps_no_blocks() -> None:
    plain = {
        **THINKING,
        "content": [{"type": "text", "text": "hi", "citations": None}],
        "stop_reason": "end_turn",
    }
    made = answer(plain)
    assert (made["blocks"], made["content"], made["finish_reason"]) == (None, "hi", "stop")


@pytest.mark.parametrize(
    ("native", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_stop_reasons(native: str, reason: str) -> None:
    made = answer({**THINKING, "content": [], "stop_reason": native, "stop_sequence": "END"})
    assert (made["finish_reason"], made["native_finish_reason"]) == (reason, native)
    assert made["info"]["stop_sequence"] == "END"


def _events() -> list[dict[str, Any]]:
    """THINKING as the stream that would bring it, ping and an unknown event included."""
    head = {
        **THINKING,
        "content": [],
        "stop_reason": None,
        "usage": {**THINKING["usage"], "output_tokens": 1},
    }
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(THINKING["content"]):
        start, deltas = block, []
        if block["type"] == "thinking":
            start = {**block, "thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": "fi"},
                {"type": "thinking_delta", "thinking": "rst"},
            ]
            deltas.append({"type": "signature_delta", "signature": "sig"})
        elif block["type"] == "text":
            start = {"type": "text", "text": ""}
            deltas = [{"type": "citations_delta", "citation": block["citations"][0]}]
            deltas += [{"type": "text_delta", "text": "It costs "}, {"type": "text_delta", "text": "40."}]
        elif "input" in block:
            start = {**block, "input": {}}
            text = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", text[:4], text[4:])]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "brand_new_event"})
    events.append(
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}
    )
    return [*events, {"type": "message_stop"}]


def test_a_stream_adds_up_to_the_whole_answer() -> None:
    reading = reader()
    deltas = [delta for event in _events() for delta in reading.read(event)]
    assert reading.complete
    assert assemble(deltas) == answer(THINKING)
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["It costs ", "40."]


def test_a_stream_that_stops_before_message_stop_is_not_complete() -> None:
    reading = reader()
    for event in _events()[:-1]:
        list(reading.read(event))
    assert not reading.complete


def test_a_tool_without_parameters_and_a_cut_off_one() -> None:
    def stream(partial: list[str]) -> dict[str, Any]:
        block = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
        events: list[dict[str, Any]] = [
            {
                "type": "message_start",
                "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}},
            },
            {"type": "content_block_start", "index": 0, "content_block": block},
            *(
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "input_json_delta", "partial_json": p},
                }
                for p in partial
            ),
            {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"},
        ]
        reading = reader()
        return assemble([delta for event in events for delta in reading.read(event)])

    assert stream([])["tool_calls"][0]["function"]["arguments"] == "{}"
    cut = stream(['{"a": ', "1"])
    assert cut["tool_calls"][0]["function"]["arguments"] == '{"a": 1'
    assert cut["finish_reason"] == "length"


def test_what_is_no_message_is_said() -> None:
    with pytest.raises(ValueError, match="no Anthropic message"):
        answer({"choices": []})


def test_a_second_message_in_one_stream_is_no_answer() -> None:
    """A proxy that tries again in mid-stream: the first half of a tool call must not reach the agent as a call."""
    reading = reader()
    start = {"type": "message_start", "message": {"id": "msg_1", "usage": {}}}
    list(reading.read(start))
    with pytest.raises(ValueError, match="a second message began"):
        list(reading.read(start))
