"""Answers in every recorded form come to the same words."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.answered import answer_of, wire_answer

CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "refund", "arguments": '{"order": 812, "amount": 40}'},
}
OPENAI = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL]}
ANTHROPIC = [
    {"type": "text", "text": "Yes."},
    {"type": "tool_use", "name": "refund", "input": {"order": 812, "amount": 40}},
]


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"content": "Refunded."}, '"Refunded."'),
        (OPENAI, "refund(812, 40)"),
        ({"status": 200, "json": {"choices": [{"message": OPENAI}]}}, "refund(812, 40)"),
        ({"json": {"choices": [{"message": {"content": "Hi"}}]}}, '"Hi"'),
        ({"json": {"choices": [{"message": {"content": None, "refusal": "No."}}]}}, '"No."'),
        ({"json": {"type": "message", "content": ANTHROPIC}}, "refund(812, 40)"),
        (
            {"tool_calls": [CALL, {"function": {"name": "notify", "arguments": "not json"}}]},
            "refund(812, 40), notify(not json)",
        ),
    ],
)
def test_whole_answers(tree: Any, words: str) -> None:
    answer = answer_of(tree)
    assert answer is not None
    assert answer.words(60) == words


def openai(**delta: object) -> Any:
    return {"json": {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}}


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        ([{"status": 200}, openai(role="assistant"), openai(content="It "), openai(content="is."), {"data": "[DONE]"}],
         '"It is."'),
        ([{"content": "It "}, {"content": "is."}], '"It is."'),
        (
            [
                openai(tool_calls=[{"index": 0, "function": {"name": "refund", "arguments": ""}}]),
                openai(tool_calls=[{"index": 0, "function": {"arguments": '{"order": '}}]),
                openai(tool_calls=[{"index": 0, "function": {"arguments": "812}"}}]),
                openai(tool_calls=[{"index": 1, "function": {"name": "notify", "arguments": "{}"}}]),
            ],
            "refund(812), notify()",
        ),
        (
            [
                {"json": {"type": "message_start", "message": {}}},
                {"json": {"type": "content_block_start", "content_block": {"type": "text", "text": ""}}},
                {"json": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Let me."}}},
                {"json": {"type": "content_block_start", "content_block": {"type": "tool_use", "name": "refund"}}},
                {"json": {"type": "content_block_delta", "delta": {"partial_json": '{"o":812}'}}},
            ],
            "refund(812)",
        ),
    ],
)  # fmt: skip
def test_streamed_answers(chunks: list[Any], words: str) -> None:
    answer = answer_of(None, chunks)
    assert answer is not None
    assert answer.words(60) == words


@pytest.mark.parametrize(
    "tree", [None, 5, "text", [], {}, {"status": 500}, {"json": {"error": {}}}, {"json": {"choices": []}}]
)
def test_what_is_no_answer(tree: Any) -> None:
    assert answer_of(tree, [{"status": 200}, "x", {"data": "[DONE]"}]) is None


def test_words_are_cut() -> None:
    answer = answer_of({"content": "x" * 500})
    assert answer is not None
    assert len(answer.words(40)) == 40


HEADERS: Any = {"x-request-id": "req_1", "date": "today"}


def test_an_exchange_is_its_answer_without_the_envelope() -> None:
    message = {
        "content": "Hi",
        "tool_calls": [{"id": "call_1", "function": {"name": "look", "arguments": "{}"}}],
    }
    body: Any = {"id": "chatcmpl-1", "choices": [{"message": message, "finish_reason": "tool_calls"}]}
    said: Any = {
        "content": "Hi",
        "tool_calls": [{"name": "look", "arguments": "{}"}],
        "finish_reason": "tool_calls",
    }
    assert wire_answer({"status": 200, "headers": HEADERS, "json": body}) == said
    assert wire_answer({"status": 200, "headers": HEADERS, "json": {"choices": body["choices"] * 2}}) is None
    assert wire_answer({"status": 500, "headers": HEADERS, "text": "no"}) is None
    assert wire_answer(body) is None


def test_a_streamed_exchange_is_what_its_chunks_add_up_to() -> None:
    pieces: Any = [{"json": {"choices": [{"delta": {"content": text}}]}} for text in ("It ", "rains.")]
    head: Any = {"status": 200, "headers": HEADERS}
    assert wire_answer(None, [head, *pieces]) == {"content": "It rains."}
    assert wire_answer(None, [head]) is None
