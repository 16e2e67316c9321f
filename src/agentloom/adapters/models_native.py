"""Providers whose own protocol is spoken over HTTP without an SDK between: Google and Amazon Bedrock.

The request goes out as the translation made it and the JSON that comes back is read itself: the typed layers of these
providers' SDKs refuse what they do not know and drop what they were not told of (``docs/adr/0012-native-wires.md``).
What is used of the official packages is what they are best at: credentials, signatures, event streams.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlencode

from agentloom.adapters import models_bedrock, models_bedrock_invoke, models_google
from agentloom.adapters.models_clients import async_client, sync_client
from agentloom.adapters.models_errors import broken_stream, malformed, translate
from agentloom.adapters.models_unsendable import unsendable
from agentloom.errors import ModelError, NotSupported

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["complete", "complete_sync", "stream", "stream_sync"]


class Reader(Protocol):
    """Turns a stream's events into deltas; ``complete`` once the provider said that the answer is whole."""

    @property
    def complete(self) -> bool: ...
    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]: ...


class Decoder(Protocol):
    """Takes the bytes of a stream apart into events. ValueError for bytes that are none."""

    def feed(self, data: bytes) -> Iterator[object]: ...
    def finish(self) -> Iterator[object]: ...


class Wire(Protocol):
    """What a provider's module offers. ``signed`` may read files and ask servers for credentials."""

    def body(self, request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]: ...
    def address(self, route: Route, *, stream: bool) -> str: ...
    def signed(self, route: Route, url: str, headers: dict[str, str], content: bytes) -> dict[str, str]: ...
    def answer(self, body: Mapping[str, Any], route: Route) -> dict[str, Any]: ...
    def reader(self, route: Route) -> Reader: ...
    def decoder(self) -> Decoder: ...
    def failure(
        self, status: int, headers: Mapping[str, str], content: bytes, route: Route
    ) -> ModelError: ...
    def request_id(self, headers: Mapping[str, str]) -> str | None: ...


_WIRES: dict[str, Wire] = {
    "google": models_google,
    "bedrock": models_bedrock,
    "bedrock-invoke": models_bedrock_invoke,
}

# What reading JSON of another shape ends with; a reader does nothing else that could raise them.
_UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)


@dataclass(slots=True)
class _Sent:
    """A request ready to be signed. ``options``: the HTTP client's own arguments."""

    wire: Wire
    url: str
    content: bytes
    headers: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def arguments(self, route: Route) -> dict[str, Any]:
        headers = self.wire.signed(route, self.url, self.headers, self.content)
        return {"url": self.url, "content": self.content, "headers": headers, **self.options}


