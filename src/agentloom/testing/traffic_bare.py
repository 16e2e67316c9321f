"""Answers without their requests: a body, or the events of a stream, put back on the wire.

Forms: https://html.spec.whatwg.org/multipage/server-sent-events.html, and AWS event streams
(https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html).
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Sequence
from typing import Any, cast

from agentloom.errors import TrafficError
from agentloom.testing.exchanges import EVENT_STREAM, Exchange, Headers, is_stream, media_type

__all__ = ["bare", "event_lines", "event_message", "is_answer", "sse", "stream_of"]

_SSE = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*(?::|data:|event:|id:|retry:)[^\r\n]*(?:\r\n|\r|\n)")
_DONE = ("chat.completion.chunk", "text_completion", "text_completion.chunk")
_CONVERSE = frozenset(
    """messageStart contentBlockStart contentBlockDelta contentBlockStop messageStop metadata
    internalServerException modelStreamErrorException serviceUnavailableException throttlingException
    validationException""".split()
)


def bare(data: bytes, name: str) -> Exchange | None:
    """The answer that ``data`` is, or None: server-sent events, events one a line, or a JSON body of a provider."""
    if _SSE.match(data):
        return _answer(name, data, "text/event-stream; charset=utf-8")
    if media_type((), data).startswith(("audio/", "image/")):
        return body_of(data, name)
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        whole = None
    if is_answer(whole):
        return body_of(data, name)
    if (found := _with_status(whole, name)) is not None:
        return found
    lines = event_lines(data)
    return None if lines is None else stream(lines, name)


def stream_of(data: bytes, name: str) -> Exchange | None:
    """``data`` as the events of a stream, whatever they say: server-sent, or a JSON object a line; None for others."""
    if _SSE.match(data):
        return bare(data, name)
    lines = _object_lines(data)
    return None if lines is None else stream(lines, name)


def _with_status(whole: object, name: str) -> Exchange | None:
    """An answer kept with its status and headers: ``{"status": 200, "headers": {...}, "body": "..."}``."""
    if not isinstance(whole, dict):
        return None
    said = cast("dict[str, Any]", whole)
    status, given, body = said.get("status"), said.get("headers"), said.get("body")
    if not set(said) <= {"status", "statusText", "headers", "body"} or not isinstance(given, dict):
        return None
    if type(status) is not int or not 200 <= status <= 599 or not isinstance(body, str | dict | list):
        return None
    pairs = cast("dict[str, object]", given).items()
    headers: Headers = tuple((key, value) for key, value in pairs if isinstance(value, str))
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    data = text.encode("utf-8", "surrogatepass")
    return Exchange(name, "POST", "", (), None, status, headers, data, is_stream(media_type(headers, data)))


def body_of(data: bytes, name: str) -> Exchange:
    """Any bytes as the body of an answer."""
    return _answer(name, data, media_type((), data))


def stream(events: Sequence[dict[str, Any]], name: str) -> Exchange:
    """Events of a stream as the provider's API sends them: messages of an event stream (Bedrock), else server-sent;
    Ollama's one object a line."""
    if events and all(_is_ollamas(event) for event in events):
        lines = b"".join(json.dumps(event, ensure_ascii=False).encode() + b"\n" for event in events)
        return _answer(name, lines, "application/x-ndjson")
    if all(len(event) == 1 and next(iter(event)) in _CONVERSE for event in events):
        made = b"".join(event_message(kind, said) for event in events for kind, said in event.items())
        return _answer(name, made, EVENT_STREAM)
    return _answer(name, sse(events), "text/event-stream; charset=utf-8")


def _answer(name: str, body: bytes, kind: str) -> Exchange:
    headers: Headers = (("content-type", kind),)
    return Exchange(name, "POST", "", (), None, 200, headers, body, is_stream(media_type(headers, body)))


