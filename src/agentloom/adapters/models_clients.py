"""Clients of the official SDKs, kept while they are useful.

A sync client lives until the process ends; an async client belongs to the event loop that it was made in and is closed
when that loop shuts down its async generators (``asyncio.run`` does).
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import os
import threading
import weakref
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

from agentloom.adapters.models_sse import hear_errors
from agentloom.runtime.locks import free_in_children

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["async_client", "close_all", "response_type", "stream_type", "sync_client"]

_Key = tuple[str, str | None, str | None, bool, str | None]
_BARE = ("google", "bedrock", "bedrock-invoke")
_SDKS = {"responses": "openai"}  # protocols that are not named like their SDK

_lock = free_in_children(threading.Lock())
_sync: dict[_Key, Any] = {}
_async: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[_Key, tuple[Any, AsyncGenerator[None]]]]
_async = weakref.WeakKeyDictionary()


def _make(route: Route, prefix: str) -> Any:
    client = _plain(route, prefix)
    hear_errors(client)
    return client


def _plain(route: Route, prefix: str) -> Any:
    name = _sdk(route.api)
    if (
        name in _BARE
    ):  # no SDK: the HTTP client itself, with the waits that OpenAI's and Anthropic's SDKs have
        http = importlib.import_module("httpx2")
        return getattr(http, f"{prefix}Client")(timeout=http.Timeout(600, connect=5))
    sdk = importlib.import_module(name)
    # Retries are the runtime's: an attempt that the SDK repeats by itself would be in no trace.
    options: dict[str, Any] = {"max_retries": 0, "base_url": route.base_url}
    if route.provider == "local":  # a proxy of the environment cannot reach this machine's loopback
        http = getattr(sdk, f"Default{prefix}HttpxClient")
        options["http_client"] = http(trust_env=False)
    if route.api_version is not None:
        key = "azure_ad_token" if route.bearer else "api_key"
        azure = getattr(sdk, f"{prefix}AzureOpenAI")
        return azure(api_version=route.api_version, **{key: route.api_key}, **options)
    if name == "anthropic":
        key = "auth_token" if route.bearer else "api_key"
        return getattr(sdk, f"{prefix}Anthropic")(**{key: route.api_key}, **options)
    return getattr(sdk, f"{prefix}OpenAI")(api_key=route.api_key, **options)


def _sdk(api: str) -> str:
    return _SDKS.get(api, api)


def _key(route: Route) -> _Key:
    return (_sdk(route.api), route.base_url, route.api_key, route.bearer, route.api_version)


def sync_client(route: Route) -> Any:
    """The client for ``route``, shared by all threads (the SDKs' clients allow it)."""
    with _lock:
        client = _sync.get(_key(route))
        if client is None:
            client = _sync[_key(route)] = _make(route, "")
        return client


async def async_client(route: Route) -> Any:
    """The client for ``route`` in the running event loop."""
    clients = _async.setdefault(asyncio.get_running_loop(), {})
    held = clients.get(_key(route))
    if held is None:
        client = _make(route, "Async")
        keeper = _keep(client)
        await keeper.__anext__()
        held = clients[_key(route)] = (client, keeper)
    return held[0]


async def _keep(client: Any) -> AsyncGenerator[None]:
    # A started async generator is the one thing that an event loop promises to close when it ends.
    try:
        yield
    finally:
        await (client.aclose() if hasattr(client, "aclose") else client.close())


def close_all() -> None:
    """Close every sync client; the next call makes new ones."""
    with _lock:
        while _sync:
            _sync.popitem()[1].close()


def _forget() -> None:
    # A child process must not write into its parent's connections.
    _sync.clear()
    _async.clear()


def response_type(api: str) -> Any:
    """The class of the HTTP library that the SDK is built on (httpx or httpx2), for a raw answer."""
    sdk = _sdk(api)
    for cls in importlib.import_module(sdk).DefaultHttpxClient.__mro__:
        name = cls.__module__.partition(".")[0]
        if name != sdk:
            return importlib.import_module(name).Response
    raise TypeError(f"the client class of {api} is built on nothing")


def stream_type(api: str, *, awaited: bool) -> Any:
    """The SDK's stream class, giving events as plain data."""
    sdk = importlib.import_module(_sdk(api))
    return (sdk.AsyncStream if awaited else sdk.Stream)[object]


atexit.register(close_all)
os.register_at_fork(after_in_child=_forget)
