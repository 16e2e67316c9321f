"""Answers of the Responses API, whole and streamed, as the answer mapping of `agentloom.runtime.assembly`.

A whole response is read as the stream that would have brought it, so the two cannot differ. Its items are kept in
``blocks`` when text and tool calls alone do not carry them: reasoning (encrypted or not), server tools, citations.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from agentloom.adapters.models_errors import Failed
from agentloom.adapters.models_responses_input import FORM
from agentloom.adapters.models_usage import responses_usage
from agentloom.runtime.assembly import assemble, copy_tree

__all__ = ["Reader", "answer"]

_ENDS = frozenset(["response.completed", "response.incomplete", "response.failed", "response.cancelled"])
_LENGTH = {"max_output_tokens": "length", "max_messages": "length"}
# Those with a field of their own, and those that only repeat the request, which is recorded beside the answer.
_LEFT_OUT = frozenset(
    ["id", "object", "model", "output", "status", "usage", "error", "instructions", "tools", "input"]
)
# Kinds of deltas: the field of the answer, the event that ends it and the field of that one.
_TEXTS = {
    "response.output_text": "content",
    "response.refusal": "refusal",
    "response.reasoning_summary_text": "reasoning",
    "response.reasoning_text": "reasoning",
}
_CALLS = {
    "response.function_call_arguments": ("function", "arguments"),
    "response.custom_tool_call_input": ("custom", "input"),
}
_ITEMS = {"function_call": ("function", "arguments"), "custom_tool_call": ("custom", "input")}


def answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer mapping of a whole response body. ValueError when it is no finished response, Failed when it
    says that it failed."""
    if body.get("object") != "response" or not isinstance(body.get("output"), list):
        raise ValueError("the answer is no response of the Responses API")
    if body.get("status") in ("queued", "in_progress"):
        raise ValueError(f"the response has no answer yet: its status is {body['status']}")
    return assemble(_whole(body))


