"""The transports that an HTTP client is given inside a run: each request is one host call.

Both live and on replay the response is built from the recorded value, so the SDK above parses the same bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from agentloom.adapters.exchanges import (
    Classified,
    Exchange,
    Marked,
    awaited_events,
    bare_error,
    chain_of,
    classified,
    comes_whole,
    events_of,
    exchange_of,
    host_work,
    is_events,
    piece_of,
    tell,
    whole_of,
)
from agentloom.adapters.http_bodies import body_bytes
from agentloom.adapters.http_wire import head_fields, head_pairs, head_reason, value_bytes
from agentloom.adapters.own_errors import OwnError
from agentloom.runtime.boundary import call_async, call_inline, open_async, open_inline

__all__ = ["Exchange", "streaming", "transports"]

streaming: ContextVar[bool] = ContextVar("agentloom.httpx.streaming", default=False)
"""Whether the client's caller reads the answer piece by piece (``send(stream=True)``)."""

_DRAIN = 0.1
"""Seconds, as in the SDK (openai/_streaming_cleanup.py)."""


# -- requests ------------------------------------------------------------------------------------------------------


def _exchange(request: Any, body: bytes) -> Exchange:
    headers = request.headers
    return exchange_of(
        str(request.method),
        str(request.url),
        str(request.url.path),
        headers.get("content-type"),
        headers.get("content-encoding"),
        body,
        piecewise=streaming.get(),
    )


# -- responses -----------------------------------------------------------------------------------------------------


