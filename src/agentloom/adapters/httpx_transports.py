"""The transports that an HTTP client is given inside a run: each request is one host call.

Both live and on replay the response is built from the recorded value, so the SDK above parses the same bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentloom.adapters.http_wire import (
    EventReader,
    answer_fields,
    body_bytes,
    body_fields,
    event_bytes,
    kept_headers,
    plain_body,
    request_fields,
)
from agentloom.runtime.boundary import call_async, call_inline, open_async, open_inline
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.profiles import plain_url
from agentloom.runtime.work import Work, doing

__all__ = ["Classified", "Classify", "Exchange", "transports"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request about to be sent. ``json`` is its body when that is a JSON object."""

    method: str
    url: str
    path: str
    content_type: str | None
    body: bytes
    json: dict[str, Any] | None

    @property
    def streamed(self) -> bool:
        """Whether the client asked for a stream of events."""
        return self.json is not None and self.json.get("stream") is True


@dataclass(frozen=True, slots=True)
class Classified:
    """The host call that an exchange is; ``usage`` finds the token counts in a JSON answer."""

    spec: CallSpec
    usage: Callable[[Any], Mapping[str, int] | None] | None = None


Classify = Callable[[Exchange], "Classified | None"]


# -- requests ------------------------------------------------------------------------------------------------------


def _exchange(request: Any, body: bytes) -> Exchange:
    content_type: str | None = request.headers.get("content-type")
    body = plain_body(request.headers.get("content-encoding"), body)
    fields = body_fields(content_type, body)
    value = fields.get("json")
    return Exchange(
        method=str(request.method),
        url=str(request.url),
        path=str(request.url.path),
        content_type=content_type,
        body=body,
        json=cast("dict[str, Any]", value) if isinstance(value, dict) else None,
    )


def _classified(exchange: Exchange, classify: Classify) -> Classified:
    found = classify(exchange)
    if found is not None:
        return found
    fields = request_fields(exchange.method, exchange.url, exchange.content_type, exchange.body)
    name = f"{fields['method']} {plain_url(fields['url']).partition('?')[0]}"
    return Classified(
        CallSpec("http", name, fields, profile="http/1", series=f"http:{name}", stream=exchange.streamed)
    )


# -- responses -----------------------------------------------------------------------------------------------------


def _head(response: Any) -> dict[str, Any]:
    head: dict[str, Any] = {
        "status": int(response.status_code),
        "headers": kept_headers(list(response.headers.multi_items())),
    }
    version = response.extensions.get("http_version", b"HTTP/1.1")
    if version != b"HTTP/1.1":
        head["version"] = version.decode("ascii", "replace")
    return head


def _whole(response: Any, body: bytes, found: Classified) -> dict[str, Any]:
    return _counted(_head(response) | answer_fields(response.headers.get("content-type"), body), found)


def _counted(value: dict[str, Any], found: Classified) -> dict[str, Any]:
    """An answer, or an event of a stream, with the token counts that it tells (``usage``)."""
    usage = found.usage(value.get("json")) if found.usage is not None else None
    return value | {"usage": dict(usage)} if usage else value


def _whole_body(response: Any, data: bytes, found: Classified) -> dict[str, Any]:
    """The one chunk of an answer that was no stream after all."""
    body = answer_fields(response.headers.get("content-type"), data)
    counted = _counted(body, found)
    return {"body": body} if counted is body else {"body": body, "usage": counted["usage"]}


def _is_events(response: Any) -> bool:
    return str(response.headers.get("content-type", "")).lower().startswith("text/event-stream")


def _is_done(event: Mapping[str, Any]) -> bool:
    return event.get("data") == "[DONE]"


def _rebuilt(module: Any, head: Mapping[str, Any], request: Any, **body: Any) -> Any:
    return module.Response(
        head["status"],
        headers=dict(head["headers"]),
        request=request,
        extensions={"http_version": str(head.get("version", "HTTP/1.1")).encode("ascii")},
        **body,
    )


def _clean(error: BaseException) -> BaseException:
    """A transport error without its request and causes (they hold sockets and credentials): type and message."""
    return type(error)(str(error))


def transports(module: Any, classify: Classify) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Makers of the two recording transports for clients of ``module``: each wraps a client's own transport."""
    seam = _Seam(
        module,
        classify,
        _derived("BlockingStream", _BlockingStream, module.SyncByteStream),
        _derived("AwaitedStream", _AwaitedStream, module.AsyncByteStream),
    )
    blocking = _derived("Blocking", _Blocking, module.BaseTransport)
    awaited = _derived("Awaited", _Awaited, module.AsyncBaseTransport)
    return (lambda inner: blocking(seam, inner)), (lambda inner: awaited(seam, inner))


def _derived(name: str, part: type, base: Any) -> Any:
    """``part`` as a subclass of the library's own base class, which the library checks for."""
    return type(name, (part, base), {})


@dataclass(frozen=True, slots=True)
class _Seam:
    """One HTTP library: its module, who classifies its requests, its stream classes."""

    module: Any
    classify: Classify
    blocking_stream: Any
    awaited_stream: Any


