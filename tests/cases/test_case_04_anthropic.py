"""Case 4 with Anthropic's SDK: a ping, reasoning, and a tool's argument split over three, as events of the same types
in the same order; the message that the SDK assembles is the same. Each one bare, recorded and replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases.three import aclaude, claude, three_times
from tests.cases.wire import Sent, seen

ASK: Any = {"model": "claude", "max_tokens": 900, "messages": [{"role": "user", "content": "hi"}]}


def _argument(text: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": text}
    return {"type": "content_block_delta", "index": 1, "delta": delta}


def _thought(**delta: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": delta}


TOOL = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
STOP = {"stop_reason": "tool_use", "stop_sequence": None}
HEAD: dict[str, Any] = {
    "id": "m1", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None,
    "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": HEAD},
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    _thought(type="thinking_delta", thinking="It is an order."),
    _thought(type="signature_delta", signature="c2ln"),
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": TOOL},
    _argument('{"a"'),
    _argument(': "é'),
    _argument('\U0001f600"}'),
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": STOP, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
]  # fmt: skip
WIRE = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in EVENTS).encode()


def events(url: str) -> Any:
    with claude(url) as made:
        return [seen(one) for one in made.messages.create(**ASK, stream=True)]


async def events_async(url: str) -> Any:
    async with aclaude(url) as made:
        return [seen(one) async for one in await made.messages.create(**ASK, stream=True)]


def assembled(url: str) -> Any:
    with claude(url) as made, made.messages.stream(**ASK) as stream:
        return [[seen(one) for one in stream], seen(stream.get_final_message())]


async def assembled_async(url: str) -> Any:
    async with aclaude(url) as made, made.messages.stream(**ASK) as stream:
        return [[seen(one) async for one in stream], seen(await stream.get_final_message())]


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("program", [events, events_async, assembled, assembled_async])
def test_every_event_comes_back(program: Any, size: int) -> None:
    trace = three_times(program, Sent(WIRE, slice=size))
    kept = [chunk["json"] for chunk in trace.calls[0].chunks if "json" in chunk]
    assert kept == EVENTS
    if program in (assembled, assembled_async):
        (thinking, tool) = trace.output[1]["fields"]["content"][1:]
        assert thinking["fields"]["thinking"] == ["str", "It is an order."]
        assert tool["fields"]["input"] == {"dict": [["a", ["str", "é😀"]]]}


def early(url: str) -> Any:
    """Left after three events, as with ``with`` as by ``close``."""
    out: list[Any] = []
    with claude(url) as made:
        with made.messages.create(**ASK, stream=True) as stream:
            for one in stream:
                out.append(seen(one))
                if len(out) == 3:
                    break
        out.append(stream.response.is_closed)
        left = made.messages.create(**ASK, stream=True)
        out.append(seen(next(left)))
        left.close()
        out.append(left.response.is_closed)
        raw = made.messages.with_raw_response.create(**ASK, stream=True)
        out.append([raw.status_code, type(raw).__name__, len(list(raw.parse()))])
    return out


def test_left_early_and_raw() -> None:
    trace = three_times(early, Sent(WIRE, slice=40))
    assert [call.status for call in trace.calls] == ["closed", "closed", "ok"]
