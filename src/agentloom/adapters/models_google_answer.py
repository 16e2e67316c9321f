"""Google's answers, whole and streamed, as the answer mapping of `agentloom.runtime.assembly`.

Each event of a stream is an answer of its own form with more of the parts, so both are read by the same code.
Source of the forms: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters.models_google_errors import failed
from agentloom.adapters.models_google_parts import FORM
from agentloom.adapters.models_json import as_list, as_mapping
from agentloom.runtime.assembly import assemble, copy_tree

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["Reader", "usage", "whole"]

_FINISH = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(
        [
            "BLOCKLIST",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "IMAGE_SAFETY",
            "JAILBREAK",
            "MODEL_ARMOR",
            "PROHIBITED_CONTENT",
            "RECITATION",
            "SAFETY",
            "SPII",
        ],
        "content_filter",
    ),
}
# With `$alt=json;enum-encoding=int` words are numbers. These are the same in both of Google's APIs; the others differ.
_NUMBERS = {1: "STOP", 2: "MAX_TOKENS", 3: "SAFETY", 4: "RECITATION"}
_HEAD_FIELDS = frozenset(["candidates", "modelVersion", "responseId", "usageMetadata"])
_CANDIDATE_FIELDS = frozenset(["content", "finishReason", "index", "logprobsResult"])
_GROWING = ("citationMetadata", "groundingMetadata", "urlContextMetadata")


def usage(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Token counts by class. Google counts cached tokens in the prompt, but what tools put into the prompt, and what
    the model thought, beside it and beside the answer: the total says so."""
    asked, tools = _count(raw, "promptTokenCount"), _count(raw, "toolUsePromptTokenCount")
    written, thought = _count(raw, "candidatesTokenCount"), _count(raw, "thoughtsTokenCount")
    given = None if asked is None else asked + (tools or 0)
    output = None if written is None and thought is None else (written or 0) + (thought or 0)
    if thought and given is not None and _count(raw, "totalTokenCount") == given + (written or 0):
        output = written  # a server that counts thinking as part of the answer
    return {
        "input": given,
        "cached": _count(raw, "cachedContentTokenCount"),
        "cache_write": None,
        "output": output,
        "reasoning": thought,
    }


def _count(raw: Mapping[str, Any], name: str) -> int | None:
    found = raw.get(name)
    return found if type(found) is int else None