class _Blocking:
    """The transport of sync clients."""

    def __init__(self, seam: _Seam, inner: Any) -> None:
        self._seam = seam
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        module = self._seam.module
        exchange = _exchange(request, request.read())
        found = _classified(exchange, self._seam.classify)
        try:
            if exchange.streamed:
                return self._stream(request, found)
            value = cast("dict[str, Any]", call_inline(found.spec, lambda _: self._perform(request, found)))
        except module.RequestError as error:
            error.request = request
            raise
        return _rebuilt(module, value, request, content=body_bytes(value))

    def _perform(self, request: Any, found: Classified) -> dict[str, Any]:
        with doing(Work("http")):
            try:
                response = self._inner.handle_request(request)
                try:
                    response.request = request
                    return _whole(response, response.read(), found)
                finally:
                    response.close()
            except self._seam.module.RequestError as error:
                raise _clean(error) from None

    def _stream(self, request: Any, found: Classified) -> Any:
        stream = open_inline(found.spec, lambda _: _Marked(self._events(request, found)))
        head = cast("dict[str, Any]", next(stream))
        body = self._seam.blocking_stream(self._seam.module, stream, request)
        return _rebuilt(self._seam.module, head, request, stream=body)

    def _events(self, request: Any, found: Classified) -> Iterator[object]:
        try:
            response = self._inner.handle_request(request)
            try:
                response.request = request
                yield _head(response)
                if not _is_events(response):
                    yield _whole_body(response, response.read(), found)
                    return
                reader = EventReader()
                try:
                    for data in response.iter_bytes():
                        for event in reader.feed(data):
                            yield _counted(event, found)
                            if _is_done(event):
                                return
                except self._seam.module.RequestError:
                    # What came before the connection was lost.
                    yield from (_counted(event, found) for event in reader.finish())
                    raise
                yield from (_counted(event, found) for event in reader.finish())
            finally:
                response.close()
        except self._seam.module.RequestError as error:
            raise _clean(error) from None


class _BlockingStream:
    """The body of a streamed answer for a sync client: the bytes of each recorded chunk as it is delivered."""

    def __init__(self, module: Any, stream: Any, request: Any) -> None:
        self._module = module
        self._stream = stream
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        try:
            for event in self._stream:
                if _is_done(event):
                    for _ in self._stream:  # the last event: the call has ended, it was not left early
                        pass
                yield _piece(event)
        except self._module.RequestError as error:
            error.request = self._request
            raise

    def close(self) -> None:
        self._stream.close()


class _Awaited:
    """The transport of async clients."""

    def __init__(self, seam: _Seam, inner: Any) -> None:
        self._seam = seam
        self._inner = inner

    async def handle_async_request(self, request: Any) -> Any:
        module = self._seam.module
        exchange = _exchange(request, await request.aread())
        found = _classified(exchange, self._seam.classify)
        try:
            if exchange.streamed:
                return await self._stream(request, found)
            value = cast(
                "dict[str, Any]", await call_async(found.spec, lambda _: self._perform(request, found))
            )
        except module.RequestError as error:
            error.request = request
            raise
        return _rebuilt(module, value, request, content=body_bytes(value))

    async def _perform(self, request: Any, found: Classified) -> dict[str, Any]:
        with doing(Work("http")):
            try:
                response = await self._inner.handle_async_request(request)
                try:
                    response.request = request
                    return _whole(response, await response.aread(), found)
                finally:
                    await response.aclose()
            except self._seam.module.RequestError as error:
                raise _clean(error) from None

    async def _stream(self, request: Any, found: Classified) -> Any:
        stream = open_async(found.spec, lambda _: self._events(request, found))
        head = cast("dict[str, Any]", await anext(stream))
        body = self._seam.awaited_stream(self._seam.module, stream, request)
        return _rebuilt(self._seam.module, head, request, stream=body)

    async def _events(self, request: Any, found: Classified) -> AsyncIterator[object]:
        with doing(Work("http")):
            try:
                response = await self._inner.handle_async_request(request)
                try:
                    response.request = request
                    yield _head(response)
                    if not _is_events(response):
                        data = await response.aread()
                        yield _whole_body(response, data, found)
                        return
                    reader = EventReader()
                    try:
                        async for data in response.aiter_bytes():
                            for event in reader.feed(data):
                                yield _counted(event, found)
                                if _is_done(event):
                                    return
                    except self._seam.module.RequestError:
                        for event in reader.finish():  # what came before the connection was lost
                            yield _counted(event, found)
                        raise
                    for event in reader.finish():
                        yield _counted(event, found)
                finally:
                    await response.aclose()
            except self._seam.module.RequestError as error:
                raise _clean(error) from None


class _AwaitedStream:
    """As ``_BlockingStream``, for an async client."""

    def __init__(self, module: Any, stream: Any, request: Any) -> None:
        self._module = module
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._stream:
                if _is_done(event):
                    async for _ in self._stream:
                        pass
                yield _piece(event)
        except self._module.RequestError as error:
            error.request = self._request
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()


def _piece(value: Mapping[str, Any]) -> bytes:
    """The bytes of one recorded chunk: an event, or the body of an answer that was no stream."""
    return body_bytes(value["body"]) if "body" in value else event_bytes(value)


class _Marked:
    """An iterator whose every step counts as host work."""

    def __init__(self, inner: Iterator[object]) -> None:
        self._inner = inner

    def __iter__(self) -> _Marked:
        return self

    def __next__(self) -> object:
        with doing(Work("http")):
            return next(self._inner)

    def close(self) -> None:
        with doing(Work("http")):
            cast(Any, self._inner).close()
