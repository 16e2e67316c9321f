"""A connection of aiohttp without a socket: takes a request from the client, gives it a recorded answer."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, cast

from agentloom.adapters.aiohttp_errors import restored
from agentloom.adapters.aiohttp_outer import Outer
from agentloom.adapters.exchanges import Classified, classified, exchange_of, tell
from agentloom.adapters.http_bodies import body_bytes
from agentloom.adapters.http_wire import head_pairs, head_reason, value_bytes, written_body
from agentloom.errors import NotSupported
from agentloom.runtime.boundary import AsyncStream, call_async, open_async

__all__ = ["Seam"]

_LIMIT = 1 << 16  # bytes that a body holds before it would ask its transport to wait


class Seam:
    """aiohttp's module, what performs requests, and the classes derived from aiohttp's own."""

    def __init__(self, aiohttp: Any) -> None:
        self.aiohttp = aiohttp
        self.outer = Outer(aiohttp)
        self._protocol: Any = type("Protocol", (_Protocol, aiohttp.client_proto.ResponseHandler), {})
        self._payload: Any = type("Payload", (_Payload, aiohttp.StreamReader), {})
        self._connection: Any = aiohttp.connector.Connection
        self._multidict: Any = aiohttp.multipart.CIMultiDict
        self._proxy: Any = aiohttp.multipart.CIMultiDictProxy
        self._versions: dict[str, Any] = {}
        parsers = aiohttp.http_parser
        # The parser in C gives headers that it knows their usual spelling.
        spelt = parsers.HttpResponseParser is not parsers.HttpResponseParserPy
        words = cast("dict[str, object]", aiohttp.hdrs.__dict__)
        known = [one for name, one in words.items() if name.isupper() and isinstance(one, str)]
        self._names: dict[str, str] = {one.lower(): one for one in known} if spelt else {}

    def connection(self, connector: Any, req: Any, limits: Any) -> Any:
        """A connection for one request. NotSupported for a websocket, which is no request and answer."""
        if req.headers.get("Upgrade") or req.method == "CONNECT":
            raise NotSupported(
                f"a websocket of aiohttp ({req.url.with_query(None)}) cannot be recorded",
                hint="open it outside the run, or in a tool",
            )
        loop = asyncio.get_running_loop()
        protocol = self._protocol(self, connector, req, limits, loop)
        protocol.connection_made(_Wire(protocol))
        return self._connection(connector, req.connection_key, protocol, loop)

    def message(self, head: Mapping[str, Any]) -> Any:
        """The head of an answer as aiohttp's parser gives it."""
        aiohttp = self.aiohttp
        pairs = head_pairs(head)
        names = self._names
        raw = tuple([(_bytes(name), _bytes(value)) for name, value in pairs])
        headers = self._multidict([(names.get(name.lower(), name), value) for name, value in pairs])
        return aiohttp.http.RawResponseMessage(
            self._version(str(head.get("version", "HTTP/1.1"))),
            head["status"],
            head_reason(head),
            self._proxy(headers),
            raw,
            False,
            None,
            False,
            False,
        )

    def _version(self, text: str) -> Any:
        version = self._versions.get(text)
        if version is None:
            major, _, minor = text.rpartition("/")[2].partition(".")
            version = self._versions[text] = self.aiohttp.HttpVersion(int(major), int(minor or 0))
        return version

    def payload(self, protocol: Any, timer: Any, loop: Any) -> Any:
        """An empty body."""
        return self._payload(protocol, _LIMIT, timer=timer, loop=loop)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class _Wire(asyncio.Transport):
    """The transport of such a connection: keeps what the client writes."""

    def __init__(self, protocol: Any) -> None:
        super().__init__()
        self._protocol = protocol
        self._closing = False
        self.written = bytearray()
        self.more: Callable[[], None] = _nothing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def write(self, data: Any) -> None:
        self.written += data
        self.more()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._protocol.left()

    abort = close

    def pause_reading(self) -> None:
        """Nothing comes that was not asked for."""

    resume_reading = pause_reading


def _nothing() -> None:
    pass