async def complete(request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """Perform ``request`` and give the answer mapping. ModelError, as `ModelBackend.complete`."""
    sent = _sent(request, route, stream=False)
    failure = None
    try:
        arguments = await asyncio.to_thread(sent.arguments, route)
        client = await async_client(route)
        response = await client.post(**arguments)
        return _answer(response, sent.wire, route)
    except Exception as error:
        failure = translate(error, route) or unsendable(error, request, route)
        if failure is None:
            raise
    raise failure


def complete_sync(request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """As `complete`, blocking."""
    sent = _sent(request, route, stream=False)
    failure = None
    try:
        response = sync_client(route).post(**sent.arguments(route))
        return _answer(response, sent.wire, route)
    except Exception as error:
        failure = translate(error, route) or unsendable(error, request, route)
        if failure is None:
            raise
    raise failure


async def stream(request: Mapping[str, Any], route: Route) -> AsyncIterator[dict[str, Any]]:
    """Perform ``request`` and give the deltas as they arrive. Errors as `complete`, also in mid-stream."""
    sent = _sent(request, route, stream=True)
    response: Any = None
    failure = None
    reading = _Reading(sent.wire, route)
    try:
        arguments = await asyncio.to_thread(sent.arguments, route)
        client = await async_client(route)
        response = await client.send(client.build_request("POST", **arguments), stream=True)
        if response.status_code >= 400:
            await response.aread()
        for delta in reading.begin(response):
            yield delta
        async for data in response.aiter_bytes():
            for delta in reading.feed(data):
                yield delta
        for delta in reading.finish():
            yield delta
    except Exception as error:
        failure = translate(error, route) or unsendable(error, request, route)
        if failure is None:
            raise
    finally:
        if response is not None:
            await response.aclose()
    if failure is not None:
        raise failure


def stream_sync(request: Mapping[str, Any], route: Route) -> Iterator[dict[str, Any]]:
    """As `stream`, blocking."""
    sent = _sent(request, route, stream=True)
    response: Any = None
    failure = None
    reading = _Reading(sent.wire, route)
    try:
        client = sync_client(route)
        response = client.send(client.build_request("POST", **sent.arguments(route)), stream=True)
        if response.status_code >= 400:
            response.read()
        yield from reading.begin(response)
        for data in response.iter_bytes():
            yield from reading.feed(data)
        yield from reading.finish()
    except Exception as error:
        failure = translate(error, route) or unsendable(error, request, route)
        if failure is None:
            raise
    finally:
        if response is not None:
            response.close()
    if failure is not None:
        raise failure


def _sent(request: Mapping[str, Any], route: Route, *, stream: bool) -> _Sent:
    wire = _WIRES[route.api]
    if request.get("max_retries"):
        raise NotSupported(
            f"{route.provider} is called without an SDK, and max_retries asks for one that tries again",
            hint="leave max_retries out and try again in the agent, where each attempt is recorded",
        )
    body = wire.body(request, route, stream=stream)
    extra: Mapping[str, Any] | None = request.get("extra_body")
    if extra:
        body.update(extra)
    url = wire.address(route, stream=stream)
    query: Mapping[str, Any] | None = request.get("extra_query")
    if query:
        url += ("&" if "?" in url else "?") + urlencode(query)
    headers = {
        "content-type": "application/json",
        **cast("dict[str, str]", request.get("extra_headers") or {}),
    }
    options = {} if request.get("timeout") is None else {"timeout": request["timeout"]}
    return _Sent(wire, url, _bytes(body, request, route), headers, options)


def _bytes(body: Mapping[str, Any], request: Mapping[str, Any], route: Route) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (ValueError, TypeError, RecursionError) as error:
        failure = unsendable(error, request, route)
        if failure is None:
            raise
    raise failure


def _answer(response: Any, wire: Wire, route: Route) -> dict[str, Any]:
    if response.status_code >= 400:
        raise wire.failure(response.status_code, _lower(response.headers), response.content, route)
    try:
        answer = wire.answer(_object(json.loads(response.content)), route)
    except _UNREADABLE as error:
        reason = _unreadable(error)
    else:
        answer["request_id"] = wire.request_id(_lower(response.headers))
        return answer
    raise malformed(reason, route)


class _Reading:
    """The reading of one stream, the same for both kinds of client."""

    def __init__(self, wire: Wire, route: Route) -> None:
        self._wire, self._route = wire, route
        self._decoder, self._reader = wire.decoder(), wire.reader(route)

    def begin(self, response: Any) -> Iterator[dict[str, Any]]:
        """The delta of the headers; the ModelError of an answer that failed (whose body must have been read)."""
        headers = _lower(response.headers)
        if response.status_code >= 400:
            raise self._wire.failure(response.status_code, headers, response.content, self._route)
        yield {"request_id": self._wire.request_id(headers)}

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        yield from self._read(self._decoder.feed(data))

    def finish(self) -> Iterator[dict[str, Any]]:
        """What the end of the bytes completes; ModelError (``connection``) when the answer is not whole."""
        yield from self._read(self._decoder.finish())
        if not self._reader.complete:
            raise broken_stream(self._route)

    def _read(self, events: Iterator[object]) -> Iterator[dict[str, Any]]:
        while True:
            try:
                event = next(events, None)
                deltas = [] if event is None else list(self._reader.read(_object(event)))
            except _UNREADABLE as error:
                reason = _unreadable(error)
            else:
                yield from deltas
                if event is None:
                    return
                continue
            raise malformed(reason, self._route)


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}")  # noqa: TRY004 - what was read is wrong
    return cast("dict[str, Any]", value)


def _unreadable(error: BaseException) -> str:
    return str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