def event_lines(data: bytes) -> list[dict[str, Any]] | None:
    """The events of a file with one JSON object a line, or None: every line has to look like an event of a stream."""
    events = _object_lines(data)
    return events if events and all(_is_event(event) for event in events) else None


def _object_lines(data: bytes) -> list[dict[str, Any]] | None:
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    if not lines or not all(line.lstrip().startswith(b"{") for line in lines):
        return None
    try:
        return [json.loads(line) for line in lines]
    except (ValueError, RecursionError):
        return None


def _is_event(event: dict[str, Any]) -> bool:
    if len(event) == 1 and next(iter(event)) in _CONVERSE:
        return True
    if str(event.get("object", "")).endswith((".chunk", "text_completion")):
        return True
    kind = event.get("type")
    if isinstance(event.get("event_type"), str) or _is_ollamas(event):  # Google's Interactions API; Ollama
        return True
    if isinstance(kind, str):  # `message_start`, `response.created`, `content-delta`, `ping`, `error`
        return event.get("role") is None
    choices = event.get("choices")
    if isinstance(choices, list):  # none in what Azure says of the prompt, before the answer
        return not choices or "delta" in str(cast("list[object]", choices))[:2000]
    return isinstance(event.get("candidates"), list)


def _is_ollamas(event: dict[str, Any]) -> bool:
    """https://github.com/ollama/ollama/blob/main/docs/api.md: every line says whether it is the last."""
    return isinstance(event.get("done"), bool) and ("message" in event or "response" in event)


def is_answer(body: object) -> bool:
    """Whether a JSON value has the form of a whole answer of a model API: by its fields, not by who sent it."""
    if not isinstance(body, dict):
        return False
    said = cast("dict[str, Any]", body)
    output, message = said.get("output"), said.get("message")
    if str(said.get("object", "")).endswith(".chunk"):
        return False
    return (
        isinstance(said.get("choices"), list)
        or isinstance(said.get("candidates"), list)
        or (said.get("object") == "response" and isinstance(output, list))
        or (isinstance(output, dict) and "message" in output and "usage" in said)
        or (said.get("type") == "message" and isinstance(said.get("content"), list))
        or (isinstance(message, dict) and ("finish_reason" in said or "done" in said))
        or (isinstance(said.get("response"), str) and isinstance(said.get("done"), bool))
        or isinstance(said.get("embeddings"), list)
        or (said.get("object") in ("list", "embedding") and isinstance(said.get("data"), list))
        or (isinstance(said.get("error"), dict | str) and len(said) <= 4)
    )


def sse(events: Sequence[dict[str, Any]]) -> bytes:
    """Server-sent events: named where each event has a ``type``, closed with ``[DONE]`` where OpenAI's form does so."""
    parts: list[str] = []
    for event in events:
        kind = event.get("type", event.get("event_type"))
        head = f"event: {kind}\n" if isinstance(kind, str) and kind.isprintable() else ""
        parts.append(f"{head}data: {json.dumps(event, ensure_ascii=False)}\n\n")
    if events and str(events[-1].get("object")) in _DONE:
        parts.append("data: [DONE]\n\n")
    return "".join(parts).encode("utf-8", "surrogatepass")


def event_message(kind: str, said: object) -> bytes:
    """One message of an AWS event stream with a JSON payload: prelude, its CRC-32, headers, payload, CRC-32 of all."""
    payload = json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")
    error = kind.endswith("Exception")
    names = {
        ":exception-type" if error else ":event-type": kind,
        ":content-type": "application/json",
        ":message-type": "exception" if error else "event",
    }
    headers = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
        for name, value in names.items()
    )
    prelude = (16 + len(headers) + len(payload)).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    head = prelude + binascii.crc32(prelude).to_bytes(4, "big")
    message = head + headers + payload
    if len(message) > 16 * 1024 * 1024:
        raise TrafficError("an event of more than 16 MiB does not fit into a message of an event stream")
    return message + binascii.crc32(message).to_bytes(4, "big")
