"""Scripted replies as OpenAI's Responses API writes them.

Wire forms follow the public API reference; the official SDK is run against them in the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentloom.testing.replies import Says

__all__ = ["events", "response"]

_EMPTY: dict[str, dict[str, Any]] = {
    "message": {"content": []},
    "reasoning": {"summary": []},
    "function_call": {"arguments": ""},
}
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def response(reply: Says, model: str, number: int) -> dict[str, Any]:
    """The body of a whole answer. ``number`` counts requests from 1; ids are made from it."""
    asked, cached, made, thought = reply.usage
    reason = _INCOMPLETE.get(reply.finish_reason)
    return {
        "id": f"resp_fake_{number}",
        "object": "response",
        "created_at": 1700000000 + number,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": reply.model or model,
        "output": _items(reply, number),
        "parallel_tool_calls": True,
        "service_tier": "default",
        "usage": {
            "input_tokens": asked,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": thought},
            "total_tokens": asked + made,
        },
        **reply.extra,
    }


def events(reply: Says, model: str, number: int) -> Iterator[dict[str, Any]]:
    """The events of a streamed answer, one a piece, each with its type and number."""
    for count, event in enumerate(_events(reply, model, number)):
        yield {**event, "sequence_number": count}


def _items(reply: Says, number: int) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        items.append(
            {
                "id": f"rs_fake_{number}",
                "type": "reasoning",
                "summary": summary,
                "encrypted_content": f"enc-fake-{number}",
            }
        )
    parts: list[dict[str, Any]] = []
    if reply.text is not None:
        tokens = [
            _token(piece, value) for piece, value in zip(reply.split(), reply.logprobs or (), strict=False)
        ]
        parts.append({"type": "output_text", "annotations": [], "logprobs": tokens, "text": reply.text})
    if reply.refusal is not None:
        parts.append({"type": "refusal", "refusal": reply.refusal})
    if parts:
        made = {"id": f"msg_fake_{number}", "type": "message", "status": "completed", "role": "assistant"}
        items.append({**made, "content": parts})
    for index, want in enumerate(reply.tools):
        call = {"type": "function_call", "id": f"fc_fake_{number}_{index}", "status": "completed"}
        name = want.id or f"call_fake_{number}_{index}"
        items.append({**call, "call_id": name, "name": want.name, "arguments": want.text})
    return items


def _token(piece: str, value: float) -> dict[str, Any]:
    return {"token": piece, "logprob": value, "bytes": list(piece.encode()), "top_logprobs": []}


def _events(reply: Says, model: str, number: int) -> Iterator[dict[str, Any]]:
    whole = response(reply, model, number)
    begun: dict[str, Any] = {
        **whole,
        "status": "in_progress",
        "output": [],
        "usage": None,
        "incomplete_details": None,
    }
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        empty = {**item, **_EMPTY[item["type"]]}
        yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        if item["type"] == "message":
            for part, content in enumerate(item["content"]):
                yield from _part(reply, content, {**place, "content_index": part})
        elif item["type"] == "reasoning":
            text = {**place, "summary_index": 0}
            yield {"type": "response.reasoning_summary_text.delta", **text, "delta": reply.reasoning}
            yield {"type": "response.reasoning_summary_text.done", **text, "text": reply.reasoning}
        else:
            half = len(item["arguments"]) // 2
            for piece in (item["arguments"][:half], item["arguments"][half:]):
                yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
            yield {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _part(reply: Says, content: dict[str, Any], place: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if content["type"] == "refusal":
        yield {"type": "response.refusal.delta", **place, "delta": content["refusal"]}
        yield {"type": "response.refusal.done", **place, "refusal": content["refusal"]}
        return
    yield {"type": "response.content_part.added", **place, "part": {**content, "text": "", "logprobs": []}}
    for number, piece in enumerate(reply.split()):
        tokens = [] if reply.logprobs is None else [_token(piece, reply.logprobs[number])]
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": tokens}
    done = {**place, "text": content["text"], "logprobs": content["logprobs"]}
    yield {"type": "response.output_text.done", **done}
