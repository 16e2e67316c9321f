"""Scripted replies for `FakeProvider`, and how they look on the wire of each protocol.

Wire forms follow the public API references of OpenAI chat completions and Anthropic messages (those of OpenAI's
Responses API are in `replies_responses`); the official SDKs are run against them in the tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agentloom.testing import replies_google, replies_responses

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Drops", "Fails", "Raw", "Reply", "Says", "Wants", "error_body", "message", "stream"]

Protocol = Literal["openai", "anthropic", "responses", "google", "embeddings", "completions", "other"]
_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_STATUS_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Wants:
    """A tool call in a reply. ``arguments``: a mapping, or the exact text, to script malformed JSON (in a stream, or
    for OpenAI: a whole answer of Anthropic holds an object)."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None

    @property
    def text(self) -> str:
        return (
            self.arguments
            if isinstance(self.arguments, str)
            else json.dumps(dict(self.arguments), ensure_ascii=False)
        )


@dataclass(frozen=True, slots=True)
class Says:
    """An answer. ``pieces`` are the chunks of a stream (default: words).

    ``usage`` is (input, cached, output, reasoning) in tokens.
    ``logprobs``: token log probabilities for the whole text, one number a piece (OpenAI only). ``latency``: seconds
    before the first byte. ``break_after``: a stream breaks off after that many events, as a lost connection does;
    ``error_after``: a stream sends an error event (overloaded) after that many events.
    """

    text: str | None = None
    tools: Sequence[Wants] = ()
    reasoning: str | None = None
    refusal: str | None = None
    finish: str | None = None
    model: str | None = None
    fingerprint: str | None = "fp_fake"
    usage: tuple[int, int, int, int] = (10, 0, 5, 0)
    logprobs: Sequence[float] | None = None
    pieces: Sequence[str] | None = None
    latency: float = 0.0
    break_after: int | None = None
    error_after: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def finish_reason(self) -> str:
        return self.finish or ("tool_calls" if self.tools else "stop")

    def split(self) -> list[str]:
        if self.pieces is not None:
            return list(self.pieces)
        words = (self.text or "").split(" ")
        return (
            [word if i == len(words) - 1 else word + " " for i, word in enumerate(words)] if self.text else []
        )


@dataclass(frozen=True, slots=True)
class Fails:
    """An error reply. ``retry_after`` in seconds goes into the header of that name."""

    status: int
    message: str = "scripted failure"
    code: str | None = None
    retry_after: float | None = None
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes exactly as given: a recorded body, or something broken on purpose."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "application/json"})
    latency: float = 0.0


@dataclass(frozen=True, slots=True)
class Drops:
    """The connection is closed without an answer."""

    latency: float = 0.0


Reply = Says | Fails | Raw | Drops


def error_body(protocol: Protocol, reply: Fails) -> dict[str, Any]:
    """The body of an error as the provider's API writes it."""
    if protocol == "google":
        return replies_google.error_body(reply)
    kind = _STATUS_TYPES.get(reply.status, "api_error" if protocol == "anthropic" else "server_error")
    if protocol != "anthropic":
        return {"error": {"message": reply.message, "type": kind, "param": None, "code": reply.code}}
    return {
        "type": "error",
        "error": {"type": reply.code or kind, "message": reply.message},
        "request_id": "req_fake",
    }


def message(protocol: Protocol, reply: Says, model: str, number: int) -> dict[str, Any]:
    """The body of a whole answer. ``number`` counts requests from 1; ids are made from it."""
    if protocol == "responses":
        return replies_responses.response(reply, model, number)
    if protocol == "google":
        return replies_google.response(reply, model, number)
    if protocol in ("embeddings", "completions", "other"):
        return _plain(protocol, reply, model, number)
    return _openai(reply, model, number) if protocol == "openai" else _anthropic(reply, model, number)


def _plain(protocol: Protocol, reply: Says, model: str, number: int) -> dict[str, Any]:
    """An embedding made of the text's lengths, a legacy completion, or whatever ``extra`` says."""
    if protocol == "other":
        return {"text": reply.text, **reply.extra}
    usage = {"prompt_tokens": reply.usage[0], "total_tokens": reply.usage[0]}
    if protocol == "embeddings":
        vector = [len(word) / 8 for word in reply.split()]
        data = [{"object": "embedding", "index": 0, "embedding": vector}]
        return {"object": "list", "data": data, "model": reply.model or model, "usage": usage, **reply.extra}
    choice = {"index": 0, "text": reply.text, "logprobs": None, "finish_reason": reply.finish_reason}
    return {
        "id": f"cmpl-fake-{number}",
        "object": "text_completion",
        "created": 1700000000 + number,
        "model": reply.model or model,
        "choices": [choice],
        "usage": _openai_usage(reply),
        **reply.extra,
    }


