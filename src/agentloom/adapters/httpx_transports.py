"""The transports that an HTTP client is given inside a run: each request is one host call.

Both live and on replay the response is built from the recorded value, so the SDK above parses the same bytes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentloom.adapters.http_wire import (
    EventReader,
    body_bytes,
    body_fields,
    event_bytes,
    kept_headers,
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
    value = _head(response) | body_fields(response.headers.get("content-type"), body)
    usage = found.usage(value.get("json")) if found.usage is not None else None
    if usage:
        value["usage"] = dict(usage)
    return value


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
    """The two recording transports, as classes of ``module``."""

    class Blocking(module.BaseTransport):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def handle_request(self, request: Any) -> Any:
            exchange = _exchange(request, request.read())
            found = _classified(exchange, classify)
            try:
                if exchange.streamed:
                    return self._stream(request, found)
                value = cast(
                    "dict[str, Any]", call_inline(found.spec, lambda _: self._perform(request, found))
                )
            except module.RequestError as error:
                error.request = request
                raise
            return _rebuilt(module, value, request, content=body_bytes(value))

        def _perform(self, request: Any, found: Classified) -> dict[str, Any]:
            with doing(Work("http")):
                try:
                    response = self.inner.handle_request(request)
                    try:
                        response.request = request
                        return _whole(response, response.read(), found)
                    finally:
                        response.close()
                except module.RequestError as error:
                    raise _clean(error) from None

        def _stream(self, request: Any, found: Classified) -> Any:
            stream = open_inline(found.spec, lambda _: _Marked(self._events(request)))
            head = cast("dict[str, Any]", next(stream))
            return _rebuilt(module, head, request, stream=BlockingStream(stream, request))

        def _events(self, request: Any) -> Iterator[object]:
            try:
                response = self.inner.handle_request(request)
                try:
                    response.request = request
                    yield _head(response)
                    if not _is_events(response):
                        yield {"body": body_fields(response.headers.get("content-type"), response.read())}
                        return
                    reader = EventReader()
                    for data in response.iter_bytes():
                        for event in reader.feed(data):
                            yield event
                            if _is_done(event):
                                return
                finally:
                    response.close()
            except module.RequestError as error:
                raise _clean(error) from None

    class BlockingStream(module.SyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, request: Any) -> None:
            self.stream = stream
            self.request = request

        def __iter__(self) -> Iterator[bytes]:
            try:
                for event in self.stream:
                    if _is_done(event):
                        for _ in self.stream:  # the last event: the call has ended, not been left early
                            pass
                    yield _piece(event)
            except module.RequestError as error:
                error.request = self.request
                raise

        def close(self) -> None:
            self.stream.close()

    class Awaited(module.AsyncBaseTransport):  # type: ignore[misc]
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            exchange = _exchange(request, await request.aread())
            found = _classified(exchange, classify)
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
                    response = await self.inner.handle_async_request(request)
                    try:
                        response.request = request
                        return _whole(response, await response.aread(), found)
                    finally:
                        await response.aclose()
                except module.RequestError as error:
                    raise _clean(error) from None

        async def _stream(self, request: Any, found: Classified) -> Any:
            stream = open_async(found.spec, lambda _: self._events(request))
            head = cast("dict[str, Any]", await anext(stream))
            return _rebuilt(module, head, request, stream=AwaitedStream(stream, request))

        async def _events(self, request: Any) -> AsyncIterator[object]:
            with doing(Work("http")):
                try:
                    response = await self.inner.handle_async_request(request)
                    try:
                        response.request = request
                        yield _head(response)
                        if not _is_events(response):
                            data = await response.aread()
                            yield {"body": body_fields(response.headers.get("content-type"), data)}
                            return
                        reader = EventReader()
                        async for data in response.aiter_bytes():
                            for event in reader.feed(data):
                                yield event
                                if _is_done(event):
                                    return
                    finally:
                        await response.aclose()
                except module.RequestError as error:
                    raise _clean(error) from None

    class AwaitedStream(module.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any, request: Any) -> None:
            self.stream = stream
            self.request = request

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for event in self.stream:
                    if _is_done(event):
                        async for _ in self.stream:
                            pass
                    yield _piece(event)
            except module.RequestError as error:
                error.request = self.request
                raise

        async def aclose(self) -> None:
            await self.stream.aclose()

    return Blocking, Awaited


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