class _Protocol:
    """In the place of what parses answers. ``read`` gives the head and the body of the one answer there is."""

    def __init__(self, seam: Seam, connector: Any, req: Any, limits: Any, loop: Any) -> None:
        cast(Any, super()).__init__(loop)
        self._seam, self._connector, self._req, self._limits = seam, connector, req, limits
        self._run_loop = loop
        self._params: dict[str, Any] = {}
        self._continued = False
        self._calling: AsyncStream | None = None
        self._unwritten: BaseException | None = None
        self._should_close = True  # it is never kept for another request

    def set_response_params(self, **params: Any) -> None:
        self._params = params

    def start_timeout(self) -> None:
        """Time limits of the socket are kept outside."""

    def set_exception(self, exc: Any, exc_cause: Any = None) -> None:
        """The client could not write its request."""
        self._unwritten = exc() if isinstance(exc, type) else exc
        cast(Any, self).transport.more()

    def left(self) -> None:
        """The client is done: an answer that it did not read to its end was left there."""
        stream, self._calling = self._calling, None
        if stream is not None:
            _at_once(stream.aclose())

    async def read(self) -> Any:
        """The head of the answer, and its body, which comes as it is read. Raises what was raised outside."""
        seam, req = self._seam, self._req
        if req.headers.get("Expect", "").lower() == "100-continue" and not self._continued:
            self._continued = True
            return seam.message({"status": 100, "headers": {}}), seam.aiohttp.streams.EMPTY_PAYLOAD
        body = await self._request()
        headers = req.headers
        kind, encoding = headers.get("Content-Type"), headers.get("Content-Encoding")
        url = str(req.url.with_fragment(None) if req.url.raw_fragment else req.url)
        exchange = exchange_of(req.method, url, req.url.raw_path, kind, encoding, body, piecewise=True)
        found = classified(exchange)
        payload = seam.payload(self, self._params.get("timer"), self._run_loop)
        written = bytes(cast(Any, self).transport.written)
        asked = (self._connector, req, self._limits, written, self._params, found)
        with restored(seam.aiohttp, req):
            if found.spec.stream:
                stream = self._calling = open_async(found.spec, lambda _: seam.outer.events(*asked))
                head = cast("dict[str, Any] | None", await anext(stream, None))
                if head is None:  # the answer came whole
                    self._calling = None
                    head = cast("dict[str, Any]", stream.value)
                    payload.fill(body_bytes(head))
                elif (
                    "json" in head or "text" in head or "bytes" in head
                ):  # the same in traces of earlier versions
                    payload.fill(body_bytes(head))
                    await self._end(stream)
                else:
                    payload.begin(self._pieces(stream, found))
            else:
                value = await call_async(found.spec, lambda _: seam.outer.whole(*asked))
                head = cast("dict[str, Any]", value)
                tell(head, found)
                payload.fill(body_bytes(head))
        if req.method == "HEAD":
            payload.end()
        return seam.message(head), payload

    async def _end(self, stream: AsyncStream) -> None:
        """The whole body came with the head: the stream has nothing more."""
        self._calling = None
        async for _ in stream:
            raise NotSupported(
                f"{stream.call.id} goes on after a whole body", hint="record the run again with this version"
            )

    async def _request(self) -> bytes:
        """The body of the request, once the client has written all of it."""
        wire: _Wire = cast(Any, self).transport
        while self._unwritten is None:
            body = written_body(wire.written)
            if body is not None:
                return body
            waiter: asyncio.Future[None] = self._run_loop.create_future()
            wire.more = functools.partial(_wake, waiter)
            await waiter
        raise self._unwritten

    async def _pieces(self, stream: AsyncStream, found: Classified) -> AsyncIterator[bytes]:
        with restored(self._seam.aiohttp, self._req):
            async for value in stream:
                piece = cast("Mapping[str, Any]", value)
                tell(piece, found)
                yield value_bytes(piece)
        self._calling = None


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _at_once(work: Coroutine[Any, Any, None]) -> None:
    """Do what never waits."""
    with contextlib.suppress(StopIteration):
        work.send(None)


class _Payload:
    """A body that asks for the next recorded piece when its reader waits for more."""

    _source: AsyncIterator[bytes] | None = None

    def begin(self, source: AsyncIterator[bytes]) -> None:
        """It comes piece by piece."""
        self._source = source

    def fill(self, data: bytes) -> None:
        """It is there."""
        self._feed(data)
        self.end()

    def end(self) -> None:
        """Nothing more comes."""
        reader = cast(Any, self)
        if not reader.is_eof():
            reader.feed_eof()

    def _feed(self, data: bytes) -> None:
        if data:
            cast(Any, self).feed_data(data)

    async def _wait(self, func_name: str) -> None:
        source, reader = self._source, cast(Any, self)
        if source is None:
            await cast(Any, super())._wait(func_name)
            return
        try:
            with reader._timer:
                data = await anext(source, None)
        except Exception as error:
            reader.set_exception(error)
            raise
        if data is None:
            self.end()
        else:
            self._feed(data)