def _plain_events(reply: Says, model: str, number: int) -> Iterator[bytes]:
    whole = _plain("completions", reply, model, number)
    for piece in reply.split():
        ended = {"index": 0, "text": piece, "logprobs": None, "finish_reason": None}
        yield _sse({**whole, "choices": [ended], "usage": None})
    yield b"data: [DONE]\n\n"


def stream(protocol: Protocol, reply: Says, model: str, number: int, *, usage: bool) -> Iterator[bytes]:
    """The server-sent events of a streamed answer, one event a piece. ``usage``: the client asked for it (OpenAI)."""
    for count, event in enumerate(_stream_of(protocol, reply, model, number, usage)):
        if count == reply.break_after:
            return
        if count == reply.error_after:
            body = error_body(protocol, Fails(529, "Overloaded", code="overloaded_error"))
            yield _sse(body, "error" if protocol == "anthropic" else None)
            return
        yield event


def _stream_of(protocol: Protocol, reply: Says, model: str, number: int, usage: bool) -> Iterator[bytes]:
    if protocol == "responses":
        made = replies_responses.events(reply, model, number)
        return (_sse(event, str(event["type"])) for event in made)
    if protocol == "google":
        return (_sse(event) for event in replies_google.events(reply, model, number))
    if protocol in ("embeddings", "completions", "other"):
        return _plain_events(reply, model, number)
    return (
        _openai_events(reply, model, number, usage) if protocol == "openai" else _events(reply, model, number)
    )


def _sse(body: Mapping[str, Any], event: str | None = None) -> bytes:
    name = f"event: {event}\n" if event else ""
    return (
        f"{name}data: {json.dumps(body, separators=(',', ':'))}\n\n".encode()
    )  # compact, as providers send them


def _call_id(protocol: Protocol, want: Wants, number: int, index: int) -> str:
    return want.id or f"{'call' if protocol == 'openai' else 'toolu'}_fake_{number}_{index}"


def _openai_calls(reply: Says, number: int) -> list[dict[str, Any]]:
    return [
        {
            "id": _call_id("openai", want, number, index),
            "type": "function",
            "function": {"name": want.name, "arguments": want.text},
        }
        for index, want in enumerate(reply.tools)
    ]