def _whole(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    reader = Reader()
    yield from reader.read({"type": f"response.{body.get('status') or 'completed'}", "response": body})


class Reader:
    """Turns a stream's events into deltas. ``complete`` once the response has ended; ValueError for a second one."""

    def __init__(self) -> None:
        self.complete = False
        self._items: dict[int, dict[str, Any]] = {}
        self._said: dict[tuple[int, str, int], str] = {}  # what was given on, by item, kind and part
        self._tokens: dict[tuple[int, int], int] = {}  # logprobs given on, by item and part
        self._calls: dict[int, int] = {}
        self._thought = False
        self._contradicted = False  # pieces of text that were not those of the whole
        self._head: dict[str, Any] = {}

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of one event; kinds that are not known say nothing to an answer. Failed for an error."""
        kind = str(event.get("type"))
        name, _, step = kind.rpartition(".")
        if kind == "error":
            raise Failed(event)
        if kind in _ENDS:
            yield from self._end(event["response"], step)
        elif kind in ("response.created", "response.in_progress", "response.queued"):
            yield from self._start(event["response"])
        elif name in _TEXTS and step in ("delta", "done"):
            yield from self._text(event, name, step)
        elif name in _CALLS and step in ("delta", "done"):
            yield from self._argument(event, *_CALLS[name], whole=step == "done")
        elif name == "response.output_item" and step in ("added", "done"):
            yield from self._item(event["output_index"], event["item"], whole=step == "done")

    def _start(self, response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        if self.complete:
            raise ValueError("a second response began in one stream")
        found = {name: response[name] for name in ("id", "model") if response.get(name) is not None}
        new = {name: value for name, value in found.items() if self._head.get(name) != value}
        self._head.update(found)
        if new:
            yield new

    def _text(self, event: Mapping[str, Any], name: str, step: str) -> Iterator[dict[str, Any]]:
        index = event["output_index"]
        part = event.get("summary_index", event.get("content_index")) or 0
        key = "refusal" if name == "response.refusal" else "text"
        text = event["delta"] if step == "delta" else event[key]
        yield from self._more(index, name, part, text, whole=step == "done")
        if name == "response.output_text":
            yield from self._logprobs(index, part, event.get("logprobs"), whole=step == "done")

    def _more(self, index: int, name: str, part: int, text: str, *, whole: bool) -> Iterator[dict[str, Any]]:
        """``text`` of one part: the next piece, or all of it (then what is still missing is given on)."""
        place = (index, name, part)
        before = self._said.get(place)
        if whole and name == "response.output_text" and not text.startswith(before or ""):
            self._contradicted = True
        piece = (
            text[len(before or "") :] if whole and text.startswith(before or "") else "" if whole else text
        )
        self._said[place] = (before or "") + piece
        if piece and _TEXTS[name] == "reasoning":
            if self._thought and not before:
                yield {"reasoning": "\n\n"}  # between the parts of a summary, and between items
            self._thought = True
        if piece or before is None:
            yield {_TEXTS[name]: piece}

    def _logprobs(self, index: int, part: int, tokens: Any, *, whole: bool) -> Iterator[dict[str, Any]]:
        if not tokens:
            return
        given = self._tokens.get((index, part), 0)
        new = tokens[given:] if whole else tokens
        if new:
            self._tokens[index, part] = given + len(new)
            yield {"logprobs": {"content": copy_tree(new)}}

    def _argument(
        self, event: Mapping[str, Any], kind: str, field: str, *, whole: bool
    ) -> Iterator[dict[str, Any]]:
        yield from self._written(
            event["output_index"], kind, field, event[field if whole else "delta"], whole=whole
        )

    def _written(
        self, index: int, kind: str, field: str, text: str, *, whole: bool
    ) -> Iterator[dict[str, Any]]:
        before = self._said.get((index, kind, 0), "")
        piece = text[len(before) :] if whole and text.startswith(before) else "" if whole else text
        if piece:
            self._said[index, kind, 0] = before + piece
            yield {"tool_calls": [{"index": self._calls[index], kind: {field: piece}}]}

    def _item(self, index: int, item: Mapping[str, Any], *, whole: bool) -> Iterator[dict[str, Any]]:
        """An output item as it begins, or whole: then what did not come in pieces is given on."""
        self._items[index] = copy_tree(dict(item))
        kind = str(item.get("type"))
        if kind in _ITEMS:
            name, field = _ITEMS[kind]
            if index not in self._calls:
                number = self._calls[index] = len(self._calls)
                call = {"index": number, "id": item.get("call_id"), "type": name}
                yield {"tool_calls": [{**call, name: {"name": item.get("name"), field: ""}}]}
            yield from self._written(index, name, field, item.get(field) or "", whole=whole)
        elif whole and kind == "message":
            yield from self._message(index, item)
        elif whole and kind == "reasoning":
            yield from self._parts(index, item.get("summary"), "response.reasoning_summary_text")
            yield from self._parts(index, item.get("content"), "response.reasoning_text")

    def _message(self, index: int, item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for number, part in enumerate(item.get("content") or []):
            if part.get("type") == "output_text":
                yield from self._more(
                    index, "response.output_text", number, part.get("text") or "", whole=True
                )
                yield from self._logprobs(index, number, part.get("logprobs"), whole=True)
            elif part.get("type") == "refusal":
                yield from self._more(
                    index, "response.refusal", number, part.get("refusal") or "", whole=True
                )

    def _parts(self, index: int, parts: Any, name: str) -> Iterator[dict[str, Any]]:
        for number, part in enumerate(parts or []):
            yield from self._more(index, name, number, part.get("text") or "", whole=True)

    def _end(self, response: Mapping[str, Any], status: str) -> Iterator[dict[str, Any]]:
        if status in ("failed", "cancelled") or response.get("error"):
            raise Failed(response.get("error") or {"message": f"the response ended with status {status}"})
        yield from self._start(response)
        output: list[dict[str, Any]] = response.get("output") or []
        if len(output) >= len(self._items):  # some servers leave it empty here
            for index, item in enumerate(output):
                yield from self._item(index, item, whole=True)
        if self._contradicted:  # what the provider says is the whole counts, as for OpenAI's own SDK
            yield {"whole": {"content": _text_of([self._items[index] for index in sorted(self._items)])}}
        found = self._finish(response, status)
        info = {
            name: value for name, value in response.items() if name not in _LEFT_OUT and value is not None
        }
        if info:
            found["info"] = copy_tree(info)
        if response.get("usage") is not None:
            found["usage"] = responses_usage(response["usage"])
            found["raw_usage"] = copy_tree(response["usage"])
        items = [self._items[index] for index in sorted(self._items)]
        if not all(_plain(item) for item in items):
            found["blocks"] = {FORM: items}
        self.complete = True
        yield found

    def _finish(self, response: Mapping[str, Any], status: str) -> dict[str, Any]:
        details: Any = response.get("incomplete_details")
        reason = cast("dict[str, Any]", details).get("reason") if isinstance(details, dict) else None
        if status == "incomplete" or reason is not None:
            native = reason or status
            return {"finish_reason": _LENGTH.get(native, native), "native_finish_reason": native}
        return {"finish_reason": "tool_calls" if self._calls else "stop", "native_finish_reason": status}


def _text_of(items: Iterable[Mapping[str, Any]]) -> str:
    texts: list[str] = []
    for item in items:
        parts: list[dict[str, Any]] = item.get("content") or [] if item.get("type") == "message" else []
        texts += [part.get("text") or "" for part in parts if part.get("type") == "output_text"]
    return "".join(texts)


def _plain(item: Mapping[str, Any]) -> bool:
    """Whether text and tool calls say all that the item says (its own id aside)."""
    fields = {name for name, value in item.items() if value is not None}
    if item.get("type") in _ITEMS:
        return fields <= {"type", "id", "status", "call_id", "name", "arguments", "input"}
    if item.get("type") != "message" or not fields <= {"type", "id", "status", "role", "content"}:
        return False
    parts: list[Mapping[str, Any]] = item.get("content") or []
    return all(_plain_part(part) for part in parts)


def _plain_part(part: Mapping[str, Any]) -> bool:
    left = {name for name, value in part.items() if value not in (None, [])}
    # The log probabilities are in the answer already, and are nothing to give back.
    return left <= {"type", "text", "refusal", "logprobs"}
