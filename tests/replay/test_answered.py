"""Answers in every recorded form come to the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom.replay.answered import Answered, answer_of, wire_answer
from agentloom.replay.text import show

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


# -- every form, member by member -------------------------------------------------------------------------------------


def _said(tree: Any, *chunks: Any) -> tuple[str, list[tuple[str, str]]] | None:
    answer = answer_of(tree, chunks)
    return None if answer is None else (answer.text, answer.tools)


def test_of_a_message_its_text_comes_before_its_refusal() -> None:
    assert _said({"content": "yes", "refusal": "no"}) == ("yes", [])
    assert _said({"content": "", "refusal": "no"}) == ("no", [])
    assert _said({"content": ["parts"], "refusal": 5}) == ("", [])
    assert _said({"content": "x", "tool_calls": "none"}) == ("x", [])
    assert _said({"tool_calls": []}) == ("", [])


def test_tool_calls_are_told_in_their_own_order() -> None:
    custom = {"type": "custom", "custom": {"name": "sql", "input": "select 1"}}
    indexed = {"index": 2, "function": {"name": "c", "arguments": "{}"}}
    calls = [
        CALL,
        custom,
        indexed,
        {"index": -1, "function": {"name": "d"}},
        "odd",
        {"function": "odd"},
        {"function": {}},
    ]
    assert _said({"tool_calls": calls}) == (
        "",
        [
            ("refund", '{"order": 812, "amount": 40}'),
            ("sql", "select 1"),
            ("c", "{}"),
            ("d", ""),
        ],
    )


def test_a_whole_message_may_list_its_calls_in_another_order() -> None:
    calls = [{"index": index, "function": {"name": name}} for index, name in ((1, "b"), (0, "a"))]
    assert _said({"tool_calls": calls}) == ("", [("a", ""), ("b", "")])


@pytest.mark.parametrize(("index", "place"), [(0, 0), (999, 999), (1000, 0), (-1, 0), ("2", 0), (None, 0)])
def test_an_index_that_cannot_be_is_the_place_in_the_list(index: Any, place: int) -> None:
    said = _said(None, openai(tool_calls=[{"index": index, "function": {"name": "f"}}]))
    assert said is not None
    assert (len(said[1]), said[1][place]) == (place + 1, ("f", ""))


def test_an_exchange_holds_a_message_in_one_of_the_known_places() -> None:
    message = {"content": "Hi"}
    assert _said({"json": {"choices": [{"message": message}, {"message": {"content": "Ho"}}]}}) == ("Hi", [])
    assert _said({"choices": [{"message": message}]}) == ("Hi", [])
    assert _said({"json": {"choices": [{"message": "text"}], "content": "Hi"}}) is None
    assert _said({"json": {"choices": ["text"], "content": "Hi"}}) == ("Hi", [])
    assert _said({"json": {"choices": {"0": 1}, "tool_calls": []}}) == ("", [])
    assert _said({"json": "text", "content": "Hi"}) is None
    blocks = [*ANTHROPIC, {"type": "text", "text": " More."}, {"type": "image", "text": "no"}, "odd"]
    assert _said({"type": "message", "content": blocks}) == (
        "Yes. More.",
        [("refund", '{"order":812,"amount":40}')],
    )
    assert _said({"type": "other", "content": blocks}) == ("", [])
    assert _said({"type": "message", "content": "Hi"}) == ("Hi", [])
    bare = {
        "type": "message",
        "content": [{"type": "tool_use", "name": "now"}, {"type": "tool_use", "input": {"a": 1}}],
    }
    assert _said(bare) == ("", [("now", "{}"), ("", '{"a":1}')])


def test_events_of_streams_in_every_known_form() -> None:
    assert _said(None, {"choices": [{"delta": {"content": "a"}}]}, {"choices": []}, {"choices": ["x"]}) == (
        "a",
        [],
    )
    assert _said(None, {"choices": []}) == ("", [])
    assert _said(None, {"choices": [{"delta": None}]}) == ("", [])
    assert _said(None, {"choices": [{}]}) == ("", [])
    assert _said(None, {"choices": [{"delta": "text"}]}) is None
    assert _said(None, {"content": "a"}, {"other": 1}, {"json": "x"}, 5) == ("a", [])
    assert _said(None, {"other": 1}) is None
    assert _said(None, 5) is None
    assert _said(None, {"json": "x"}) is None
    assert _said(None, {"type": ["content_block"]}) is None
    assert _said(None, {"tool_calls": [{"function": {"name": "f"}}]}) == ("", [("f", "")])
    assert _said(None, {"tool_calls": "x"}) == ("", [])
    assert _said(None, openai(tool_calls=[{"function": {"name": "f"}}, {"function": {"name": "g"}}])) == (
        "",
        [("fg", "")],
    )


def test_events_of_content_blocks_add_up() -> None:
    def event(kind: str, **more: Any) -> Any:
        return {"type": f"content_block_{kind}", **more}

    start = event("start", content_block={"type": "tool_use", "name": "refund"})
    assert _said(
        None, event("delta", delta={"text": "a"}), event("stop"), event("delta", delta={"text": "b"})
    ) == ("ab", [])
    piece = event("delta", delta={"partial_json": '{"o":'}), event("delta", delta={"partial_json": "1}"})
    assert _said(None, start, piece[0], start, *piece) == ("", [("refund", '{"o":'), ("refund", '{"o":1}')])
    assert _said(None, *piece) == ("", [])
    assert _said(None, event("start", content_block={"type": "text", "name": "x"})) == ("", [])
    assert _said(None, event("start", content_block="odd", delta="odd")) == ("", [])
    assert _said(None, event("start", content_block={"type": "tool_use"})) == ("", [("", "")])
    assert _said(None, {"type": "message_delta", "delta": {"text": "a"}}) is None


def test_the_words_of_an_answer() -> None:
    def words(width: int, text: str, *tools: tuple[str, str]) -> str:
        return Answered(text, list(tools)).words(width)

    assert words(60, "text", ("f", '{"a": 1, "b": "x"}'), ("g", "{}")) == 'f(1, "x"), g()'
    assert words(60, "", ("f", "[1]"), ("g", "a\nb"), ("h", "")) == r"f([1]), g(a\nb), h()"
    long = json.dumps({"a": "x" * 100})
    assert words(200, "", ("f", long)) == f"f({show('x' * 100, 40)})"
    assert words(20, "", ("f", long)) == f"f({show('x' * 100, 40)})"[:17] + "..."
    assert words(20, "y" * 100) == show("y" * 100, 20)


def test_of_an_exchange_the_reason_of_its_end_is_that_of_its_form() -> None:
    def wire(body: Any, **more: Any) -> Any:
        return wire_answer({"headers": HEADERS, "json": body, **more})

    assert wire({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]}) == {
        "content": "a", "finish_reason": "stop",
    }  # fmt: skip
    assert wire({"type": "message", "content": ANTHROPIC[:1], "stop_reason": "end_turn"}) == {
        "content": "Yes.", "finish_reason": "end_turn",
    }  # fmt: skip
    assert wire({"content": "a", "choices": []}) == {"content": "a", "finish_reason": None}
    assert wire({"content": "a", "choices": ["odd"]}) == {"content": "a", "finish_reason": None}
    assert wire({"content": "a", "choices": "odd", "finish_reason": "x"}) == {
        "content": "a",
        "finish_reason": "x",
    }
    assert wire({"error": {}}) is None
    assert wire("text") is None
    assert wire_answer({"json": {"content": "a"}}) is None
    assert wire_answer("text", [{"content": "a"}]) is None
    assert wire_answer(None) is None


def test_an_event_that_says_the_whole_text_stands_for_what_came_before() -> None:
    assert _said(None, {"content": "par"}, {"whole": {"content": "partly"}}, {"content": "!"}) == (
        "partly!",
        [],
    )
    assert _said(None, {"whole": {"content": 5}}) == ("", [])
    assert _said(None, {"content": "a"}, {"whole": "x"}, {"whole": {}}) == ("a", [])
