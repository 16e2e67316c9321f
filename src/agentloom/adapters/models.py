"""The performing side of the `model` host call: a request as recorded in, an answer mapping out.

`backend` is what the runtime finds under the entry point group ``agentloom.models``. Requests are in the style of
OpenAI chat completions whatever the provider; answers are the mapping of `agentloom.runtime.assembly`. Nothing is
retried here unless the request says ``max_retries``. No SDK is imported before a call needs it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from typing import Any, Protocol, cast

from agentloom.adapters import (
    models_anthropic,
    models_anyllm,
    models_native,
    models_openai,
    models_responses,
)
from agentloom.adapters.models_clients import async_client, close_all, response_type, stream_type, sync_client
from agentloom.adapters.models_errors import broken_stream, failure_in, malformed, request_id, translate
from agentloom.adapters.models_route import Route, find_route
from agentloom.adapters.models_sse import is_done
from agentloom.adapters.models_unsendable import unsendable

__all__ = ["ModelBackend", "backend"]


class _Other(Protocol):
    """A module that performs calls by itself."""

    def complete(self, request: Mapping[str, Any], route: Route) -> Awaitable[dict[str, Any]]: ...
    def complete_sync(self, request: Mapping[str, Any], route: Route) -> dict[str, Any]: ...
    def stream(self, request: Mapping[str, Any], route: Route) -> AsyncIterator[dict[str, Any]]: ...
    def stream_sync(self, request: Mapping[str, Any], route: Route) -> Iterator[dict[str, Any]]: ...


class _Reader(Protocol):
    """Turns a stream's events into deltas; ``complete`` once the provider said that the answer is whole."""

    complete: bool

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]: ...


class _Api(Protocol):
    """What a protocol's module offers."""

    @property
    def PATH(self) -> str: ...  # noqa: N802 - a constant of the module

    def body(self, request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]: ...
    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]: ...
    def reader(self) -> _Reader: ...


# Protocols that are not spoken through the client of an SDK.
_OTHERS: dict[str, _Other] = {
    "any-llm": models_anyllm,
    **dict.fromkeys(["google", "bedrock", "bedrock-invoke"], models_native),
}
_APIS: dict[str, _Api] = {"anthropic": models_anthropic, "responses": models_responses}


def _api(route: Route) -> _Api:
    return models_openai.Dialect(route.provider) if route.api == "openai" else _APIS[route.api]


class ModelBackend:
    """Performs model calls. Safe to use from several threads and event loops at once."""

    reads_only = True
    """Requests are read, never changed (``agentloom.runtime.models.ModelBackend``)."""

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Perform ``request`` and give the whole answer. ModelError (``kind``) or ProviderError."""
        route = await _find(request)
        if route.api in _OTHERS:
            return await _OTHERS[route.api].complete(request, route)
        options = _options(request, route, stream=False)
        client = await async_client(route)
        failure = None
        try:
            response = await client.post(**options, cast_to=response_type(route.api))
            return _answer(response, route)
        except Exception as error:
            failure = translate(error, route) or unsendable(error, request, route)
            if failure is None:
                raise
        raise failure

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """As `complete`, blocking."""
        route = find_route(request)
        if route.api in _OTHERS:
            return _OTHERS[route.api].complete_sync(request, route)
        options = _options(request, route, stream=False)
        client = sync_client(route)
        failure = None
        try:
            return _answer(client.post(**options, cast_to=response_type(route.api)), route)
        except Exception as error:
            failure = translate(error, route) or unsendable(error, request, route)
            if failure is None:
                raise
        raise failure

    async def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Perform ``request`` and give the answer's deltas as they arrive. Errors as `complete`, also in mid-stream."""
        route = await _find(request)
        if route.api in _OTHERS:
            async for delta in _OTHERS[route.api].stream(request, route):
                yield delta
            return
        options = _options(request, route, stream=True)
        client = await async_client(route)
        reader = _api(route).reader()
        events: Any = None
        failure = None
        try:
            kind = stream_type(route.api, awaited=True)
            events = await client.post(**options, cast_to=object, stream=True, stream_cls=kind)
            yield _head(events)
            async for event in events:
                for delta in _read(reader, event, route):
                    yield delta
        except Exception as error:
            failure = translate(error, route) or unsendable(error, request, route)
            if failure is None:
                raise
        finally:
            if events is not None:
                await events.close()
        if failure is not None:
            raise failure
        if not (reader.complete or is_done(events)):
            raise broken_stream(route)

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """As `stream`, blocking."""
        route = find_route(request)
        if route.api in _OTHERS:
            yield from _OTHERS[route.api].stream_sync(request, route)
            return
        options = _options(request, route, stream=True)
        client = sync_client(route)
        reader = _api(route).reader()
        events: Any = None
        failure = None
        try:
            kind = stream_type(route.api, awaited=False)
            events = client.post(**options, cast_to=object, stream=True, stream_cls=kind)
            yield _head(events)
            for event in events:
                yield from _read(reader, event, route)
        except Exception as error:
            failure = translate(error, route) or unsendable(error, request, route)
            if failure is None:
                raise
        finally:
            if events is not None:
                events.close()
        if failure is not None:
            raise failure
        if not (reader.complete or is_done(events)):
            raise broken_stream(route)

    def close(self) -> None:
        """Let go of idle connections of sync calls. The backend stays usable."""
        close_all()


async def _find(request: Mapping[str, Any]) -> Route:
    if str(request.get("model")).startswith("local:") and request.get("base_url") is None:
        return await asyncio.to_thread(find_route, request)  # may wait for a server to start
    return find_route(request)


def _options(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
    """The arguments of the SDK client's ``post``: the body goes out as recorded, whatever the SDK's version knows."""
    api = _api(route)
    body = api.body(request, route, stream=stream)
    if stream:
        body["stream"] = True
    extra: Mapping[str, Any] | None = request.get("extra_body")
    if extra:
        body.update(extra)
    options: dict[str, Any] = {}
    for name, option in (("extra_headers", "headers"), ("extra_query", "params")):
        if request.get(name):
            options[option] = dict(request[name])
    for name in ("timeout", "max_retries"):
        if request.get(name) is not None:
            options[name] = request[name]
    return {"path": api.PATH, "body": body, "options": options}


# What reading JSON of another shape ends with; a reader does nothing else that could raise them.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


def _answer(response: Any, route: Route) -> dict[str, Any]:
    try:
        body = _event(json.loads(response.content), route)
        failed = failure_in(body)
        answer = None if failed else _api(route).answer(body)
    except _UNREADABLE as error:  # not JSON, or JSON of another protocol
        reason = _unreadable(error)
    else:
        if failed is not None:
            raise failed
        answer = cast("dict[str, Any]", answer)
        answer["request_id"] = request_id(response.headers)
        return answer
    raise malformed(reason, route)


def _read(reader: _Reader, event: object, route: Route) -> Iterator[dict[str, Any]]:
    """The deltas of one event; ModelError (``malformed``) for one that is not of the protocol."""
    try:
        deltas = list(reader.read(_event(event, route)))
    except _UNREADABLE as error:
        reason = _unreadable(error)
    else:
        yield from deltas
        return
    raise malformed(reason, route)


def _unreadable(error: BaseException) -> str:
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _event(event: object, route: Route) -> dict[str, Any]:
    if not isinstance(event, dict):
        raise malformed(f"expected a JSON object, got {type(event).__name__}", route)
    return cast("dict[str, Any]", event)


def _head(events: Any) -> dict[str, Any]:
    return {"request_id": request_id(events.response.headers)}


backend = ModelBackend()
