"""Performs requests of aiohttp clients on the outer loop, over connections of a connector there for each of a run.

What the client of the run has written goes over the connection as it is, byte for byte.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from typing import Any

from agentloom.adapters.aiohttp_errors import cleaned
from agentloom.adapters.exchanges import (
    Classified,
    awaited_events,
    comes_whole,
    host_work,
    is_events,
    piece_of,
    whole_of,
)
from agentloom.adapters.http_wire import head_fields
from agentloom.errors import NotSupported
from agentloom.runtime.calls import Whole
from agentloom.runtime.scope import outside

__all__ = ["Outer"]


class Outer:
    """The connectors, by those of the run and loop."""

    def __init__(self, aiohttp: Any) -> None:
        self._aiohttp = aiohttp
        self._twins: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()
        self._closing: set[asyncio.Task[None]] = set()

    async def whole(
        self, connector: Any, req: Any, limits: Any, data: bytes, params: dict[str, Any], found: Classified
    ) -> dict[str, Any]:
        """The whole answer as a value. ``data``: the request as the client wrote it."""
        with host_work(), cleaned(self._aiohttp):
            connection, message, payload = await self._answer(connector, req, limits, data, params)
            try:
                body = await payload.read()
            except BaseException:
                connection.close()
                raise
            _let_go(connection, payload)
            return whole_of(_head(message), _type(message), body, found)

    async def events(
        self, connector: Any, req: Any, limits: Any, data: bytes, params: dict[str, Any], found: Classified
    ) -> AsyncIterator[object]:
        """The head of an answer (with the body, where that is JSON), then its events or pieces."""
        with host_work(), cleaned(self._aiohttp):
            connection, message, payload = await self._answer(connector, req, limits, data, params)
            try:
                kind = _type(message)
                if found.spec.type != "model" and comes_whole(kind, found):
                    yield Whole(whole_of(_head(message), kind, await payload.read(), found))
                    return
                yield _head(message)
                if is_events(kind):
                    async for event in awaited_events(payload.iter_any(), found, self._aiohttp.ClientError):
                        yield event
                elif comes_whole(kind, found):
                    body = await payload.read()
                    if body:
                        yield piece_of(kind, body, found, whole=True)
                else:
                    async for piece in payload.iter_any():
                        yield piece_of(None, piece, found, whole=False)
            except BaseException:
                connection.close()
                raise
            finally:
                _let_go(connection, payload)

    async def _answer(
        self, connector: Any, req: Any, limits: Any, data: bytes, params: dict[str, Any]
    ) -> tuple[Any, Any, Any]:
        """The connection, the head of the answer on it, and its body, still to be read."""
        try:
            connection = await self._twin_of(connector).connect(req, [], limits)
        except TimeoutError as error:
            raise self._aiohttp.ConnectionTimeoutError(f"Connection timeout to host {req.url}") from error
        try:
            protocol = connection.protocol
            protocol.set_response_params(**params | {"timer": None})
            protocol.transport.write(data)
            protocol.start_timeout()
            message, payload = await protocol.read()
            while 100 <= message.code < 200:
                message, payload = await protocol.read()
        except BaseException:
            connection.close()
            raise
        return connection, message, payload

    def _twin_of(self, connector: Any) -> Any:
        loop = asyncio.get_running_loop()
        held = self._twins.get(connector)
        if held is not None and held[0] is loop and not held[1].closed:
            return held[1]
        twin = self._twin(connector)
        self._twins[connector] = (loop, twin)
        weakref.finalize(connector, self._close, loop, twin)
        return twin

    def _twin(self, connector: Any) -> Any:
        """A connector with the settings of one of the run, for the outer loop."""
        aiohttp = self._aiohttp
        common = {
            "limit": connector.limit,
            "limit_per_host": connector.limit_per_host,
            "force_close": connector.force_close,
        }
        if isinstance(connector, aiohttp.UnixConnector):
            return aiohttp.UnixConnector(connector.path, **common)
        if not isinstance(connector, aiohttp.TCPConnector):
            raise NotSupported(
                f"aiohttp's {type(connector).__qualname__} cannot be recorded: it is no TCP or unix connector",
                hint="use aiohttp.TCPConnector, or make the requests in a tool",
            )
        own = connector._resolver
        resolver = None if isinstance(own, aiohttp.DefaultResolver) else own
        return aiohttp.TCPConnector(
            ssl=connector._ssl,
            family=connector.family,
            use_dns_cache=connector.use_dns_cache,
            local_addr=_address(connector),
            resolver=resolver,
            **common,
        )

    def close(self, connector: Any) -> None:
        """The client has closed ``connector``: the one outside is closed where it lives, without waiting."""
        held = self._twins.pop(connector, None)
        if held is not None:
            self._close(*held)

    def _close(self, loop: asyncio.AbstractEventLoop, twin: Any) -> None:
        if twin.closed or loop.is_closed():
            return
        context = outside()
        task = context.run(lambda: asyncio.Task(_closed(twin), loop=loop, context=context))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _let_go(connection: Any, payload: Any) -> None:
    """The answer is read, or left: only where its end has come the connection can be used again. Harmless after its
    closing."""
    if payload.is_eof():
        connection.release()
    else:
        connection.close()


async def _closed(twin: Any) -> None:
    await twin.close()


def _address(connector: Any) -> Any:
    infos = getattr(connector, "_local_addr_infos", None)
    return infos[0][4][:2] if infos else None


def _type(message: Any) -> str | None:
    kind: str | None = message.headers.get("Content-Type")
    return kind


def _head(message: Any) -> dict[str, Any]:
    pairs = [
        (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
        for name, value in message.raw_headers
    ]
    version = f"HTTP/{message.version.major}.{message.version.minor}"
    return head_fields(message.code, pairs, version, message.reason)
