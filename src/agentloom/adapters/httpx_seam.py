"""The seam under the SDKs: HTTP requests of httpx2 and httpx clients become host calls while a run is current.

A client's own ``send`` stays as it is (redirects, auth, event hooks, cookies, logging); what is replaced, for the
whole class, is the transport that it asks for: inside a run it gets one that makes a host call and builds the
response from what was written, live and on replay alike. On replay no transport of the client is ever touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.httpx_transports import Classified, Classify, Exchange, transports
from agentloom.errors import NotSupported
from agentloom.runtime.scope import current, outside

__all__ = ["MODULES", "close_outside", "install", "observe"]

MODULES = ("httpx2", "httpx")
"""The HTTP libraries that have this seam."""


_classifiers: list[Classify] = []
_observers: list[Callable[[Exchange], None]] = []
_closing: set[asyncio.Task[None]] = set()


def observe(observer: Callable[[Exchange], None]) -> None:
    """Have ``observer`` called with each request of a run before its host call is made."""
    if observer not in _observers:
        _observers.append(observer)


def _classify(exchange: Exchange) -> Classified | None:
    for observer in _observers:
        observer(exchange)
    return next(
        (found for found in (classify(exchange) for classify in _classifiers) if found is not None), None
    )


def install(module: ModuleType, classify: Classify | None = None) -> None:
    """Patch the clients of ``module`` (httpx2 or httpx). Idempotent; outside a run the clients behave as before.

    ``classify`` may claim exchanges as calls of another type than ``http``. Raises ``NotSupported`` when this release
    of the library does not have the method to patch.
    """
    if classify is not None and classify not in _classifiers:
        _classifiers.append(classify)
    if getattr(module, "__agentloom__", False):
        return
    for cls in (module.Client, module.AsyncClient):
        if not callable(getattr(cls, "_transport_for_url", None)):
            version = getattr(module, "__version__", "of unknown version")
            raise NotSupported(
                f"requests of {module.__name__} {version} cannot be recorded: no {cls.__name__}._transport_for_url",
                hint=f"install a release of {module.__name__} that agentloom's tests name",
            )
    blocking, awaited = transports(module, _classify)
    _patch_client(module.Client, blocking)
    _patch_client(module.AsyncClient, awaited)
    _patch_close(module)
    cast(Any, module).__agentloom__ = True


def _patch_client(cls: Any, wrap: Callable[[Any], Any]) -> None:
    original = cls._transport_for_url

    def _transport_for_url(self: Any, url: Any) -> Any:
        transport = original(self, url)
        return transport if current() is None else wrap(transport)

    cls._transport_for_url = _transport_for_url


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
