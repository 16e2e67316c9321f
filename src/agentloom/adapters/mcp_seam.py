"""MCP clients: the SDK's transports connect outside of a run, and its sessions make host calls.

What is replaced: each transport (nothing is started or connected in the run, and nothing at all on replay), and the
dispatcher that a session drives, where the session's streams come from such a transport.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from types import ModuleType
from typing import Any, cast

from agentloom.adapters import mcp_v1
from agentloom.adapters.mcp_link import Link, Sdk, Writer, connected, listening
from agentloom.adapters.mcp_outer import Opener, Question
from agentloom.adapters.releases import function_of, needed
from agentloom.runtime.passed import passes
from agentloom.runtime.profiles import plain_url
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current

__all__ = ["install_client", "install_dispatcher", "install_memory", "install_transport"]

_TRANSPORTS = {
    "mcp.client.stdio": ("stdio_client",),
    "mcp.client.sse": ("sse_client",),
    "mcp.client.streamable_http": ("streamable_http_client", "streamablehttp_client"),
    "mcp.client.websocket": ("websocket_client",),
}
_GONE = frozenset(("streamablehttp_client", "streamable_http_client"))
"""One of them is there in every release."""


# -- transports ----------------------------------------------------------------------------------------------------


def install_transport(module: ModuleType) -> None:
    """Replace the transports of a module of ``mcp.client``, also where other modules have them already. Idempotent.
    Raises ``NotSupported`` for a release that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    names = _TRANSPORTS[module.__name__]
    for name in names:
        if not hasattr(module, name) and name in _GONE and any(hasattr(module, other) for other in names):
            continue
        original = function_of(module, name, "such connections are not recorded")
        made = _transport(original, name)
        for other in list(sys.modules.values()):
            if getattr(other, "__dict__", {}).get(name) is original:
                setattr(other, name, made)
    cast(Any, module).__agentloom__ = True


def _transport(original: Any, name: str) -> Any:
    @functools.wraps(original)
    def transport(*args: Any, **kwargs: Any) -> Any:
        return _Transport(original, name, args, kwargs)

    return transport


