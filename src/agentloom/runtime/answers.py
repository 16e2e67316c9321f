"""What `model` gives to an agent: a typed view of the recorded answer.

The recorded value is a plain mapping (`agentloom.runtime.assembly`); `Answer` and `StreamedAnswer` are built from it,
in the same way when the call is live and when it is replayed. Pure Python: no SDK, no pydantic.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from agentloom.errors import AnswerError
from agentloom.runtime.assembly import Assembly, copy_tree
from agentloom.runtime.plain_json import Ambiguous, read_json

__all__ = ["Answer", "StreamedAnswer", "ToolCall", "Usage"]

_EXCERPT = 80


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer. None: the provider did not say. See the module's text for what is part of what."""

    input: int | None
    cached: int | None
    cache_write: int | None
    output: int | None
    reasoning: int | None


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One tool call that the model asked for; ``arguments_text`` is what it wrote, whether or not it is JSON."""

    id: str
    name: str
    arguments_text: str

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments as a fresh mapping. AnswerError when the model wrote no JSON object."""
        value = _parse(self.arguments_text, f"the arguments of tool call {self.id or '?'} ({self.name})")
        if not isinstance(value, dict):
            raise AnswerError(
                f"the arguments of tool call {self.id or '?'} ({self.name}) are JSON, but no object",
                text=self.arguments_text,
                hint="send the error back to the model as the tool's result, or ask again",
            )
        return cast("dict[str, Any]", value)

    def result(self, content: str) -> dict[str, Any]:
        """The message that answers this call: ``{"role": "tool", "tool_call_id": ..., "content": ...}``."""
        return {"role": "tool", "tool_call_id": self.id, "content": content}


@dataclass(frozen=True, slots=True)
class Answer:
    """A model's answer. ``raw`` is the recorded mapping; everything else is read from it."""

    raw: dict[str, Any]

    @property
    def text(self) -> str:
        """The text that the model wrote; empty when it wrote none (it called tools, or refused)."""
        return self.raw.get("content") or ""

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The tool calls in the order that the model gave them."""
        calls: list[dict[str, Any]] = self.raw.get("tool_calls") or []
        return [_tool_call(call) for call in calls]

    @property
    def id(self) -> str | None:
        """The provider's id of the answer (of a response: what ``previous_response_id`` names)."""
        return self.raw.get("id")

    @property
    def message(self) -> dict[str, Any]:
        """The assistant message to append to ``messages``; a fresh mapping each time."""
        message: dict[str, Any] = {"role": "assistant", "content": self.raw.get("content")}
        if self.raw.get("refusal") is not None:
            message["refusal"] = self.raw["refusal"]
        if self.raw.get("tool_calls"):
            message["tool_calls"] = copy_tree(self.raw["tool_calls"])
        if self.raw.get("blocks"):
            message["blocks"] = copy_tree(self.raw["blocks"])
        return message

    @property
    def usage(self) -> Usage | None:
        usage: dict[str, Any] | None = self.raw.get("usage")
        if usage is None:
            return None
        return Usage(
            input=usage.get("input"),
            cached=usage.get("cached"),
            cache_write=usage.get("cache_write"),
            output=usage.get("output"),
            reasoning=usage.get("reasoning"),
        )

    @property
    def finish_reason(self) -> str | None:
        return self.raw.get("finish_reason")

    @property
    def reasoning(self) -> str | None:
        return self.raw.get("reasoning")

    @property
    def refusal(self) -> str | None:
        return self.raw.get("refusal")

    @property
    def logprobs(self) -> Any:
        """Log probabilities as the provider gave them, or None."""
        return self.raw.get("logprobs")

    @property
    def model(self) -> str | None:
        """The model that answered, as the provider resolved the name."""
        return self.raw.get("model")

    @property
    def choices(self) -> list[Answer]:
        """All answers, when several were asked for (``n=2``); else the one."""
        choices: list[dict[str, Any]] | None = self.raw.get("choices")
        return [Answer({**self.raw, "choices": None, **choice}) for choice in choices] if choices else [self]

    def json(self) -> Any:
        """The text read as JSON, fresh each time. AnswerError, with the text and the place, when it is not JSON."""
        return _parse(self.text, "the answer's text")

    def __str__(self) -> str:
        return self.text


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    # "custom" tools carry free text in place of JSON arguments.
    body: Mapping[str, Any] = call.get("function") or call.get("custom") or {}
    text = body.get("arguments", body.get("input"))
    return ToolCall(id=call.get("id") or "", name=body.get("name") or "", arguments_text=text or "")


def _parse(text: str, what: str) -> Any:
    try:
        return read_json(text)
    except Ambiguous as error:
        raise AnswerError(
            f"{what} cannot be read in one way: {error}", text=text, hint="catch AnswerError and ask again"
        ) from None
    except (ValueError, RecursionError) as error:
        at = error.pos if isinstance(error, json.JSONDecodeError) else 0
        near = text[max(0, at - _EXCERPT // 2) : at + _EXCERPT // 2]
        raise AnswerError(
            f"{what} is not JSON: {error}; near {near!r}",
            text=text,
            position=at,
            hint="ask for response_format={'type': 'json_schema', ...}, or catch AnswerError and ask again",
        ) from None


class StreamedAnswer:
    """An answer that arrives in pieces.

    Iterate it (``async for`` or ``for``, as the agent is async or sync) for the pieces of text as they come, or use
    `events` / `aevents` for every delta; afterwards `answer` is the whole `Answer`. ``source`` gives the deltas, live
    or from the trace. Closing early (leaving a ``with`` block, `close`, `aclose`) closes the source.
    """

    def __init__(self, source: AsyncIterator[dict[str, Any]] | Iterator[dict[str, Any]]) -> None:
        self._source = source
        self._assembly = Assembly()
        self._ended = False

    @property
    def answer(self) -> Answer:
        """The whole answer. AnswerError while the stream has not ended."""
        if not self._ended:
            raise AnswerError(
                "the stream has not ended, so there is no whole answer yet",
                text="",
                hint="iterate to the end first, or read `.partial`",
            )
        return Answer(self._assembly.answer())

    @property
    def partial(self) -> Answer:
        """What has arrived so far."""
        return Answer(self._assembly.answer())

    def events(self) -> Iterator[dict[str, Any]]:
        """Every delta, in order, in a sync agent."""
        source = self._source
        if not isinstance(source, Iterator):
            raise TypeError("this stream belongs to an async agent: use `async for`")
        for delta in source:
            self._assembly.add(delta)
            yield delta
        self._ended = True

    async def aevents(self) -> AsyncIterator[dict[str, Any]]:
        """Every delta, in order, in an async agent."""
        source = self._source
        if not isinstance(source, AsyncIterator):
            raise TypeError("this stream belongs to a sync agent: use `for`")
        async for delta in source:
            self._assembly.add(delta)
            yield delta
        self._ended = True

    def __iter__(self) -> Iterator[str]:
        return (delta["content"] for delta in self.events() if _has_text(delta))

    async def __aiter__(self) -> AsyncIterator[str]:
        async for delta in self.aevents():
            if _has_text(delta):
                yield delta["content"]

    def close(self) -> None:
        """Stop reading; the provider's connection is let go."""
        closer: Callable[[], object] | None = getattr(self._source, "close", None)
        if closer is not None:
            closer()

    async def aclose(self) -> None:
        """Stop reading; the provider's connection is let go."""
        closer: Callable[[], Any] | None = getattr(self._source, "aclose", None)
        if closer is not None:
            await closer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _has_text(delta: Mapping[str, Any]) -> bool:
    return bool(delta.get("content")) and delta.get("choice", 0) == 0
