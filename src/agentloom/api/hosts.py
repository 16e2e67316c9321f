"""Host functions for async agents. Each is one recorded crossing of the boundary; outside a run they are refused."""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import uuid as _uuid
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, TypeVar, cast, overload

from agentloom.api.asking import ask, question_of, refuse_stream
from agentloom.api.outputs import TypedAnswer
from agentloom.api.retries import Retry
from agentloom.errors import LoomError, NotSupported
from agentloom.format.words import kind_of
from agentloom.runtime import host
from agentloom.runtime.ambient import env_call, now_call, random_call, uuid_call
from agentloom.runtime.answers import Answer, StreamedAnswer
from agentloom.runtime.boundary import call_async, call_inline, mark, open_async
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.scope import Scope, entered

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
    "sleep",
    "step",
    "uuid",
]

T = TypeVar("T")


@overload
async def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    output: type[T],
    repair: int = ...,
    retry: Retry | int | None = ...,
    **params: Any,
) -> TypedAnswer[T]: ...
@overload
async def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    output: Any,
    repair: int = ...,
    retry: Retry | int | None = ...,
    **params: Any,
) -> TypedAnswer[Any]: ...
@overload
async def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    stream: Literal[False] = False,
    retry: Retry | int | None = ...,
    **params: Any,
) -> Answer: ...
@overload
async def model(
    name: str, messages: Sequence[Mapping[str, Any]] | str, *, stream: Literal[True], **params: Any
) -> StreamedAnswer: ...
async def model(
    name: str | Sequence[str],
    messages: Sequence[Mapping[str, Any]] | str,
    *,
    stream: bool = False,
    output: Any = None,
    repair: int | None = None,
    retry: Retry | int | None = None,
    **params: Any,
) -> Answer | StreamedAnswer:
    """Ask a model. ``messages`` in the chat form (role, content), or one string for one user message; ``params`` as
    the provider's chat API names them (``tools``, ``temperature``, ``response_format``, ``base_url`` ...).

    ``name`` may be several names: each is asked when the one before failed in a way that another may not. ``retry``
    tries each again by a policy. ``output`` says what the answer has to be: a type, or a JSON Schema; a wrong one is
    sent back with what is wrong at most ``repair`` times (default 1).

    Returns an ``Answer``; with ``output`` a ``TypedAnswer`` with its ``value``, with ``stream=True`` a
    ``StreamedAnswer`` to iterate. Raises ``ModelError``, and ``OutputError`` when no answer was right.
    """
    if stream:
        refuse_stream(name, output=output, retry=retry)
        spec = host.model_spec(str(name), messages, {**params, "stream": True})
        return StreamedAnswer(cast(Any, open_async(spec, host.perform_model_stream)))
    if not isinstance(name, str) or output is not None or retry is not None or repair is not None:
        return await ask(question_of(name, messages, params, output=output, repair=repair, retry=retry))
    answer = await call_async(host.model_spec(name, messages, params), host.perform_model)
    return Answer(cast("dict[str, Any]", answer))


async def http(method: str, url: str, **options: Any) -> dict[str, Any]:
    """One HTTP request; options ``headers``, ``params``, ``json``, ``content``, ``timeout`` (seconds). Returns a
    mapping with ``status``, ``headers`` and ``body`` (text, or bytes)."""
    return cast("dict[str, Any]", await call_async(host.http_spec(method, url, options), host.perform_http))


async def now() -> dt.datetime:
    """The wall clock, an aware UTC datetime."""
    return cast(dt.datetime, call_inline(*now_call()))


async def random() -> float:
    """A float in [0, 1); seeded, for each path, when the run has a seed."""
    return cast(float, call_inline(*random_call()))


async def uuid() -> _uuid.UUID:
    """A version 4 UUID."""
    return cast(_uuid.UUID, call_inline(*uuid_call()))


