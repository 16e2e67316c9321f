"""The seam under the SDKs: HTTP requests of httpx2 and httpx clients become host calls while a run is current.

A client's own ``send`` stays as it is (redirects, auth, event hooks, cookies, logging); what is replaced, for the
whole class, is the transport that it asks for: inside a run it gets one that makes a host call and builds the
response from what was written, live and on replay alike. On replay no transport of the client is ever touched.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.exchanges import observe
from agentloom.adapters.httpx_transports import streaming, transports
from agentloom.adapters.releases import needed
from agentloom.runtime.contexts import put
from agentloom.runtime.passed import passes
from agentloom.runtime.scope import current, outside

__all__ = ["MODULES", "close_outside", "install", "observe"]

MODULES = ("httpx2", "httpx")
"""The HTTP libraries that have this seam."""


_closing: set[asyncio.Task[None]] = set()


def install(module: ModuleType) -> None:
    """Patch the clients of ``module`` (httpx2 or httpx). Idempotent; outside a run the clients behave as before.

    Raises ``NotSupported`` when this release of the library does not have the method to patch.
    """
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "Client", "_transport_for_url")
    needed(module, "AsyncClient", "_transport_for_url")
    needed(module, "Response", "_get_content_decoder")
    needed(module, "_decoders", "IdentityDecoder")
    blocking, awaited = transports(module)
    inside = tuple(
        getattr(module, name)
        for name in ("ASGITransport", "MockTransport", "WSGITransport")
        if hasattr(module, name)
    )
    _patch_client(module.Client, blocking, inside)
    _patch_client(module.AsyncClient, awaited, inside)
    _patch_blocking_send(module.Client)
    _patch_awaited_send(module.AsyncClient)
    _patch_close(module)
    cast(Any, module).__agentloom__ = True


def _patch_client(cls: Any, wrap: Callable[[Any], Any], inside: tuple[type, ...]) -> None:
    """``inside``: transports to an application in this process. Outside of runs there is nothing to tell of them."""
    original = cls._transport_for_url
    client = f"{cls.__module__.partition('.')[0]}.{cls.__name__}"

    def _transport_for_url(self: Any, url: Any) -> Any:
        transport = original(self, url)
        if current() is None and isinstance(transport, inside):
            return transport
        return transport if passes(client, url.host) else wrap(transport)

    cls._transport_for_url = _transport_for_url


def _patch_blocking_send(cls: Any) -> None:
    original = cls.send

    @functools.wraps(original)
    def send(self: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        if current() is None:
            return original(self, request, stream=stream, **options)
        token = put(streaming, stream)
        try:
            return original(self, request, stream=stream, **options)
        finally:
            streaming.reset(token)

    cls.send = send


def _patch_awaited_send(cls: Any) -> None:
    original = cls.send

    @functools.wraps(original)
    async def send(self: Any, request: Any, *, stream: bool = False, **options: Any) -> Any:
        if current() is None:
            return await original(self, request, stream=stream, **options)
        token = put(streaming, stream)
        try:
            return await original(self, request, stream=stream, **options)
        finally:
            streaming.reset(token)

    cls.send = send


def _patch_close(module: Any) -> None:
    """Closing an async client in a run must not touch sockets that belong to the loop outside it."""
    cls = module.AsyncHTTPTransport
    handle, close, leave = cls.handle_async_request, cls.aclose, cls.__aexit__

    async def handle_async_request(self: Any, request: Any) -> Any:
        self.agentloom_home = asyncio.get_running_loop()
        return await handle(self, request)

    async def aclose(self: Any) -> None:
        if current() is None:
            await close(self)
        else:
            close_outside(self, close)

    async def aexit(self: Any, *exc: Any) -> None:
        if current() is None:
            await leave(self, *exc)
        else:
            close_outside(self, close)

    cls.handle_async_request = handle_async_request
    cls.aclose = aclose
    cls.__aexit__ = aexit
    for name in ("aclose", "__aexit__"):
        _patch_client_close(module.AsyncClient, name)


def _patch_client_close(cls: Any, name: str) -> None:
    """Transports over aiohttp (``DefaultAioHttpClient`` of openai) have a ``close`` of their own, which the client
    calls: it waits for connections of the loop outside."""
    original = getattr(cls, name)

    @functools.wraps(original)
    async def leave(self: Any, *exc: Any) -> None:
        if current() is None:
            await original(self, *exc)
            return
        transport, mounts = self._transport, self._mounts
        self._transport = _away(transport)
        self._mounts = {pattern: _away(mounted) for pattern, mounted in mounts.items()}
        try:
            await original(self, *exc)
        finally:
            self._transport, self._mounts = transport, mounts

    setattr(cls, name, leave)


def _away(transport: Any) -> Any:
    return transport if getattr(transport, "agentloom_home", None) is None else _Away(transport)


class _Away:
    """Stands for a transport whose connections live in the loop outside of the run, while its client is closed."""

    def __init__(self, transport: Any) -> None:
        self._transport = transport

    async def aclose(self) -> None:
        close_outside(self._transport)

    async def __aexit__(self, *exc: object) -> None:
        close_outside(self._transport)


class _Closing(asyncio.Task[None]):
    """Cannot be cancelled: a loop that ends right after the run waits for it, and the connection is closed."""

    def cancel(self, msg: Any | None = None) -> bool:
        """Does nothing."""
        del msg
        return False


def close_outside(transport: Any, close: Callable[[Any], Coroutine[Any, Any, None]] | None = None) -> None:
    """Close an async transport in the loop where its connections live, without waiting. One that was never used
    (always so on replay) has none."""
    home: asyncio.AbstractEventLoop | None = getattr(transport, "agentloom_home", None)
    if home is None or home.is_closed():
        return
    work = (
        close
        if close is not None
        else cast("Callable[[Any], Coroutine[Any, Any, None]]", transport.__class__.aclose)
    )

    context = outside()
    task = context.run(lambda: _Closing(work(transport), loop=home, context=context))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