def _head(response: Any) -> dict[str, Any]:
    pairs = [
        (name.decode("ascii", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
        for name, value in response.headers.raw
    ]
    facts = response.extensions
    version = facts.get("http_version", b"HTTP/1.1").decode("ascii", "replace")
    reason = facts.get("reason_phrase")
    phrase = None if reason is None else reason.decode("ascii", "replace")
    return head_fields(int(response.status_code), pairs, version, phrase)


def _type(response: Any) -> str | None:
    kind: str | None = response.headers.get("content-type")
    return kind


def _coded(response: Any) -> bool:
    """Whether the library has a coding of the body to undo. If not, the stream itself gives the same pieces."""
    return "content-encoding" in response.headers


def _is_done(event: Mapping[str, Any]) -> bool:
    return event.get("data") == "[DONE]"


def _rebuilt(seam: _Seam, head: Mapping[str, Any], request: Any, stream: Any) -> Any:
    version, reason = str(head.get("version", "HTTP/1.1")), head_reason(head)
    made = seam.module.Response(
        head["status"],
        headers=[
            (name.encode("ascii", "surrogateescape"), value.encode("utf-8", "surrogateescape"))
            for name, value in head_pairs(head)
        ],
        request=request,
        extensions={
            "http_version": version.encode("ascii", "replace"),
            "reason_phrase": reason.encode("ascii", "replace"),
        },
        stream=stream,
    )
    made._decoder = seam.plain()  # where the library keeps it; the headers tell of a compression that is gone
    return made


def transports(module: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Makers of the two recording transports for clients of ``module``: each wraps a client's own transport."""
    seam = _Seam(
        module,
        module._decoders.IdentityDecoder,
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
    """One HTTP library: its module, its decoder of bodies that are plain already, its stream classes."""

    module: Any
    plain: Callable[[], Any]
    blocking_stream: Any
    awaited_stream: Any

    @contextlib.contextmanager
    def cleaned(self) -> Generator[None]:
        """Transport errors and their causes leave the block without their requests and sockets: types and messages."""
        try:
            yield
        except self.module.RequestError as error:
            made = chain_of(error, self._kept)
            raise made  # noqa: B904 - its causes are its own

    def raised(self, error: Exception, request: Any, own: OwnError) -> BaseException:
        """What to raise for the error of a call: errors of the library know their request."""
        if isinstance(error, self.module.RequestError):
            cast(Any, error).request = request
        return own.for_(error)

    def _kept(self, error: BaseException) -> BaseException | None:
        if isinstance(error, self.module.RequestError):
            made: BaseException = type(error)(str(error))
            return made
        return bare_error(error, ("httpcore", "httpcore2", "h11", "h2", "anyio"))


class _Blocking:
    """The transport of sync clients."""

    def __init__(self, seam: _Seam, inner: Any) -> None:
        self._seam = seam
        self._inner = inner

    def handle_request(self, request: Any) -> Any:
        module = self._seam.module
        exchange = _exchange(request, request.read())
        found = classified(exchange)
        own = OwnError()
        try:
            if found.spec.stream:
                return self._stream(request, found, own)
            value = cast(
                "dict[str, Any]", call_inline(found.spec, lambda _: self._perform(request, found, own))
            )
        except Exception as error:  # noqa: BLE001 - raised below
            failed = error
        else:
            tell(value, found)
            return _rebuilt(self._seam, value, request, module.ByteStream(body_bytes(value)))
        try:
            raise self._seam.raised(failed, request, own)
        finally:
            del failed  # its traceback holds this frame

    def _answer(self, request: Any, own: OwnError) -> Any:
        try:
            return self._inner.handle_request(request)
        except Exception as error:
            own.note(error)
            raise

    def _perform(self, request: Any, found: Classified, own: OwnError) -> dict[str, Any]:
        with host_work(), self._seam.cleaned():
            response = self._answer(request, own)
            try:
                response.request = request
                return whole_of(_head(response), _type(response), response.read(), found)
            finally:
                response.close()

    def _stream(self, request: Any, found: Classified, own: OwnError) -> Any:
        stream = open_inline(found.spec, lambda _: Marked(self._events(request, found, own)))
        head = cast("dict[str, Any]", next(stream))
        body = self._seam.blocking_stream(self._seam.module, stream, request, found)
        return _rebuilt(self._seam, head, request, body)

    def _events(self, request: Any, found: Classified, own: OwnError) -> Iterator[object]:
        lost = self._seam.module.RequestError
        with self._seam.cleaned():
            response = self._answer(request, own)
            try:
                response.request = request
                yield _head(response)
                kind = _type(response)
                if is_events(kind):
                    pieces = response.iter_bytes() if _coded(response) else response.stream
                    for event in events_of(pieces, found, lost):
                        yield event
                        if _is_done(event):
                            return
                elif comes_whole(kind, found):
                    yield piece_of(kind, response.read(), found, whole=True)
                else:
                    for data in response.iter_bytes():
                        yield piece_of(None, data, found, whole=False)
            finally:
                response.close()


class _BlockingStream:
    """The body of a streamed answer for a sync client: the bytes of each recorded chunk as it is delivered."""

    def __init__(self, module: Any, stream: Any, request: Any, found: Classified) -> None:
        self._module = module
        self._stream = stream
        self._request = request
        self._found = found

    def __iter__(self) -> Iterator[bytes]:
        try:
            for event in self._stream:
                if _is_done(event):
                    for _ in self._stream:  # the last event: the call has ended, it was not left early
                        pass
                tell(event, self._found)
                yield value_bytes(event)
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
        found = classified(exchange)
        own = OwnError()
        try:
            if found.spec.stream:
                return await self._stream(request, found, own)
            value = cast(
                "dict[str, Any]", await call_async(found.spec, lambda _: self._perform(request, found, own))
            )
        except Exception as error:  # noqa: BLE001 - raised below
            failed = error
        else:
            tell(value, found)
            return _rebuilt(self._seam, value, request, module.ByteStream(body_bytes(value)))
        try:
            raise self._seam.raised(failed, request, own)
        finally:
            del failed  # its traceback holds this frame

    async def _answer(self, request: Any, own: OwnError) -> Any:
        self._at_home()
        try:
            return await self._inner.handle_async_request(request)
        except Exception as error:
            own.note(error)
            raise

    async def _perform(self, request: Any, found: Classified, own: OwnError) -> dict[str, Any]:
        with host_work(), self._seam.cleaned():
            response = await self._answer(request, own)
            try:
                response.request = request
                body = await response.aread()
                return whole_of(_head(response), _type(response), body, found)
            finally:
                await response.aclose()

    async def _stream(self, request: Any, found: Classified, own: OwnError) -> Any:
        stream = open_async(found.spec, lambda _: self._events(request, found, own))
        head = cast("dict[str, Any]", await anext(stream))
        body = self._seam.awaited_stream(self._seam.module, stream, request, found)
        return _rebuilt(self._seam, head, request, body)

    async def _events(self, request: Any, found: Classified, own: OwnError) -> AsyncIterator[object]:
        lost = self._seam.module.RequestError
        with host_work(), self._seam.cleaned():
            response = await self._answer(request, own)
            try:
                response.request = request
                yield _head(response)
                kind = _type(response)
                if is_events(kind):
                    pieces = response.aiter_bytes() if _coded(response) else response.stream
                    async with contextlib.aclosing(awaited_events(pieces, found, lost)) as events:
                        async for event in events:
                            yield event
                            if _is_done(event):
                                await self._drained(response)
                                return
                elif comes_whole(kind, found):
                    yield piece_of(kind, await response.aread(), found, whole=True)
                else:
                    async for data in response.aiter_bytes():
                        yield piece_of(None, data, found, whole=False)
            finally:
                await response.aclose()

    def _at_home(self) -> None:
        """Note in a transport over aiohttp which loop its connections live in: they are closed there
        (``httpx_seam``). Other transports are closed where their client is."""
        if any(cls.__name__ == "AiohttpTransport" for cls in type(self._inner).__mro__):
            self._inner.agentloom_home = asyncio.get_running_loop()

    async def _drained(self, response: Any) -> None:
        """Read what is left of a body after its last event, for a while: HTTP/1.1 uses the connection again only then.
        The SDK's own async streams do so after ``[DONE]``; its sync ones do not."""
        if response.extensions.get("http_version") != b"HTTP/1.1":
            return
        with contextlib.suppress(TimeoutError, self._seam.module.RequestError):
            async with asyncio.timeout(_DRAIN):
                async for _ in response.stream:
                    await asyncio.sleep(0)  # a body that goes on and on ends in time, too


class _AwaitedStream:
    """As ``_BlockingStream``, for an async client."""

    def __init__(self, module: Any, stream: Any, request: Any, found: Classified) -> None:
        self._module = module
        self._stream = stream
        self._request = request
        self._found = found

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._stream:
                if _is_done(event):
                    async for _ in self._stream:
                        pass
                tell(event, self._found)
                yield value_bytes(event)
        except self._module.RequestError as error:
            error.request = self._request
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()