async def env(name: str, default: str | None = None) -> str | None:
    """An environment variable. Names that look like credentials are refused (``ValueRefused``)."""
    return cast("str | None", call_inline(*env_call(name, default)))


async def sleep(seconds: float) -> None:
    """Pause; on replay it passes at once."""
    await call_async(host.sleep_spec(seconds), host.perform_sleep)


async def step(function: Callable[..., T | Awaitable[T]], *args: Any, **kwargs: Any) -> T:
    """The result of an expensive pure computation, kept so that replay does not repeat it."""
    spec = host.step_spec(function, args, kwargs)
    if host.is_async(function):
        return cast(T, await call_async(spec, host.perform_async_function(cast(Any, function))))
    return cast(T, call_inline(spec, host.perform_function(function)))


async def retrieve(retriever: Callable[..., Any], *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
    """Documents or chunks: calls ``retriever`` (sync or async), which returns mappings with ids and scores."""
    spec = host.retrieve_spec(retriever, args, kwargs)
    if host.is_async(retriever):
        found = await call_async(spec, host.perform_async_function(retriever))
    else:
        found = call_inline(spec, host.perform_function(retriever))
    return cast("list[dict[str, Any]]", found)


async def note(text: object) -> None:
    """Write a note (any recordable value) into the trace."""
    mark("note", text)


async def flag(reason: str) -> None:
    """Mark the run as worth keeping, and say why."""
    mark("flag", reason)


async def parallel(*branches: Coroutine[Any, Any, Any]) -> list[Any]:
    """Run coroutines side by side; their results in argument order. The first error cancels the others, waits for
    their clean-up and is raised."""
    try:
        scope, loop = _place_of_parallel(branches)
    except (LoomError, TypeError):
        for branch in branches:
            if asyncio.iscoroutine(branch):
                branch.close()  # it will never run, and need not be missed
        raise
    tasks: list[asyncio.Task[Any]] = []
    for branch in branches:
        if scope is None:
            tasks.append(loop.create_task(branch))
            continue
        below = scope.started("parallel")
        below.fresh = scope.session.loop is not None
        with entered(below):
            context = contextvars.copy_context()
        tasks.append(loop.create_task(branch, context=context))
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        failed = [task for task in tasks if task.done() and not task.cancelled() and task.exception()]
    finally:
        left = [task for task in tasks if not task.done()]
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
            for task in left:
                if not task.cancelled():
                    task.exception()  # an error of the clean-up gives way to the one that caused it
    for task in failed:
        task.result()
    return [task.result() for task in tasks]


def _place_of_parallel(branches: tuple[object, ...]) -> tuple[Scope | None, asyncio.AbstractEventLoop]:
    scope = taking_part("parallel")
    loop: asyncio.AbstractEventLoop | None = None if scope is None else scope.session.loop
    if scope is None or scope.session.stock is not None:
        loop = loop or asyncio.get_running_loop()
    if loop is None:
        raise NotSupported("parallel() was awaited in a sync agent", hint="use agentloom.sync.parallel there")
    for number, branch in enumerate(branches, start=1):
        if not asyncio.iscoroutine(branch):
            raise TypeError(f"parallel() takes coroutines; argument {number} is {kind_of(branch)}")
    return scope, loop


class Memory:
    """Recorded memory: ``get``, ``put`` and ``search`` on the backend chosen with ``use_memory``."""

    async def get(self, key: str) -> Any:
        """The value kept under ``key``, or None."""
        return call_inline(*host.memory_call("get", key=key))

    async def put(self, key: str, value: object) -> None:
        """Keep ``value`` under ``key``. On replay nothing is written."""
        call_inline(*host.memory_call("put", key=key, value=value))

    async def search(self, query: str, limit: int = 5) -> list[dict[str, Any]]:
        """The best ``limit`` matches, as mappings with key, value and score."""
        return cast(
            "list[dict[str, Any]]", call_inline(*host.memory_call("search", query=query, limit=limit))
        )


memory = Memory()
"""The memory of the running agent."""