class _Transport(AbstractAsyncContextManager[Any]):
    """A transport that decides where it is entered whether a run is there."""

    def __init__(self, original: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        inspect.signature(original).bind(*args, **kwargs)  # raises here what the transport would
        self._original, self._name, self._args, self._kwargs = original, name, args, kwargs
        self._entered: Any = None

    def _plain(self) -> Any:
        return self._original(*self._args, **self._kwargs)

    async def __aenter__(self) -> Any:
        target = _target(self._original, self._name, self._args, self._kwargs)
        if passes(f"mcp {self._name}", str(target.get("url", ""))):
            self._entered = self._plain()
            return await self._entered.__aenter__()
        self._entered = connected(sdk(), _over_streams(self._plain), target)
        link: Link = await self._entered.__aenter__()
        streams = link.reader, link.writer
        # Releases 1.x give a function for the session's number too.
        return (*streams, lambda: link.number) if "streamable" in self._name and _is_old() else streams

    async def __aexit__(self, *exc: object) -> Any:
        return await self._entered.__aexit__(*exc)


def _target(original: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What is connected to, without credentials: of an environment only the names."""
    given = inspect.signature(original).bind(*args, **kwargs).arguments
    if name == "stdio_client":
        server = given["server"]
        return {
            "transport": "stdio",
            "command": str(server.command),
            "args": [str(one) for one in server.args],
            "cwd": None if server.cwd is None else str(server.cwd),
            "env": sorted(server.env or {}),
        }
    kind = {"sse_client": "sse", "websocket_client": "websocket"}.get(name, "streamable-http")
    return {"transport": kind, "url": plain_url(str(given["url"]))}


def _over_streams(transport: Callable[[], Any]) -> Opener:
    """Opens a transport that gives streams, with the SDK's own dispatcher over them."""

    async def opener(stack: AsyncExitStack, fault: Callable[[Exception], Awaitable[None]]) -> Any:
        reader, writer, *more = await stack.enter_async_context(transport())
        if _is_old():
            made: Any = mcp_v1.Wire(reader, writer, fault)
            made.number = more[0] if more else None
            return made
        return _dispatchers().JSONRPCDispatcher(reader, writer, on_stream_exception=fault)

    return opener


def install_memory(module: ModuleType) -> None:
    """Patch ``mcp.client._memory``: a server in this process runs outside of a run. Idempotent. Raises
    ``NotSupported`` for a release that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    needed(module, "InMemoryTransport", "_connect")
    memory: Any = cast(Any, module).InMemoryTransport
    original = memory._connect

    @asynccontextmanager
    async def connect(self: Any) -> AsyncGenerator[Any]:
        if current() is None:
            async with original(self) as streams:
                yield streams
            return
        opener = _over_streams(functools.partial(original, self))
        async with connected(sdk(), opener, {"transport": "memory"}) as link:
            yield link.reader, link.writer

    memory._connect = connect
    cast(Any, module).__agentloom__ = True


def install_client(module: ModuleType) -> None:
    """Patch ``mcp.client.client``: a server in this process that is asked directly runs outside of a run. Idempotent.
    Raises ``NotSupported`` for a release that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    client = cast(Any, module)
    original = function_of(module, "_connect_inproc", "servers in memory run in the run itself")

    @functools.wraps(original)
    def connect_inproc(server: Any) -> Any:
        plain: Any = original(server)

        async def connect(stack: AsyncExitStack, mode: Any, raise_exceptions: bool) -> Any:
            if current() is None or mode == "legacy":  # that one goes over a transport in memory
                return await plain(stack, mode, raise_exceptions)

            async def opener(outer: AsyncExitStack, _: Any) -> Any:
                return await plain(outer, mode, raise_exceptions)

            link = await stack.enter_async_context(connected(sdk(), opener, {"transport": "memory"}))
            link.direct = True
            return _dispatchers().JSONRPCDispatcher(link.reader, link.writer)

        return connect

    client._connect_inproc = connect_inproc
    client.__agentloom__ = True


# -- sessions ------------------------------------------------------------------------------------------------------


def install_dispatcher(module: ModuleType) -> None:
    """Patch ``mcp.shared.jsonrpc_dispatcher``: over the streams of a run it makes host calls. Idempotent. Raises
    ``NotSupported`` for a release that is built in another way."""
    if getattr(module, "__agentloom__", False):
        return
    for name in ("send_raw_request", "notify", "run"):
        needed(module, "JSONRPCDispatcher", name)
    base: Any = cast(Any, module).JSONRPCDispatcher
    made: Any = type("RunDispatcher", (_RunDispatcher, base), {})

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        writer = args[1] if len(args) > 1 else kwargs.get("write_stream")
        return object.__new__(made if cls is base and isinstance(writer, Writer) else cls)

    base.__new__ = new
    cast(Any, module).__agentloom__ = True


class _RunDispatcher:
    """What is different in a dispatcher of a run: where requests and notifications go."""

    @property
    def _link(self) -> Link:
        link: Link = cast(Any, self)._write_stream.link
        return link

    async def run(self, on_request: Any, on_notify: Any, *args: Any, **kwargs: Any) -> None:
        own, link = cast(Any, self), self._link
        listening(link, getattr(on_request, "__self__", None))

        def spawn(callback: Any, *given: Any) -> None:
            own._tg.start_soon(_contained, callback, given)

        link.spawn = spawn
        await cast(Any, super()).run(on_request, on_notify, *args, **kwargs)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any] | None = None, **_: Any
    ) -> dict[str, Any]:
        own = cast(Any, self)
        if own._closed:
            raise sdk().error(-32000, "Connection closed")
        if not own._running:
            raise RuntimeError("JSONRPCDispatcher.send_raw_request called before run()")
        more: dict[str, Any] = dict(opts or {})
        on_progress, on_token = more.pop("on_progress", None), more.pop("on_resumption_token", None)
        timeout = more.pop("timeout", None)
        question = Question(method, None if params is None else dict(params), more)
        return await self._link.ask(question, on_progress, on_token, timeout)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any] | None = None, **_: Any
    ) -> None:
        if not cast(Any, self)._closed:
            question = Question(method, None if params is None else dict(params), dict(opts or {}))
            await self._link.tell(question)


async def _contained(callback: Any, given: tuple[Any, ...]) -> None:
    """As the SDK calls callbacks: what one raises is logged."""
    try:
        await callback(*given)
    except Exception:  # noqa: BLE001 - the SDK's own rule for callbacks
        _dispatchers().logger.exception("progress callback raised")


# -- the SDK's types -----------------------------------------------------------------------------------------------


def _is_old() -> bool:
    """Whether it is a release 1.x."""
    return "mcp.shared.session" in sys.modules and "mcp.shared.jsonrpc_dispatcher" not in sys.modules


def _dispatchers() -> Any:
    from mcp.shared import jsonrpc_dispatcher

    return jsonrpc_dispatcher


@functools.cache
def sdk() -> Sdk:
    """What the links of a run need of the SDK."""
    if _is_old():
        return mcp_v1.sdk()
    import mcp_types as types
    from mcp.shared.exceptions import MCPError
    from mcp.shared.message import SessionMessage

    TYPES.declare(types.ErrorData)

    def message(fields: dict[str, Any]) -> Any:
        made: dict[str, Any] = {"jsonrpc": "2.0", "method": fields["method"]}
        if fields.get("params") is not None:
            made["params"] = fields["params"]
        if "id" in fields:
            return SessionMessage(types.JSONRPCRequest(id=fields["id"], **made))
        return SessionMessage(types.JSONRPCNotification(**made))

    def unpacked(item: Any) -> dict[str, Any]:
        return cast("dict[str, Any]", item.message.model_dump(by_alias=True, mode="json", exclude_unset=True))

    def timed_out(method: str, seconds: float, direct: bool) -> Exception:
        text = (
            f"Timed out after {seconds}s waiting for {method!r}"
            if direct
            else f"Request {method!r} timed out"
        )
        error = MCPError(types.REQUEST_TIMEOUT, text)
        error.__suppress_context__ = True  # the SDK raises it "from None"
        return error

    return Sdk(failure=MCPError, error=MCPError, message=message, unpacked=unpacked, timed_out=timed_out)
