"""What an answer says, read from its bytes a second time, plainly and apart from the adapters.

Text, tool calls and whether the stream itself tells of a failure. Sources: the providers' public API references.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agentloom.testing import Exchange

Call = tuple[str, Any]
"""Name and arguments of a tool call; the arguments parsed where they are JSON."""


@dataclass
class Said:
    """``failed``: an event of the stream is an error. ``model``: the name that the answer gives. ``finished``: it says
    why it ended."""

    text: str = ""
    calls: list[Call] = field(default_factory=list[Call])
    failed: bool = False
    model: str | None = None
    finished: bool = False


def read(one: Exchange, api: str) -> Said:
    """What the answer of an exchange of ``api`` says. ValueError for bytes that are no answer of it."""
    events = list(_events(one)) if one.streamed else [json.loads(one.content)]
    said = Said(failed=one.streamed and (any(map(_is_error, events)) or _begins_twice(events)))
    {
        "chat": _chat,
        "messages": _messages,
        "responses": _responses,
        "generateContent": _generate,
        "converse": _converse,
        "invoke": _invoke,
    }[api](said, events)
    said.calls = [(name, _parsed(arguments)) for name, arguments in said.calls]
    return said


def _parsed(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def _is_error(event: Mapping[str, Any]) -> bool:
    failed = isinstance(event.get("response"), dict) and event["response"].get("status") == "failed"
    return event.get("type") == "error" or bool(event.get("error")) or failed or ":exception" in event


def _begins_twice(events: list[dict[str, Any]]) -> bool:
    """Two answers that a proxy ran together: neither can be told from the other."""
    return sum(event.get("type") in ("message_start", "response.created") for event in events) > 1


def _events(one: Exchange) -> Iterator[dict[str, Any]]:
    if one.content_type == "application/vnd.amazon.eventstream":
        yield from _messages_of(one.content)
        return
    text = one.content.decode("utf-8", "replace").removeprefix("\ufeff")
    for block in re.split(r"(?:\r\n|\r|\n){2}", text):
        told = re.search(r"^error:(.*)$", block, re.MULTILINE)
        if told:  # a line of its own that says what went wrong
            yield {"error": told[1].strip()}
        lines = [
            line[5:].removeprefix(" ") for line in re.split(r"\r\n|\r|\n", block) if line.startswith("data:")
        ]
        data = "\n".join(lines)
        if data and data.strip() != "[DONE]":
            event = json.loads(data)
            if isinstance(event, dict):
                yield event


def _messages_of(data: bytes) -> Iterator[dict[str, Any]]:
    """AWS event stream: total length, header length, CRC; headers of text; payload; CRC."""
    while data:
        total, size = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big")
        if total < 16 or binascii.crc32(data[: total - 4]) != int.from_bytes(data[total - 4 : total], "big"):
            raise ValueError("a message of the event stream is damaged")
        head, payload = data[12 : 12 + size], data[12 + size : total - 4]
        names: dict[str, str] = {}
        while head:
            end = 1 + head[0]
            length = int.from_bytes(head[end + 1 : end + 3], "big")
            names[head[1:end].decode()] = head[end + 3 : end + 3 + length].decode()
            head = head[end + 3 + length :]
        kind = names.get(":event-type") or names.get(":exception-type", "?")
        yield {kind: json.loads(payload)} | ({":exception": True} if ":exception-type" in names else {})
        data = data[total:]


def _chat(said: Said, events: list[dict[str, Any]]) -> None:
    calls: dict[Any, list[str]] = {}
    last: Any = None
    for event in events:
        said.model = event.get("model") or said.model
        if said.text and str(event.get("object")).endswith(
            ".done"
        ):  # Perplexity's last event has all of it again
            said.finished = True
            continue
        for choice in event.get("choices") or []:
            if choice.get("index"):
                continue
            said.finished = said.finished or bool(choice.get("finish_reason"))
            names = ("delta", "message") if "chunk" in str(event.get("object")) else ("message", "delta")
            part: dict[str, Any] = next((choice[name] for name in names if choice.get(name)), {})
            content = part.get("content")
            if isinstance(content, list):
                content = "".join(one.get("text") or "" for one in content if one.get("type") == "text")
            said.text += content or ""
            for number, call in enumerate(part.get("tool_calls") or []):
                whole = "message" in choice
                key = number if whole else call.get("index")
                if key is None:  # a server without indexes: a new id is a new call
                    key = last = call.get("id") or last
                made = calls.setdefault(key, ["", ""])
                function = call.get("function") or call.get("custom") or {}
                made[0] += (function.get("name") or "") if not made[0] else ""
                made[1] += function.get("arguments") or function.get("input") or ""
    said.calls = [(name, arguments) for name, arguments in calls.values()]


def _messages(said: Said, events: list[dict[str, Any]]) -> None:
    blocks: dict[int, dict[str, Any]] = {}
    for event in events:
        kind = event.get("type")
        ended = event if kind == "message" else event.get("delta") or {}
        said.finished = said.finished or bool(ended.get("stop_reason"))
        if kind == "message":
            said.model = event.get("model")
            blocks = dict(enumerate(event["content"]))
        elif kind == "message_start":
            said.model = event["message"].get("model")
        elif kind == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif kind == "content_block_delta":
            delta = event["delta"]
            block = blocks.setdefault(event["index"], {"type": "text"})
            if delta["type"] == "text_delta":
                block["text"] = block.get("text", "") + delta["text"]
            elif delta["type"] == "input_json_delta":
                block["json"] = block.get("json", "") + delta["partial_json"]
    for block in blocks.values():
        if block["type"] == "text":
            said.text += block.get("text", "")
        elif block["type"] == "tool_use":
            said.calls.append((block["name"], block["json"] if block.get("json") else block.get("input")))


def _responses(said: Said, events: list[dict[str, Any]]) -> None:
    items: dict[int, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    for event in events:
        if event.get("object") == "response":
            whole = event
        elif isinstance(event.get("response"), dict):
            whole = event["response"]
        if event.get("type") == "response.output_item.done":
            items[event["output_index"]] = event["item"]
    said.model = whole.get("model")
    # Some servers leave the output of the last event empty; what they sent piece by piece counts.
    for item in whole.get("output") or [items[key] for key in sorted(items)]:
        if item.get("type") == "message":
            parts = item.get("content") or []
            said.text += "".join(
                part.get("text") or "" for part in parts if part.get("type") == "output_text"
            )
        elif item.get("type") == "function_call":
            said.calls.append((item["name"], item.get("arguments")))


def _generate(said: Said, events: list[dict[str, Any]]) -> None:
    for event in events:
        said.model = event.get("modelVersion") or said.model
        for candidate in (event.get("candidates") or [])[:1]:
            for part in (candidate.get("content") or {}).get("parts") or []:
                if "functionCall" in part:
                    said.calls.append((part["functionCall"]["name"], part["functionCall"].get("args") or {}))
                elif not part.get("thought"):
                    said.text += part.get("text") or ""


def _invoke(said: Said, events: list[dict[str, Any]]) -> None:
    """Anthropic's events, each in the bytes of a chunk; a whole answer is a message of Anthropic's."""
    _messages(
        said, [json.loads(base64.b64decode(e["chunk"]["bytes"])) if "chunk" in e else e for e in events]
    )


def _converse(said: Said, events: list[dict[str, Any]]) -> None:
    tools: dict[int, list[str]] = {}
    for event in events:
        ended = event.get("messageStop") or event
        said.finished = said.finished or bool(ended.get("stopReason"))
        for part in (((event.get("output") or {}).get("message")) or {}).get("content") or []:
            said.text += part.get("text") or ""
            for cited in (part.get("citationsContent") or {}).get("content") or []:
                said.text += cited.get("text") or ""
            if "toolUse" in part:
                said.calls.append((part["toolUse"]["name"], part["toolUse"].get("input")))
        start, delta = event.get("contentBlockStart") or {}, event.get("contentBlockDelta") or {}
        use = (start.get("start") or {}).get("toolUse")
        if use and use.get("type") != "server_tool_use":  # the provider has carried that one out
            tools[start["contentBlockIndex"]] = [use["name"], ""]
        piece = delta.get("delta") or {}
        said.text += piece.get("text") or ""
        if "toolUse" in piece and delta["contentBlockIndex"] in tools:
            tools[delta["contentBlockIndex"]][1] += piece["toolUse"].get("input") or ""
    said.calls += [(name, arguments) for name, arguments in tools.values()]