def whole(body: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """The answer mapping of a whole response body. ValueError when it is none; ModelError when it is an error."""
    if "error" not in body and not any(name in body for name in (*_HEAD_FIELDS, "promptFeedback")):
        raise ValueError("the answer is no generateContent response")
    return assemble(Reader(route).read(body, last=True))


@dataclass(slots=True)
class _Candidate:
    """``parts``: in Google's own form, texts that follow one another joined. ``calls``: how many there were."""

    parts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    calls: int = 0
    finished: bool = False
    info: dict[str, Any] = field(default_factory=dict[str, Any])


class Reader:
    """Turns a stream's events into deltas, and keeps the parts that only Google's own form can carry."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._candidates: dict[int, _Candidate] = {}
        self._blocked = False
        self._usage: dict[str, Any] = {}
        self._told: dict[str, Any] = {}

    @property
    def complete(self) -> bool:
        """Google ends a stream with the reason why every candidate, or the prompt, came to its end."""
        finished = [candidate.finished for candidate in self._candidates.values()]
        return self._blocked or (bool(finished) and all(finished))

    def read(self, event: Mapping[str, Any], *, last: bool = False) -> Iterator[dict[str, Any]]:
        """The deltas of one event. ModelError for an event that is an error. ``last``: there will be no other."""
        if event.get("error"):
            raise failed(event, self._route)
        head = {"model": event.get("modelVersion"), "id": event.get("responseId")}
        yield from self._news(head)
        info = {name: value for name, value in event.items() if name not in _HEAD_FIELDS}
        yield from self._news({name: value for name, value in info.items() if value is not None}, "info")
        for position, candidate in enumerate(event.get("candidates") or []):
            number = candidate.get("index", position)
            mark = {"choice": number} if number else {}
            for delta in self._candidate(number, candidate, str(event.get("responseId") or "")):
                yield {**mark, **delta}
        feedback: Mapping[str, Any] = event.get("promptFeedback") or {}
        if feedback.get("blockReason") and not self._candidates:
            self._blocked = True
            yield {"finish_reason": "content_filter", "native_finish_reason": str(feedback["blockReason"])}
        self._usage.update(event.get("usageMetadata") or {})
        if last or self.complete:
            yield from self._end()

    def _news(self, found: Mapping[str, Any], under: str | None = None) -> Iterator[dict[str, Any]]:
        # Every event says these again; a delta is for what is new.
        news = {
            name: value
            for name, value in found.items()
            if value is not None and self._told.get(name) != value
        }
        self._told.update(news)
        if news:
            yield {under: news} if under else news

    def _end(self) -> Iterator[dict[str, Any]]:
        for number, candidate in self._candidates.items():
            if not all(_plain(part) for part in candidate.parts):
                mark = {"choice": number} if number else {}
                yield {**mark, "blocks": {FORM: {"parts": copy_tree(candidate.parts)}}}
        if self._usage:
            yield {"usage": usage(self._usage), "raw_usage": dict(self._usage)}

    def _candidate(self, number: int, said: Mapping[str, Any], response: str) -> Iterator[dict[str, Any]]:
        held = self._candidates.setdefault(number, _Candidate())
        content: Mapping[str, Any] = said.get("content") or {}
        for part in as_list(content.get("parts")):
            yield from self._part(held, part, f"{response}/{number}")
        extra = {name: value for name, value in content.items() if name not in ("parts", "role")}
        if extra:
            yield {"extra": extra}
        if said.get("logprobsResult") is not None:
            yield {"logprobs": said["logprobsResult"]}
        info = {
            name: value for name, value in said.items() if name not in _CANDIDATE_FIELDS and value is not None
        }
        for name, value in info.items():
            info[name] = _grown(held.info.get(name), value) if name in _GROWING else value
        held.info.update(info)
        if info:
            yield {"info": info}
        if said.get("finishReason"):
            held.finished = True
            yield _finish(said["finishReason"], called=held.calls > 0)

    def _part(self, held: _Candidate, part: Mapping[str, Any], seed: str) -> Iterator[dict[str, Any]]:
        _keep(held.parts, part)
        call: Mapping[str, Any] | None = part.get("functionCall")
        if call is not None:
            if call.get("partialArgs") is not None or call.get("willContinue"):
                raise ValueError("a call whose arguments come in pieces is not supported")
            function = {
                "name": call.get("name"),
                "arguments": json.dumps(call.get("args") or {}, ensure_ascii=False),
            }
            name = call.get("id") or _call_id(seed, held.calls)
            yield {
                "tool_calls": [{"index": held.calls, "id": name, "type": "function", "function": function}]
            }
            held.calls += 1
        elif part.get("text"):
            yield {"reasoning" if part.get("thought") else "content": part["text"]}


def _finish(reason: Any, *, called: bool) -> dict[str, Any]:
    word = _NUMBERS.get(reason, str(reason)) if type(reason) is int else str(reason)
    found = _FINISH.get(word, word)
    return {
        "finish_reason": "tool_calls" if called and found == "stop" else found,
        "native_finish_reason": str(reason),
    }


def _call_id(seed: str, number: int) -> str:
    """An id for a call that came without one: the same for the same answer, whole or streamed, now and on replay, and
    another for each call. Its form is one that every provider takes."""
    return "call_" + hashlib.sha256(f"{seed}/{number}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _keep(parts: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Add a part. Texts without marks are joined as a whole answer has them; one with a thought signature stays alone
    (Google asks for that)."""
    text = set(part) <= {"text", "thought"} and isinstance(part.get("text"), str)
    if text and not part["text"] and not part.get("thought"):
        return
    held = parts[-1] if parts else {}
    if text and set(held) <= {"text", "thought"} and "text" in held and _thought(held) == _thought(part):
        held["text"] += part["text"]
    else:
        parts.append(copy_tree(dict(part)))


def _thought(part: Mapping[str, Any]) -> bool:
    return bool(part.get("thought"))


def _plain(part: Mapping[str, Any]) -> bool:
    """Whether the answer mapping's text and tool calls say all of a part."""
    if set(part) == {"functionCall"}:
        return set(as_mapping(part["functionCall"])) <= {"name", "args"}
    return set(part) == {"text"}


def _grown(before: Any, more: Any) -> Any:
    """What a stream tells in pieces: mappings are merged; a list either repeats the one before it, or goes on."""
    if isinstance(before, dict) and isinstance(more, dict):
        held, new = cast("dict[str, Any]", before), cast("dict[str, Any]", more)
        return {**held, **{name: _grown(held.get(name), value) for name, value in new.items()}}
    if isinstance(before, list) and isinstance(more, list):
        first, second = cast("list[Any]", before), cast("list[Any]", more)  # type: ignore[redundant-cast]
        return second if second[: len(first)] == first else [*first, *second]
    return more
