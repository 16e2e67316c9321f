"""Host calls as data: what each host function asks for and how it is performed, once for sync and async callers."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from agentloom.errors import NotSupported
from agentloom.format.values import decode
from agentloom.format.words import kind_of
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.deadlines import NEVER_NS
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.memory import memory_backend
from agentloom.runtime.models import ModelBackend, backend
from agentloom.runtime.outside import PATIENCE, Outside
from agentloom.runtime.profiles import all_key, get, plain_url, with_secrets
from agentloom.runtime.registry import TYPES, declare_annotations
from agentloom.runtime.scope import current
from agentloom.runtime.sendable import Unsendable, first_unsendable, refuse_half_pairs

__all__ = [
    "http_spec",
    "memory_call",
    "model_spec",
    "perform_http",
    "perform_http_sync",
    "perform_model",
    "perform_model_stream",
    "perform_model_stream_sync",
    "perform_model_sync",
    "request_of",
    "retrieve_spec",
    "sleep_spec",
    "step_spec",
]


def request_of(call: Call, *, read_only: bool = False) -> dict[str, Any]:
    """A fresh copy of a call's request as written, with the secrets put back that were not written. ``read_only``: for
    somebody who changes nothing in it; then the items of histories need not be copied."""
    grown = call.grown
    if grown:
        recorded: dict[str, Any] = {}
        for name, tree in call.tree.items():
            if name in grown:
                recorded[name] = grown[name].lend(read_only=read_only)
            else:
                recorded[name] = tree if type(tree) is str else decode(tree, TYPES)
    else:
        recorded = decode(call.tree, TYPES)
    rule = call.rule or get(call.spec.profile)
    if all_key(rule, call.spec.request):
        return recorded  # nothing was left out of what was written
    return with_secrets(rule, call.spec.request, recorded)


# -- model ---------------------------------------------------------------------------------------------------------


def model_spec(name: str, messages: Sequence[Mapping[str, Any]] | str, params: Mapping[str, Any]) -> CallSpec:
    """A model call. A plain string as ``messages`` stands for one user message."""
    scope = taking_part("model")
    history = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    refuse_half_pairs("model", name)
    request: dict[str, object] = {"model": name, "messages": history}
    if params:
        request.update((key, value) for key, value in params.items() if value is not None)
    return CallSpec(
        "model",
        name,
        request,
        profile="agentloom.model/1",
        series=None if scope is None else f"{scope.path} {name}",
        stream=bool(params.get("stream")),
    )


def _asked(performer: ModelBackend, call: Call) -> dict[str, Any]:
    return request_of(call, read_only=getattr(performer, "reads_only", False) is True)


def perform_model(call: Call) -> Awaitable[object]:
    performer = backend()
    return performer.complete(_asked(performer, call))


def perform_model_sync(call: Call) -> object:
    performer = backend()
    return performer.complete_sync(_asked(performer, call))


def perform_model_stream(call: Call) -> AsyncIterator[object]:
    performer = backend()
    return performer.stream(_asked(performer, call))


def perform_model_stream_sync(call: Call) -> Iterator[object]:
    performer = backend()
    return performer.stream_sync(_asked(performer, call))


# -- http ----------------------------------------------------------------------------------------------------------


def http_spec(method: str, url: str, options: Mapping[str, Any]) -> CallSpec:
    """An HTTP request: headers, params, json, content, timeout (seconds)."""
    for what, given in (("method", method), ("url", url)):
        if not isinstance(cast("object", given), str):
            raise TypeError(f"http() takes the {what} as a text, not {kind_of(given)}")
        refuse_half_pairs(what, given)
    request: dict[str, object] = {"method": method.upper(), "url": url}
    request.update((key, value) for key, value in options.items() if value is not None)
    return CallSpec("http", f"{method.upper()} {plain_url(url).split('?', 1)[0]}", request, profile="http/1")


def _client_module() -> Any:
    try:
        import httpx2
    except ImportError as error:
        raise NotSupported("http() needs the httpx2 package", hint="pip install httpx2") from error
    return httpx2


def _http_result(response: Any) -> dict[str, Any]:
    """Status, headers (lower-case names, in order) and the body: text where it is text, bytes otherwise."""
    content = response.content
    try:
        body: object = content.decode("utf-8")
    except UnicodeDecodeError:
        body = content
    headers = {
        name.lower(): value for name, value in response.headers.items() if name.lower() != "set-cookie"
    }
    return {"status": response.status_code, "headers": headers, "body": body}


async def perform_http(call: Call) -> object:
    request = request_of(call)
    async with _client_module().AsyncClient() as client:
        try:
            return _http_result(await client.request(request["method"], request["url"], **_rest(request)))
        except (UnicodeEncodeError, ValueError, TypeError) as error:
            found = _unsendable(error, request)
            if found is None:
                raise
    raise found


def perform_http_sync(call: Call) -> object:
    request = request_of(call)
    with _client_module().Client() as client:
        try:
            return _http_result(client.request(request["method"], request["url"], **_rest(request)))
        except (UnicodeEncodeError, ValueError, TypeError) as error:
            found = _unsendable(error, request)
            if found is None:
                raise
    raise found


def _rest(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in ("method", "url")}


def _unsendable(error: Exception, request: Mapping[str, Any]) -> ValueError | None:
    """What to raise in place of an error that came of a value which cannot be sent; it holds no part of the request
    but the path. None for any other error."""
    found = first_unsendable({name: value for name, value in request.items() if name in ("params", "json")})
    if found is None and isinstance(error, UnicodeEncodeError):
        words = {name: value for name, value in request.items() if name in ("headers", "content")}
        found = first_unsendable(words) or Unsendable("headers", "a header holds ASCII only", "")
    return None if found is None else ValueError(f"http() cannot send {found}")


# -- sleep, step, retrieve, memory ---------------------------------------------------------------------------------


def sleep_spec(seconds: float) -> CallSpec:
    """A pause of ``seconds``; on replay it passes at once. A long one is left to whoever resumes the run, where it can
    be left."""
    spec = CallSpec("sleep", "sleep", {"seconds": seconds})
    scope = current()
    if scope is not None and PATIENCE < seconds * 1e9 < NEVER_NS:
        session = scope.session
        due = session.guard.start + session.engine.vt + round(seconds * 1e9)
        spec.outside = Outside("time", facts={"seconds": seconds}, due=due)
    return spec


async def perform_sleep(call: Call) -> object:
    await asyncio.sleep(cast(float, call.tree["seconds"]))
    return None


def perform_sleep_sync(call: Call) -> object:
    time.sleep(cast(float, call.tree["seconds"]))
    return None


def step_spec(
    function: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> CallSpec:
    """An expensive pure computation whose result is kept, so that replay and resume do not repeat it."""
    declare_annotations(function)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return CallSpec("step", name, {"args": list(args), "kwargs": dict(kwargs)})


def perform_function(function: Callable[..., object]) -> Callable[[Call], object]:
    """Performs a step or a retriever: calls ``function`` with fresh copies of the recorded arguments."""

    def perform(call: Call) -> object:
        request = request_of(call)
        return function(*request["args"], **request["kwargs"])

    return perform


def perform_async_function(function: Callable[..., Awaitable[object]]) -> Callable[[Call], Awaitable[object]]:
    """As ``perform_function``, for a coroutine function."""

    def perform(call: Call) -> Awaitable[object]:
        request = request_of(call)
        return function(*request["args"], **request["kwargs"])

    return perform


def retrieve_spec(
    retriever: Callable[..., object], args: tuple[object, ...], kwargs: Mapping[str, object]
) -> CallSpec:
    """Documents or chunks from a retriever: any function that returns mappings with ids, scores and text."""
    declare_annotations(retriever)
    name = getattr(retriever, "__name__", type(retriever).__name__)
    return CallSpec("retrieve", name, {"args": list(args), "kwargs": dict(kwargs)}, effect="read")


def memory_call(operation: str, **arguments: object) -> tuple[CallSpec, Callable[[Call], object]]:
    """One operation (get, put, search) on the memory backend."""
    effect = "write" if operation == "put" else "read"
    spec = CallSpec("memory", operation, arguments, effect=effect)

    def perform(call: Call) -> object:
        method = getattr(memory_backend(), operation)
        return method(*request_of(call).values())

    return spec, perform


def refuse_async(what: str, function: object) -> None:
    """Raise ``NotSupported`` where a sync host function is given a coroutine function, which it cannot await."""
    taking_part(what)
    if is_async(function):
        name = getattr(function, "__qualname__", type(function).__qualname__)
        raise NotSupported(
            f"agentloom.sync.{what}() was given the coroutine function {name}",
            hint=f"await agentloom.{what}(...) in an async agent, or make the function sync",
        )


def is_async(function: object) -> bool:
    """Whether calling ``function`` gives an awaitable (coroutine functions and objects with such a ``__call__``)."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(type(function), "__call__", None)  # noqa: B004
    )
