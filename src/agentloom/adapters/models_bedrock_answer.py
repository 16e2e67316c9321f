"""Bedrock's answers, whole and streamed, as the answer mapping of `agentloom.runtime.assembly`.

Source of the forms: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters.models_bedrock_errors import failed
from agentloom.adapters.models_bedrock_parts import FORM
from agentloom.adapters.models_json import as_list, as_mapping
from agentloom.runtime.assembly import assemble, copy_tree

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["Reader", "usage", "whole"]

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filtered": "content_filter",
    "guardrail_intervened": "content_filter",
}
_SERVER = "server_tool_use"  # a call that the provider itself has carried out
_PADDING = "p"  # hides the length of an event; differs each time


def usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Token counts by class. Cached tokens are counted beside the input, unless the total says that they are in it."""
    asked, written = _count(raw, "inputTokens"), _count(raw, "outputTokens")
    read, kept = _count(raw, "cacheReadInputTokens"), _count(raw, "cacheWriteInputTokens")
    if asked is not None and _count(raw, "totalTokens") != asked + (written or 0):
        asked += (read or 0) + (kept or 0)
    return {"input": asked, "cached": read, "cache_write": kept, "output": written, "reasoning": None}


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    found = raw.get(name)
    return found if type(found) is int else None


def whole(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer mapping of a whole response body. ValueError when it is none."""
    message = as_mapping(as_mapping(body.get("output")).get("message"))
    if not message:
        raise ValueError("the answer is no Converse response")
    return assemble(_told(body, message))


def _told(body: Mapping[str, Any], message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A whole answer, told as the stream that would have brought it."""
    reader = Reader(None)
    extra = {name: value for name, value in message.items() if name not in ("role", "content")}
    if extra:
        yield {"extra": extra}
    for index, block in enumerate(message.get("content") or []):
        yield from reader.block(index, block)
    known = ("output", "stopReason", "additionalModelResponseFields")
    end = {name: body[name] for name in known[1:] if name in body}
    yield from reader.read({"messageStop": end})
    rest = {name: value for name, value in body.items() if name not in known}
    if rest:
        yield from reader.read({"metadata": rest})


class Reader:
    """Turns a stream's events, each a mapping of its kind to its payload, into deltas, and keeps the blocks that only
    Bedrock's own form can carry."""

    def __init__(self, route: Route | None) -> None:
        self.complete = False
        self._route = route
        self._blocks: dict[int, dict[str, Any]] = {}
        self._input: dict[int, list[str]] = {}
        self._calls: dict[int, int] = {}

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of one event. Kinds that are not known are kept in ``info``; ModelError for an exception."""
        for kind, payload in event.items():
            if kind == "contentBlockStart":
                yield from self._begin(payload["contentBlockIndex"], payload.get("start") or {})
            elif kind == "contentBlockDelta":
                yield from self._piece(payload["contentBlockIndex"], payload["delta"])
            elif kind == "messageStop":
                yield from self._stop(payload)
            elif kind == "metadata":
                yield from _metadata(payload)
            elif kind in (":exception", ":error"):
                raise failed(payload, self._route)
            elif kind not in ("messageStart", "contentBlockStop"):
                yield {"info": {kind: copy_tree(payload)}}

    def block(self, index: int, block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of a whole content block."""
        kind = next((name for name in block if name != "type"), "")  # servers of the like say a type too
        if kind == "text" and set(block) <= {"type", "text"}:
            yield from self._piece(index, {"text": block["text"]})
        elif kind == "toolUse" and set(block) <= {"type", "toolUse"}:
            use = dict(block["toolUse"])
            text = json.dumps(use.pop("input", {}), ensure_ascii=False)
            yield from self._begin(index, {"toolUse": use})
            yield from self._piece(index, {"toolUse": {"input": text}})
        else:
            self._blocks[index] = copy_tree(dict(block))
            reasoning = as_mapping(as_mapping(block.get("reasoningContent")).get("reasoningText"))
            if reasoning.get("text"):
                yield {"reasoning": reasoning["text"]}
            for part in as_list(as_mapping(block.get("citationsContent")).get("content")):
                if part.get("text"):
                    yield {"content": part["text"]}

    def _begin(self, index: int, start: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        self._blocks[index] = copy_tree(dict(start))
        use: Mapping[str, Any] | None = start.get("toolUse")
        if use is not None:
            self._input[index] = []
            if use.get("type") != _SERVER:
                number = self._calls[index] = len(self._calls)
                call = {"index": number, "id": use.get("toolUseId"), "type": "function"}
                yield {"tool_calls": [{**call, "function": {"name": use.get("name"), "arguments": ""}}]}

    def _piece(self, index: int, delta: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        block = self._blocks.setdefault(index, {})
        for kind, piece in delta.items():
            if kind == "text":
                _add_text(block, piece)
                if piece:
                    yield {"content": piece}
            elif kind == "toolUse" and index in self._input:
                text = piece.get("input") or ""
                self._input[index].append(text)
                if text and index in self._calls:
                    yield {"tool_calls": [{"index": self._calls[index], "function": {"arguments": text}}]}
            elif kind == "reasoningContent":
                _add_reasoning(block.setdefault("reasoningContent", {}), piece)
                if piece.get("text"):
                    yield {"reasoning": piece["text"]}
            elif kind == "toolResult":
                _add_results(block.setdefault("toolResult", {}), piece)
            elif kind == "citation":
                _cited(block)["citations"].append(copy_tree(piece))
            elif kind == "image":
                block.setdefault("image", {}).update(copy_tree(piece))
            else:  # a kind of content that came after this was written
                block.setdefault("unread_deltas", []).append({kind: copy_tree(piece)})

    def _stop(self, payload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        self.complete = True
        for index, number in self._calls.items():
            if not "".join(self._input[index]):  # a tool without parameters sends no text at all
                yield {"tool_calls": [{"index": number, "function": {"arguments": "{}"}}]}
        reason = payload.get("stopReason")
        if reason is not None:
            yield {"finish_reason": _FINISH.get(reason, reason), "native_finish_reason": reason}
        info = {name: value for name, value in payload.items() if name not in ("stopReason", _PADDING)}
        if info:
            yield {"info": copy_tree(info)}
        if not all(_plain(block) for block in self._blocks.values()):
            yield {"blocks": {FORM: {"content": [self._block(index) for index in sorted(self._blocks)]}}}

    def _block(self, index: int) -> dict[str, Any]:
        block = copy_tree(self._blocks[index])
        if index in self._input:
            # The text that the model wrote is in tool_calls; here it is read only to give it back.
            block["toolUse"]["input"] = _read("".join(self._input[index]))
        return cast("dict[str, Any]", block)


def _metadata(payload: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    raw: dict[str, Any] | None = payload.get("usage")
    if raw is not None:
        yield {"usage": usage(raw), "raw_usage": dict(raw)}
    info = {
        name: value
        for name, value in payload.items()
        if name not in ("usage", _PADDING) and value is not None
    }
    router = as_mapping(as_mapping(info.get("trace")).get("promptRouter"))
    if router.get("invokedModelId"):
        yield {"model": router["invokedModelId"]}
    if info:
        yield {"info": copy_tree(info)}


def _add_text(block: dict[str, Any], text: str) -> None:
    if "citationsContent" in block:
        block["citationsContent"]["content"][0]["text"] += text
    else:
        block["text"] = block.get("text", "") + text


def _cited(block: dict[str, Any]) -> dict[str, Any]:
    """The block of cited text that this one turns out to be."""
    if "citationsContent" not in block:
        block["citationsContent"] = {"content": [{"text": block.pop("text", "")}], "citations": []}
    return cast("dict[str, Any]", block["citationsContent"])


def _add_reasoning(held: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for name, value in piece.items():
        if name == "redactedContent":
            held[name] = _joined(held[name], value) if name in held else value
        else:
            said: dict[str, Any] = held.setdefault("reasoningText", {})
            said[name] = said[name] + value if name in said and isinstance(value, str) else value


def _joined(first: str, second: str) -> str:
    """Two pieces of base64 as one: each may end in padding."""
    return base64.b64encode(base64.b64decode(first) + base64.b64decode(second)).decode("ascii")


def _add_results(held: dict[str, Any], pieces: list[dict[str, Any]]) -> None:
    content: list[dict[str, Any]] = held.setdefault("content", [])
    for piece in pieces:
        if set(piece) == {"text"} and content and set(content[-1]) == {"text"}:
            content[-1]["text"] += piece["text"]
        else:
            content.append(copy_tree(piece))


def _read(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:  # cut off by maxTokens: it can only be given back as text
        return {"unparsed": text}


def _plain(block: Mapping[str, Any]) -> bool:
    """Whether the answer mapping's text and tool calls say all of a block."""
    said = as_mapping(block.get("toolUse"))
    if set(block) == {"toolUse"} and said:
        return set(said) <= {"toolUseId", "name", "input", "type"} and said.get("type") in (None, "tool_use")
    return set(block) <= {"text"}
