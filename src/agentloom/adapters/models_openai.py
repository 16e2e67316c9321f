"""OpenAI chat completions, of OpenAI and of any server that speaks it: requests go out as recorded.

Answers are read from the JSON itself, so that nothing that a server adds is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.runtime.assembly import assemble

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["LOCAL_FIELDS", "PATH", "Reader", "answer", "body", "reader", "usage"]

PATH = "/chat/completions"
# Fields of a request that steer the call itself and are not for the provider's body.
LOCAL_FIELDS = frozenset(
    [
        "model",
        "base_url",
        "api_key",
        "api_key_env",
        "timeout",
        "max_retries",
        "extra_headers",
        "extra_query",
        "extra_body",
        "stream",
    ]
)
_MESSAGE_FIELDS = frozenset(["role", "content", "tool_calls", "refusal", "reasoning", "reasoning_content"])
_CHOICE_FIELDS = frozenset(["index", "message", "delta", "finish_reason", "logprobs"])
# `obfuscation` is padding against eavesdroppers and differs in every chunk.
_BODY_FIELDS = frozenset(["id", "object", "choices", "model", "system_fingerprint", "usage", "obfuscation"])


def body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
    """The request's body without ``stream``: fields as recorded, with the provider's name of the model."""
    sent: dict[str, Any] = {"model": route.model}
    sent.update((name, value) for name, value in request.items() if name not in LOCAL_FIELDS)
    messages: list[dict[str, Any]] = sent.get("messages") or []
    # Another provider's content blocks (`Answer.message`) mean nothing here; their text is in `content`.
    if any("blocks" in message for message in messages):
        sent["messages"] = [
            {name: value for name, value in message.items() if name != "blocks"} for message in messages
        ]
    if stream and "stream_options" not in request:
        sent["stream_options"] = {"include_usage": True}  # without it a stream has no token counts
    elif sent.get("stream_options", ...) is None:
        del sent["stream_options"]
    return sent


def usage(raw: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Token counts by class. OpenAI counts cached tokens within the prompt, reasoning within the completion."""
    if raw is None:
        return None
    asked: Mapping[str, Any] = raw.get("prompt_tokens_details") or {}
    made: Mapping[str, Any] = raw.get("completion_tokens_details") or {}
    cached = asked.get("cached_tokens")
    return {
        "input": raw.get("prompt_tokens"),
        "cached": raw.get("prompt_cache_hit_tokens") if cached is None else cached,
        "cache_write": asked.get("cache_write_tokens"),
        "output": raw.get("completion_tokens"),
        "reasoning": made.get("reasoning_tokens"),
    }


def answer(body: Mapping[str, Any]) -> dict[str, Any]:
    """The answer mapping of a whole response body. ValueError when it holds no choice."""
    if not body.get("choices"):
        raise ValueError("the answer holds no choice")
    return assemble(Reader("message").read(body))


class Reader:
    """Turns response bodies (``part`` is ``message``) or the chunks of a stream (``delta``) into deltas."""

    def __init__(self, part: str = "delta") -> None:
        self.complete = False
        self._part = part
        self._said: dict[str, Any] = {}
        self._calls: dict[int, list[str | None]] = {}

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of one event; none when it says nothing new."""
        head = self._head(event)
        choices: list[dict[str, Any]] = event.get("choices") or []
        for choice in choices:
            delta = self._choice(choice)
            if head:
                delta = {**head, **delta, **_both("info", head, delta)}
                head = {}
            number = choice.get("index") or 0
            if delta:
                yield {"choice": number, **delta} if number else delta
        if head:
            yield head

    def _head(self, event: Mapping[str, Any]) -> dict[str, Any]:
        found = {name: event[name] for name in ("id", "model", "system_fingerprint") if event.get(name)}
        if event.get("usage") is not None:
            found["usage"] = usage(event["usage"])
            found["raw_usage"] = event["usage"]
        info = {
            name: value for name, value in event.items() if name not in _BODY_FIELDS and value is not None
        }
        # Chunks repeat these facts; only what is new goes on.
        new = {name: value for name, value in found.items() if self._said.get(name) != value}
        self._said.update(found)
        said: dict[str, Any] = self._said.setdefault("info", {})
        news = {name: value for name, value in info.items() if name not in said or said[name] != value}
        said.update(news)
        return {**new, "info": news} if news else new

    def _choice(self, choice: Mapping[str, Any]) -> dict[str, Any]:
        message: Mapping[str, Any] = choice.get(self._part) or {}
        found = _texts(message)
        calls: list[dict[str, Any]] = message.get("tool_calls") or []
        if calls:
            found["tool_calls"] = self._numbered(choice.get("index") or 0, calls)
        if choice.get("logprobs") is not None:
            found["logprobs"] = choice["logprobs"]
        if choice.get("finish_reason") is not None:
            found["finish_reason"] = found["native_finish_reason"] = choice["finish_reason"]
            self.complete = True
        info = {
            name: value for name, value in choice.items() if name not in _CHOICE_FIELDS and value is not None
        }
        if info:
            found["info"] = info
        return found

    def _numbered(self, number: int, calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give an index to each piece of a tool call: whole answers have none, and some servers' streams neither."""
        ids = self._calls.setdefault(number, [])
        numbered: list[dict[str, Any]] = []
        for call in calls:
            index = call.get("index")
            if index is None:
                name = call.get("id")
                if self._part == "message" or not ids or (name is not None and name not in ids):
                    ids.append(name)
                index = ids.index(name) if self._part == "delta" and name in ids else len(ids) - 1
            numbered.append({**call, "index": index})
        return numbered


def reader() -> Reader:
    """A reader of a stream's chunks."""
    return Reader()


def _both(name: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {name: {**first[name], **second[name]}} if name in first and name in second else {}


def _texts(message: Mapping[str, Any]) -> dict[str, Any]:
    """The text fields of a message or delta, and everything that has no field of its own."""
    found: dict[str, Any] = {}
    extra = {
        name: value for name, value in message.items() if name not in _MESSAGE_FIELDS and value is not None
    }
    content = message.get("content")
    if isinstance(content, list):  # some servers answer in parts; the parts are kept beside their text
        parts = cast("list[dict[str, Any]]", content)
        texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
        extra["content"] = parts
        content = "".join(texts) if texts else None
    if content is not None:
        found["content"] = content
    reasoning = message.get("reasoning_content")
    if reasoning is None:
        reasoning = message.get("reasoning")
    if isinstance(reasoning, str):
        found["reasoning"] = reasoning
    elif reasoning is not None:
        extra["reasoning"] = reasoning
    if message.get("refusal") is not None:
        found["refusal"] = message["refusal"]
    if extra:
        found["extra"] = extra
    return found
