"""Scripted replies as Google's generateContent writes them.

Source of the forms: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentloom.testing.replies import Fails, Says

__all__ = ["error_body", "events", "response"]

_FINISH = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def error_body(reply: Fails) -> dict[str, Any]:
    """The body of an error."""
    status = reply.code or _STATUS.get(reply.status, "INTERNAL")
    return {"error": {"code": reply.status, "message": reply.message, "status": status}}


def response(reply: Says, model: str, number: int) -> dict[str, Any]:
    """A whole answer."""
    parts: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        parts.append({"text": reply.reasoning, "thought": True})
    if reply.text is not None:
        parts.append({"text": reply.text})
    parts += _calls(reply)
    return _answer(reply, model, number, parts, ended=True, usage=True)


def events(reply: Says, model: str, number: int) -> Iterator[dict[str, Any]]:
    """The events of a streamed answer, each an answer of its own form with more of the parts."""
    pieces: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        pieces.append({"text": reply.reasoning, "thought": True})
    pieces += [{"text": piece} for piece in reply.split()]
    pieces += _calls(reply)
    for index, part in enumerate(pieces):
        last = index == len(pieces) - 1
        yield _answer(reply, model, number, [part], ended=last, usage=last)


def _calls(reply: Says) -> list[dict[str, Any]]:
    return [
        {
            "functionCall": {"name": want.name, "args": json.loads(want.text)}
            | ({"id": want.id} if want.id else {})
        }
        for want in reply.tools
    ]


def _answer(
    reply: Says, model: str, number: int, parts: list[dict[str, Any]], *, ended: bool, usage: bool
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if ended:
        candidate["finishReason"] = _FINISH.get(reply.finish_reason, reply.finish_reason)
    body: dict[str, Any] = {"candidates": [candidate], "modelVersion": reply.model or model}
    if usage:
        asked, cached, made, thought = reply.usage
        counts = {
            "promptTokenCount": asked,
            "candidatesTokenCount": made,
            "totalTokenCount": asked + made + thought,
        }
        if cached:
            counts["cachedContentTokenCount"] = cached
        if thought:
            counts["thoughtsTokenCount"] = thought
        body["usageMetadata"] = counts
    return body | {"responseId": f"resp-fake-{number}"} | dict(reply.extra)
