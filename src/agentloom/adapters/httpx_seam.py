"""The seam under the SDKs: HTTP requests of httpx2 and httpx clients become host calls while a run is current.

A client's own ``send`` stays as it is (redirects, auth, event hooks, cookies, logging); what is replaced, for the
whole class, is the transport that it asks for: inside a run it gets one that makes a host call and builds the
response from what was written, live and on replay alike. On replay no transport of the client is ever touched.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, cast

from agentloom.adapters.httpx_transports import Classified, Classify, Exchange, transports
from agentloom.errors import NotSupported
from agentloom.runtime.scope import current

__all__ = ["MODULES", "install", "observe", "parked"]

MODULES = ("httpx2", "httpx")
"""The HTTP libraries that have this seam."""


_classifiers: list[Classify] = []
_observers: list[Callable[[Exchange], None]] = []
_parked: list[Any] = []


def parked() -> list[Any]:
    """Async transports whose clients were closed inside a run; the caller closes them where they live (the list is
    emptied). Their sockets belong to the loop that performs host work, not to the run's own."""
    found = _parked.copy()
    _parked.clear()
    return found


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
    original = module.AsyncHTTPTransport.aclose

    async def aclose(self: Any) -> None:
        if current() is None:
            await original(self)
        else:
            _parked.append(self)

    module.AsyncHTTPTransport.aclose = aclose
