"""Performs requests of aiohttp clients on the outer loop, through a session there for each connector of a run."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from agentloom.adapters.aiohttp_errors import cleaned
from agentloom.adapters.exchanges import Classified, comes_whole, counted, piece_of, whole_of
from agentloom.adapters.http_wire import EventReader, head_fields
from agentloom.errors import NotSupported
from agentloom.runtime.scope import outside
from agentloom.runtime.work import Work, doing

__all__ = ["Outer"]

# aiohttp would add its own where the client of the run did not want any.
_OWN = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_FRAMING = ("Content-Length", "Transfer-Encoding", "Expect")


class Outer:
    """The sessions, by connector and loop."""

    def __init__(self, aiohttp: Any) -> None:
        self._aiohttp = aiohttp
        self._sessions: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = weakref.WeakKeyDictionary()
        self._closing: set[asyncio.Task[None]] = set()

    async def whole(
        self, connector: Any, req: Any, limits: Any, body: bytes, params: dict[str, Any], found: Classified
    ) -> dict[str, Any]:
        """The whole answer as a value."""
        with doing(Work("http")), cleaned(self._aiohttp):
            async with self._answer(connector, req, limits, body, params) as answer:
                return whole_of(_head(answer), _type(answer), await answer.read(), found)

    async def events(
        self, connector: Any, req: Any, limits: Any, body: bytes, params: dict[str, Any], found: Classified
    ) -> AsyncIterator[object]:
        """The head of an answer, then its events or pieces."""
        with doing(Work("http")), cleaned(self._aiohttp):
            async with self._answer(connector, req, limits, body, params) as answer:
                yield _head(answer)
                if (_type(answer) or "").lower().startswith("text/event-stream"):
                    async for event in self._read(answer):
                        yield counted(event, found)
                elif comes_whole(_type(answer), found):
                    data = await answer.read()
                    if data:
                        yield piece_of(_type(answer), data, found, whole=True)
                else:
                    async for data in answer.content.iter_any():
                        yield piece_of(None, data, found, whole=False)

    async def _read(self, answer: Any) -> AsyncIterator[dict[str, Any]]:
        reader = EventReader()
        try:
            async for data in answer.content.iter_any():
                for event in reader.feed(data):
                    yield event
        except self._aiohttp.ClientError:
            for event in reader.finish():  # what came before the connection was lost
                yield event
            raise
        for event in reader.finish():
            yield event

    @contextlib.asynccontextmanager
    async def _answer(
        self, connector: Any, req: Any, limits: Any, body: bytes, params: dict[str, Any]
    ) -> AsyncGenerator[Any]:
        headers = req.headers.copy()
        chunked = "chunked" in headers.get("Transfer-Encoding", "").lower()
        for name in _FRAMING:
            headers.popall(name, None)
        async with self._session(connector).request(
            req.method,
            req.url,
            headers=headers,
            data=body or None,
            chunked=True if chunked and body else None,
            allow_redirects=False,
            proxy=req.proxy,
            proxy_auth=req.proxy_auth,
            proxy_headers=req.proxy_headers,
            ssl=req.ssl,
            server_hostname=req.server_hostname,
            timeout=self._aiohttp.ClientTimeout(
                total=None,
                connect=getattr(limits, "connect", None),
                sock_connect=getattr(limits, "sock_connect", None),
                sock_read=params.get("read_timeout"),
            ),
            auto_decompress=params.get("auto_decompress", True),
            read_until_eof=params.get("read_until_eof", True),
        ) as answer:
            yield answer

    def _session(self, connector: Any) -> Any:
        loop = asyncio.get_running_loop()
        held = self._sessions.get(connector)
        if held is not None and held[0] is loop and not held[1].closed:
            return held[1]
        aiohttp = self._aiohttp
        session = aiohttp.ClientSession(
            connector=self._twin(connector), cookie_jar=aiohttp.DummyCookieJar(), skip_auto_headers=_OWN
        )
        session._retry_connection = False  # each try of the client is a call of its own
        self._sessions[connector] = (loop, session)
        weakref.finalize(connector, self._close, loop, session)
        return session

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
                f"a {type(connector).__qualname__} of aiohttp cannot be recorded: it is no TCP or unix connector",
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
        """The client has closed ``connector``: its session outside is closed where it lives, without waiting."""
        held = self._sessions.pop(connector, None)
        if held is not None:
            self._close(*held)

    def _close(self, loop: asyncio.AbstractEventLoop, session: Any) -> None:
        if session.closed:
            return
        if loop.is_closed():
            session._connector._close_immediately() if hasattr(
                session._connector, "_close_immediately"
            ) else None
            return
        context = outside()
        task = context.run(lambda: asyncio.Task(session.close(), loop=loop, context=context))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _address(connector: Any) -> Any:
    infos = getattr(connector, "_local_addr_infos", None)
    return infos[0][4][:2] if infos else None


def _type(answer: Any) -> str | None:
    kind: str | None = answer.headers.get("Content-Type")
    return kind


def _head(answer: Any) -> dict[str, Any]:
    pairs = [
        (name.decode("utf-8", "surrogateescape"), value.decode("utf-8", "surrogateescape"))
        for name, value in answer.raw_headers
    ]
    version = answer.version
    said = f"HTTP/{version.major}.{version.minor}" if version is not None else "HTTP/1.1"
    return head_fields(answer.status, pairs, said, answer.reason)
