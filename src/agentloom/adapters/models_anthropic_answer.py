"""Anthropic's answers, whole and streamed, as the answer mapping of `agentloom.runtime.assembly`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agentloom.runtime.assembly import assemble, copy_tree

__all__ = ["Reader", "answer", "usage"]

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_HEAD_FIELDS = frozenset(["id", "model", "content", "role", "type", "stop_reason", "usage"])
_INPUT_PARTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Token counts by class. Anthropic counts cached tokens beside the input, so the input is the sum of all three."""
    asked = [raw.get(name) for name in _INPUT_PARTS]
    details: Mapping[str, Any] = raw.get("output_tokens_details") or {}
    return {
        "input": None if asked[0] is None else sum(part or 0 for part in asked),
        "cached": asked[1],
        "cache_write": asked[2],
        "output": raw.get("output_tokens"),
        "reasoning": details.get("thinking_tokens"),
    }


def answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer mapping of a whole response body. ValueError when it is no message."""
    if body.get("type") != "message" or not isinstance(body.get("content"), list):
        raise ValueError("the answer is no Anthropic message")
    return assemble(_whole(body))


def _whole(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A whole message, told as the stream that would have brought it."""
    reader = Reader()
    yield from reader.read({"type": "message_start", "message": {**body, "content": [], "stop_reason": None}})
    for index, block in enumerate(body["content"]):
        yield from reader.block(index, block)
    end = {"stop_reason": body.get("stop_reason")}
    yield from reader.read({"type": "message_delta", "delta": end, "usage": body.get("usage")})
    yield from reader.read({"type": "message_stop"})


class Reader:
    """Turns a stream's events into deltas, and keeps the blocks that only Anthropic's own form can carry."""

    def __init__(self) -> None:
        self.complete = False
        self._usage: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._input: dict[int, list[str]] = {}
        self._calls: dict[int, int] = {}
        self._begun = False

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of one event. Kinds of events that are not known say nothing to an answer.

        ValueError where a second message begins: half of the first one would be taken for a part of it.
        """
        kind = event.get("type")
        if kind == "message_start":
            yield from self._start(event["message"])
        elif kind == "content_block_start":
            yield from self._begin(event["index"], event["content_block"])
        elif kind == "content_block_delta":
            yield from self._piece(event["index"], event["delta"])
        elif kind == "message_delta":
            yield from self._end(event)
        elif kind == "message_stop":
            self.complete = True
            yield from self._kept()

    def block(self, index: int, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of a whole content block."""
        yield from self._begin(index, {**block, "input": {}} if block.get("type") == "tool_use" else block)
        if block.get("type") == "tool_use":
            text = json.dumps(block.get("input"), ensure_ascii=False)
            yield from self._piece(index, {"type": "input_json_delta", "partial_json": text})

    def _start(self, message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if self._begun:
            raise ValueError("a second message began in one stream")
        self._begun = True
        self._usage = dict(message.get("usage") or {})
        head = {name: message[name] for name in ("id", "model") if message.get(name) is not None}
        info = {
            name: value for name, value in message.items() if name not in _HEAD_FIELDS and value is not None
        }
        yield {**head, "info": info} if info else head

    def _begin(self, index: int, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        held = self._blocks[index] = copy_tree(dict(block))
        kind = block.get("type")
        if kind == "tool_use":
            number = self._calls[index] = len(self._calls)
            function = {"name": block.get("name"), "arguments": ""}
            yield {
                "tool_calls": [
                    {"index": number, "id": block.get("id"), "type": "function", "function": function}
                ]
            }
        elif kind == "text":
            yield {"content": held.get("text") or ""}
        elif kind == "thinking" and held.get("thinking"):
            yield {"reasoning": held["thinking"]}

    def _piece(self, index: int, delta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        block = self._blocks[index]
        kind = delta.get("type")
        if kind == "text_delta":
            block["text"] = block.get("text", "") + delta["text"]
            yield {"content": delta["text"]}
        elif kind == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta["thinking"]
            yield {"reasoning": delta["thinking"]}
        elif kind == "input_json_delta":
            self._input.setdefault(index, []).append(delta["partial_json"])
            if index in self._calls and delta["partial_json"]:
                function = {"arguments": delta["partial_json"]}
                yield {"tool_calls": [{"index": self._calls[index], "function": function}]}
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        else:  # a kind of content that came after this was written
            block.setdefault("unread_deltas", []).append(copy_tree(dict(delta)))

    def _end(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        end: Mapping[str, Any] = event.get("delta") or {}
        counts: Mapping[str, Any] = event.get("usage") or {}
        for name, value in counts.items():
            if value is not None or name not in self._usage:
                self._usage[name] = value
        found: dict[str, Any] = {}
        if end.get("stop_reason") is not None:
            reason = end["stop_reason"]
            found["finish_reason"] = _FINISH.get(reason, reason)
            found["native_finish_reason"] = reason
        info = {name: value for name, value in end.items() if name != "stop_reason" and value is not None}
        if info:
            found["info"] = info
        if self._usage:
            found["usage"] = usage(self._usage)
            found["raw_usage"] = dict(self._usage)
        yield found

    def _kept(self) -> Iterator[dict[str, Any]]:
        for index in self._calls:
            if not "".join(self._input.get(index, [])):  # a tool without parameters sends no text at all
                yield {"tool_calls": [{"index": self._calls[index], "function": {"arguments": "{}"}}]}
        if all(_plain(block) for block in self._blocks.values()):
            return
        blocks: list[dict[str, Any]] = []
        for index in sorted(self._blocks):
            block = self._blocks[index]
            if index in self._input:
                # The text that the model wrote is in tool_calls; here it is read only to give it back.
                block = {**block, "input": _read("".join(self._input[index]))}
            blocks.append(block)
        yield {"blocks": blocks}


def _read(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:  # cut off by max_tokens: it can only be given back as text
        return {"unparsed": text}


def _plain(block: Mapping[str, Any]) -> bool:
    fields = {name for name, value in block.items() if value is not None}
    if block.get("type") == "text":
        return fields <= {"type", "text"}
    return block.get("type") == "tool_use" and fields <= {"type", "id", "name", "input"}
