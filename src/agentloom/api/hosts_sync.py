"""Host functions for sync agents: the names of ``agentloom``, called instead of awaited."""

from __future__ import annotations

import datetime as dt
import uuid as _uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from agentloom.api.asking import ask_sync, question_of, refuse_stream
from agentloom.api.outputs import TypedAnswer
from agentloom.api.retries import Retry
from agentloom.api.retries import retrying_sync as retrying
from agentloom.runtime import host
from agentloom.runtime.ambient import env_call, now_call, random_call, uuid_call
from agentloom.runtime.answers import Answer, StreamedAnswer
from agentloom.runtime.baton import parallel
from agentloom.runtime.boundary import call_inline, mark, open_inline

__all__ = [
    "Memory",
    "env",
    "flag",
    "http",
    "memory",
    "model",
    "note",
    "now",
    "parallel",
    "random",
    "retrieve",
    "retrying",
    "sleep",
    "step",
    "uuid",
]

T = TypeVar("T")


@overload
def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    output: type[T],
    repair: int = ...,
    retry: Retry | int | None = ...,
    **params: Any,
) -> TypedAnswer[T]: ...
@overload
def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    output: Any,
    repair: int = ...,
    retry: Retry | int | None = ...,
    **params: Any,
) -> TypedAnswer[Any]: ...
@overload
def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    stream: Literal[False] = False,
    retry: Retry | int | None = ...,
    **params: Any,
) -> Answer: ...
@overload
def model(
    name: str, messages: Sequence[Mapping[str, Any]] | str, *, stream: Literal[True], **params: Any
) -> StreamedAnswer: ...
def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    stream: bool = False,
    output: Any = None,
    repair: int | None = None,
    retry: Retry | int | None = None,
    **params: Any,
) -> Answer | StreamedAnswer:
    """Ask a model; see ``agentloom.model``."""
    if stream:
        refuse_stream(name, output=output, retry=retry)
        spec = host.model_spec(str(name), messages, {**params, "stream": True})
        return StreamedAnswer(cast(Any, open_inline(spec, host.perform_model_stream_sync)))
    if not isinstance(name, str) or output is not None or retry is not None or repair is not None:
        return ask_sync(question_of(name, messages, params, output=output, repair=repair, retry=retry))
    answer = call_inline(host.model_spec(name, messages, params), host.perform_model_sync)
    return Answer(cast("dict[str, Any]", answer))


def http(method: str, url: str, **options: Any) -> dict[str, Any]:
    """One HTTP request; see ``agentloom.http``."""
    return cast("dict[str, Any]", call_inline(host.http_spec(method, url, options), host.perform_http_sync))


def now() -> dt.datetime:
    """The wall clock, an aware UTC datetime."""
    return cast(dt.datetime, call_inline(*now_call()))


def random() -> float:
    """A float in [0, 1); seeded, for each path, when the run has a seed."""
    return cast(float, call_inline(*random_call()))


def uuid() -> _uuid.UUID:
    """A version 4 UUID."""
    return cast(_uuid.UUID, call_inline(*uuid_call()))


def env(name: str, default: str | None = None) -> str | None:
    """An environment variable. Names that look like credentials are refused (``ValueRefused``)."""
    return cast("str | None", call_inline(*env_call(name, default)))


def sleep(seconds: float) -> None:
    """Pause; on replay it passes at once."""
    call_inline(host.sleep_spec(seconds), host.perform_sleep_sync)


def step(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The result of an expensive pure computation, kept so that replay does not repeat it."""
    host.refuse_async("step", function)
    return cast(T, call_inline(host.step_spec(function, args, kwargs), host.perform_function(function)))


def retrieve(retriever: Callable[..., Any], *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
    """Documents or chunks; see ``agentloom.retrieve``."""
    host.refuse_async("retrieve", retriever)
    spec = host.retrieve_spec(retriever, args, kwargs)
    return cast("list[dict[str, Any]]", call_inline(spec, host.perform_function(retriever)))


def note(text: object) -> None:
    """Write a note (any recordable value) into the trace."""
    mark("note", text)


def flag(reason: str) -> None:
    """Mark the run as worth keeping, and say why."""
    mark("flag", reason)


class Memory:
    """Recorded memory; see ``agentloom.memory``."""

    def get(self, key: str) -> Any:
        """The value kept under ``key``, or None."""
        return call_inline(*host.memory_call("get", key=key))

    def put(self, key: str, value: object) -> None:
        """Keep ``value`` under ``key``. On replay nothing is written."""
        call_inline(*host.memory_call("put", key=key, value=value))

    def search(self, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """The best ``limit`` matches, as mappings with key, value and score."""
        return cast(
            "list[dict[str, Any]]", call_inline(*host.memory_call("search", query=query, limit=limit))
        )


memory = Memory()
"""The memory of the running agent."""
