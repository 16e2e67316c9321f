"""Case 17, the counts: tokens by class as OpenAI's and Anthropic's SDKs report them, whole and streamed. Totals equal a
sum by hand: cached tokens are part of OpenAI's input and stand beside Anthropic's, and reasoning is part of the output.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentloom import Trace
from tests.cases.three import claude, client, three_times
from tests.cases.wire import Sent, seen

ASK: Any = {"model": "gpt-9-2031-01-31", "messages": [{"role": "user", "content": "hi"}]}
WHOLE = {"content-type": "application/json"}


def _sent(body: Any) -> Sent:
    return Sent(json.dumps(body).encode(), headers=WHOLE)


def _events(*bodies: Any, named: bool) -> Sent:
    lines = [
        (f"event: {body['type']}\n" if named else "") + f"data: {json.dumps(body)}\n\n" for body in bodies
    ]
    return Sent("".join([*lines, "" if named else "data: [DONE]\n\n"]).encode(), slice=50)


CHAT_USAGE = {
    "prompt_tokens": 1000, "completion_tokens": 300, "total_tokens": 1300,
    "prompt_tokens_details": {"cached_tokens": 896, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 256, "accepted_prediction_tokens": 0},
}  # fmt: skip
CHAT = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-9-2031-01-31", "usage": CHAT_USAGE,
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}],
}  # fmt: skip
PIECE = {
    "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-9-2031-01-31",
    "choices": [{"index": 0, "finish_reason": None, "delta": {"role": "assistant", "content": "hello"}}],
}  # fmt: skip
RESPONSE = {
    "id": "r1", "object": "response", "created_at": 1, "model": "gpt-9-2031-01-31", "status": "completed", "output": [],
    "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    "usage": {
        "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 896},
        "output_tokens": 300, "output_tokens_details": {"reasoning_tokens": 256}, "total_tokens": 1300,
    },
}  # fmt: skip
CLAUDE_INPUT = {"input_tokens": 4, "cache_read_input_tokens": 896, "cache_creation_input_tokens": 100}
MESSAGE = {
    "id": "m1", "type": "message", "role": "assistant", "model": "claude-unheard-of-20310131",
    "stop_reason": "end_turn", "stop_sequence": None, "content": [{"type": "text", "text": "hello"}],
    "usage": CLAUDE_INPUT | {"output_tokens": 300},
}  # fmt: skip
BEGUN = MESSAGE | {"content": [], "stop_reason": None, "usage": CLAUDE_INPUT | {"output_tokens": 1}}
ENDED = {"stop_reason": "end_turn", "stop_sequence": None}
STREAMED_MESSAGE = (
    {"type": "message_start", "message": BEGUN},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hello"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": ENDED, "usage": {"output_tokens": 300}},
    {"type": "message_stop"},
)  # fmt: skip


def chat(url: str) -> Any:
    with client(url) as made:
        return seen(made.chat.completions.create(**ASK))


def chat_streamed(url: str) -> Any:
    with client(url) as made:
        asked = made.chat.completions.create(**ASK, stream=True, stream_options={"include_usage": True})
        return [seen(chunk) for chunk in asked]


def responses(url: str) -> Any:
    with client(url) as made:
        return seen(made.responses.create(model=ASK["model"], input="hi"))


def message(url: str) -> Any:
    with claude(url) as made:
        return seen(made.messages.create(**ASK | {"model": MESSAGE["model"]}, max_tokens=9))


def message_streamed(url: str) -> Any:
    with (
        claude(url) as made,
        made.messages.stream(**ASK | {"model": MESSAGE["model"]}, max_tokens=9) as stream,
    ):
        return [[seen(event) for event in stream], seen(stream.get_final_message())]


OPENAI = {"input": 1000, "cached": 896, "output": 300, "reasoning": 256}
CLAUDE = {"input": 4 + 896 + 100, "cached": 896, "cache_write": 100, "output": 300}
CASES = [
    (chat, _sent(CHAT), OPENAI),
    (chat_streamed, _events(PIECE, PIECE | {"choices": [], "usage": CHAT_USAGE}, named=False), OPENAI),
    (responses, _sent(RESPONSE), OPENAI),
    (message, _sent(MESSAGE), CLAUDE),
    (message_streamed, _events(*STREAMED_MESSAGE, named=True), CLAUDE),
]


@pytest.mark.parametrize(
    ("program", "answer", "usage"), CASES, ids=[getattr(one[0], "__name__", "") for one in CASES]
)
def test_tokens_by_class(program: Any, answer: Sent, usage: dict[str, int]) -> None:
    trace = three_times(program, answer)
    (call,) = trace.calls
    assert call.usage == usage
    assert call.name in (ASK["model"], MESSAGE["model"]), "an unknown dated model keeps its own name"


def test_totals_equal_a_sum_by_hand() -> None:
    """Two providers in one run that count differently: nothing is counted twice and nothing is left out."""

    def both(url: str) -> Any:
        return [chat(url), message(url), responses(url)]

    trace: Trace = three_times(both, _sent(CHAT), _sent(MESSAGE), _sent(RESPONSE))
    totals: dict[str, int] = {}
    for call in trace.calls:
        for name, count in (call.usage or {}).items():
            totals[name] = totals.get(name, 0) + count
    assert totals == {
        "input": 1000 + (4 + 896 + 100) + 1000, "cached": 3 * 896, "cache_write": 100,
        "output": 3 * 300, "reasoning": 2 * 256,
    }  # fmt: skip


def test_a_stream_without_counts_is_unknown_and_never_zero() -> None:
    def program(url: str) -> Any:
        with client(url) as made:
            return [seen(chunk) for chunk in made.chat.completions.create(**ASK, stream=True)]

    (call,) = three_times(program, _events(PIECE, named=False)).calls
    assert call.usage is None