def _openai_usage(reply: Says) -> dict[str, Any]:
    asked, cached, made, thought = reply.usage
    return {
        "prompt_tokens": asked,
        "completion_tokens": made,
        "total_tokens": asked + made,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def _logprob(token: str, value: float) -> dict[str, Any]:
    return {"token": token, "logprob": value, "bytes": list(token.encode()), "top_logprobs": []}


def _openai(reply: Says, model: str, number: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "role": "assistant",
        "content": reply.text,
        "refusal": reply.refusal,
        **reply.extra,
    }
    if reply.tools:
        body["tool_calls"] = _openai_calls(reply, number)
    if reply.reasoning is not None:
        body["reasoning_content"] = reply.reasoning
    logprobs = None
    if reply.logprobs is not None:
        content = [_logprob(token, value) for token, value in zip(reply.split(), reply.logprobs, strict=True)]
        logprobs = {"content": content, "refusal": None}
    return {
        "id": f"chatcmpl-fake-{number}",
        "object": "chat.completion",
        "created": 1700000000 + number,
        "model": reply.model or model,
        "choices": [
            {"index": 0, "message": body, "logprobs": logprobs, "finish_reason": reply.finish_reason}
        ],
        "usage": _openai_usage(reply),
        "service_tier": "default",
        "system_fingerprint": reply.fingerprint,
    }


def _openai_deltas(reply: Says, number: int) -> Iterator[tuple[dict[str, Any], Any]]:
    yield {"role": "assistant", "content": None if reply.tools else "", "refusal": None}, None
    if reply.reasoning is not None:
        yield {"reasoning_content": reply.reasoning}, None
    for index, piece in enumerate(reply.split()):
        logprobs = None
        if reply.logprobs is not None:
            logprobs = {"content": [_logprob(piece, reply.logprobs[index])], "refusal": None}
        yield {"content": piece}, logprobs
    if reply.refusal is not None:
        yield {"refusal": reply.refusal}, None
    for index, call in enumerate(_openai_calls(reply, number)):
        text = call["function"]["arguments"]
        half = len(text) // 2
        start = {**call, "index": index, "function": {"name": call["function"]["name"], "arguments": ""}}
        yield {"tool_calls": [start]}, None
        for part in (text[:half], text[half:]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": part}}]}, None
    if reply.extra:
        yield dict(reply.extra), None


def _openai_events(reply: Says, model: str, number: int, usage: bool) -> Iterator[bytes]:
    base: dict[str, Any] = {
        "id": f"chatcmpl-fake-{number}",
        "object": "chat.completion.chunk",
        "created": 1700000000 + number,
        "model": reply.model or model,
        "service_tier": "default",
        "system_fingerprint": reply.fingerprint,
    }
    tail = {"usage": None} if usage else {}
    for delta, logprobs in _openai_deltas(reply, number):
        choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": None}
        yield _sse({**base, "choices": [choice], **tail})
    last: dict[str, Any] = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": reply.finish_reason}
    yield _sse({**base, "choices": [last], **tail})
    if usage:
        yield _sse({**base, "choices": [], "usage": _openai_usage(reply)})
    yield b"data: [DONE]\n\n"


def _input(want: Wants) -> Any:
    try:
        return json.loads(want.text)
    except ValueError as error:
        raise ValueError(
            f"the arguments of {want.name} are no JSON, and a whole answer of Anthropic holds an object:"
            f" script them in a stream, or for OpenAI ({error})"
        ) from None


def _anthropic_blocks(reply: Says, number: int, *, streamed: bool) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if reply.reasoning is not None:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": f"sig-{number}"})
    text = reply.text if reply.refusal is None else reply.refusal
    if text is not None:
        blocks.append({"type": "text", "text": text})
    for index, want in enumerate(reply.tools):
        made = {"type": "tool_use", "id": _call_id("anthropic", want, number, index), "name": want.name}
        blocks.append({**made, "input": want.text if streamed else _input(want)})
    return blocks


def _anthropic_usage(reply: Says) -> dict[str, Any]:
    asked, cached, made, _ = reply.usage
    # Anthropic counts cached tokens beside the input, not within it.
    return {
        "input_tokens": asked - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": made,
    }


def _anthropic(reply: Says, model: str, number: int, *, streamed: bool = False) -> dict[str, Any]:
    """The whole answer. ``streamed``: the input of a tool call is its exact text, to be cut into deltas."""
    return {
        "id": f"msg_fake_{number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or model,
        "content": _anthropic_blocks(reply, number, streamed=streamed),
        "stop_reason": _STOPS.get(reply.finish_reason, reply.finish_reason),
        "stop_sequence": None,
        "usage": _anthropic_usage(reply),
        **reply.extra,
    }


def _block_deltas(reply: Says, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        pieces = reply.split() if reply.refusal is None else [block["text"]]
        yield from ({"type": "text_delta", "text": piece} for piece in pieces)
    elif block["type"] == "thinking":
        yield {"type": "thinking_delta", "thinking": block["thinking"]}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        text: str = block["input"]
        half = len(text) // 2
        for part in ("", text[:half], text[half:]):
            yield {"type": "input_json_delta", "partial_json": part}


def _events(reply: Says, model: str, number: int) -> Iterator[bytes]:
    whole = _anthropic(reply, model, number, streamed=True)
    usage = whole["usage"]
    start: dict[str, Any] = {
        **whole,
        "content": [],
        "stop_reason": None,
        "usage": {**usage, "output_tokens": 1},
    }
    yield _sse({"type": "message_start", "message": start}, "message_start")
    yield _sse({"type": "ping"}, "ping")
    for index, block in enumerate(whole["content"]):
        empty: dict[str, Any] = {**block}
        empty.update(
            {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}}.get(
                block["type"], {"input": {}}
            )
        )
        begin = {"type": "content_block_start", "index": index, "content_block": empty}
        yield _sse(begin, "content_block_start")
        for delta in _block_deltas(reply, block):
            body = {"type": "content_block_delta", "index": index, "delta": delta}
            yield _sse(body, "content_block_delta")
        yield _sse({"type": "content_block_stop", "index": index}, "content_block_stop")
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _sse(
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": usage["output_tokens"]}},
        "message_delta",
    )
    yield _sse({"type": "message_stop"}, "message_stop")
