"""Answers of OpenAI's chat protocol, whole and streamed, as the answer mapping of `agentloom.runtime.assembly`.

They are read from the JSON itself, so that nothing that a server adds is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from agentloom.adapters.models_errors import Failed
from agentloom.adapters.models_hosts import host_of
from agentloom.adapters.models_openai_kept import Kept
from agentloom.adapters.models_usage import chat_usage
from agentloom.runtime.assembly import assemble

__all__ = ["Reader", "answer"]

_MESSAGE_FIELDS = frozenset(["role", "content", "tool_calls", "refusal", "reasoning", "reasoning_content"])
_CHOICE_FIELDS = frozenset(
    ["index", "message", "delta", "finish_reason", "native_finish_reason", "logprobs", "error"]
)
_BODY_FIELDS = frozenset(["id", "object", "choices", "model", "system_fingerprint", "usage"])
# Words of servers for what OpenAI calls otherwise.
_FINISH = {
    "model_length": "length",
    "max_tokens": "length",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}
# An answer that ends so was given up by the provider. DeepSeek's word means that it ran out of machines.
_GIVEN_UP = {"error": None, "insufficient_system_resource": "overload"}


def answer(body: Mapping[str, Any], provider: str = "openai") -> dict[str, Any]:
    """The answer mapping of a whole response body. ValueError when it holds no choice, Failed when it is an error."""
    if not body.get("choices"):
        raise ValueError("the answer holds no choice")
    return assemble(Reader("message", provider).read(body))


class Reader:
    """Turns response bodies (``part`` is ``message``) or the chunks of a stream (``delta``) into deltas."""

    def __init__(self, part: str = "delta", provider: str = "openai") -> None:
        self.complete = False
        self._part = part
        self._host = host_of(provider)
        self._kept = Kept(provider, self._host, whole=part == "message")
        self._said: dict[str, Any] = {}
        self._calls: dict[int, list[str | None]] = {}

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of one event; none when it says nothing new. Failed when the provider gave up."""
        head = self._head(event)
        choices: list[dict[str, Any]] = event.get("choices") or []
        if not choices and event.get("usage") is not None:
            self.complete = True  # the counts come after the last choice; some servers say no `finish_reason`
        for choice in choices:
            delta = self._choice(choice)
            number = choice.get("index") or 0
            if head and number:  # facts of the whole answer are no other choice's
                yield head
            elif head:
                delta = {**head, **delta, **_both("info", head, delta)}
            head = {}
            if delta:
                yield {"choice": number, **delta} if number else delta
        if head:
            yield head

    def _head(self, event: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: event[name] for name in ("id", "model", "system_fingerprint") if event.get(name)}
        counts: Any = event.get("usage")
        groq: Mapping[str, Any] = event.get("x_groq") or {}
        if counts is None:  # Groq's older streams have them there alone
            counts = groq.get("usage")
        if counts is not None:
            found["usage"] = chat_usage(counts)
            found["raw_usage"] = counts
        left_out = _BODY_FIELDS | self._host.padding
        info = {name: value for name, value in event.items() if name not in left_out and value is not None}
        # Chunks repeat these facts; only what is new goes on.
        new = {name: value for name, value in found.items() if self._said.get(name) != value}
        self._said.update(found)
        said: dict[str, Any] = self._said.setdefault("info", {})
        news = {name: value for name, value in info.items() if name not in said or said[name] != value}
        said.update(news)
        return {**new, "info": news} if news else new

    def _choice(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        number = choice.get("index") or 0
        message: Mapping[str, Any] = choice.get(self._part) or {}
        found = _texts(message, self._kept.takes(number, message))
        calls: list[dict[str, Any]] = message.get("tool_calls") or []
        if calls:
            found["tool_calls"] = self._numbered(number, calls)
        if choice.get("logprobs") is not None:
            found["logprobs"] = choice["logprobs"]
        if choice.get("error"):
            raise Failed(choice["error"])
        if choice.get("finish_reason") is not None:
            found.update(_finish(choice))
            self.complete = True
        blocks = self._kept.blocks(number, ended=choice.get("finish_reason") is not None)
        if blocks is not None:
            found["blocks"] = blocks
        info = {
            name: value for name, value in choice.items() if name not in _CHOICE_FIELDS and value is not None
        }
        if info:
            found["info"] = info
        return found

    def _numbered(self, number: int, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give an index to each piece of a tool call: in whole answers its place, and some servers' streams have
        none."""
        ids = self._calls.setdefault(number, [])
        numbered: list[dict[str, Any]] = []
        for call in calls:
            index = call.get("index")
            if index is None or self._part == "message":
                name = call.get("id")
                if self._part == "message" or not ids or (name is not None and name not in ids):
                    ids.append(name)
                index = ids.index(name) if self._part == "delta" and name in ids else len(ids) - 1
            numbered.append({**call, **_with_arguments(call), "index": index})
        return numbered


def _with_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    """The function of a call whose arguments the server left out, as some do where there are none."""
    function: Mapping[str, Any] | None = call.get("function")
    if not function or function.get("arguments") is not None:
        return {}
    return {"function": {**function, "arguments": ""}}


def _finish(choice: Mapping[str, Any]) -> dict[str, Any]:
    reason = choice["finish_reason"]
    if reason in _GIVEN_UP:
        text = f"the provider gave the answer up (finish_reason {reason})"
        raise Failed({"message": text, "code": reason}, kind=_GIVEN_UP[reason])
    return {
        "finish_reason": _FINISH.get(reason, reason),
        "native_finish_reason": choice.get("native_finish_reason") or reason,
    }


def _both(name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**first[name], **second[name]}} if name in first and name in second else {}


def _texts(message: Mapping[str, Any], kept: frozenset[str]) -> dict[str, Any]:
    """The text fields of a message or delta, and everything that has no field of its own (nor is kept otherwise)."""
    found: dict[str, Any] = {}
    known = _MESSAGE_FIELDS | kept
    extra = {name: value for name, value in message.items() if name not in known and value is not None}
    content = message.get("content")
    thoughts = ""
    if isinstance(content, list):  # some servers answer in parts, thinking among them
        content, thoughts = _of_parts(cast("list[Any]", content))  # type: ignore[redundant-cast]
    if content is not None:
        found["content"] = content
    reasoning = message.get("reasoning_content")
    if reasoning is None:
        reasoning = message.get("reasoning")
    if isinstance(reasoning, str) or thoughts:
        found["reasoning"] = (reasoning if isinstance(reasoning, str) else "") + thoughts
    elif reasoning is not None:
        extra["reasoning"] = reasoning
    if message.get("refusal") is not None:
        found["refusal"] = message["refusal"]
    if extra:
        found["extra"] = extra
    return found


def _of_parts(parts: list[Any]) -> tuple[str | None, str]:
    """Text and thinking in a list of content parts."""
    texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
    thoughts: list[str] = []
    for part in parts:
        if part.get("type") == "thinking":
            inner: Any = part.get("thinking")
            pieces: list[Any] = [{"text": inner}] if isinstance(inner, str) else inner or []
            thoughts += [str(one.get("text", "")) for one in pieces]
    return ("".join(texts) if texts else None), "".join(thoughts)
