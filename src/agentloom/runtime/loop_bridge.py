"""Connections of libraries that have no adapter, under a guard that refuses nothing: passed on to the outer loop.

The protocol stays inside the run, the transport is outside. What comes through is not recorded: the trace is marked
("not replayable past"), and a replay stops where the connection is made. Under ``guard="strict"`` there is no bridge,
and the inner loop refuses such connections by name.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agentloom.runtime.effects import Effect
from agentloom.runtime.live import LiveSource
from agentloom.runtime.loop_io import LoopNotSupported
from agentloom.runtime.passed import client_of
from agentloom.runtime.scope import outside, run_outside

if TYPE_CHECKING:
    from agentloom.runtime.driver_async import AsyncDriver

__all__ = ["Bridge"]

T = TypeVar("T")


class Bridge:
    """Takes over the methods of an inner loop that open client connections."""

    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver

    # -- methods of the loop -------------------------------------------------------------------------------------

    async def create_connection(
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[_Transport, Any]:
        """As on any loop."""
        where = f"{host}:{port}" if host is not None else "a socket"
        return await self._connected(
            where,
            protocol_factory,
            lambda outer, relay: outer.create_connection(relay, host, port, **options),
        )

    async def create_unix_connection(
        self, protocol_factory: Callable[[], Any], path: Any = None, **options: Any
    ) -> tuple[_Transport, Any]:
        """As on any loop."""
        return await self._connected(
            str(path),
            protocol_factory,
            lambda outer, relay: outer.create_unix_connection(relay, path, **options),
        )

    async def start_tls(
        self, transport: Any, protocol: Any, sslcontext: Any, **options: Any
    ) -> _Transport | None:
        """As on any loop, for a transport of this one."""
        if not isinstance(transport, _Transport):
            raise LoopNotSupported(
                "loop.start_tls() of a transport of another loop", hint="open it in the run"
            )
        relay = _Relay(self, protocol)
        real, outer = transport.real, self._outer()
        real.set_protocol(relay)
        made = await self._outside(lambda: outer.start_tls(real, relay, sslcontext, **options))
        if made is None:
            return None
        relay.transport = upgraded = _Transport(self, made, relay)
        return upgraded

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        """As on any loop."""
        self._tell(f"looks up {host}")
        outer = self._outer()
        return await self._outside(lambda: outer.getaddrinfo(host, port, **options))

    async def getnameinfo(self, address: Any, flags: int = 0) -> Any:
        """As on any loop."""
        self._tell("looks up a name")
        outer = self._outer()
        return await self._outside(lambda: outer.getnameinfo(address, flags))

    # -- how -----------------------------------------------------------------------------------------------------

    async def _connected(
        self,
        where: str,
        protocol_factory: Callable[[], Any],
        connect: Callable[[asyncio.AbstractEventLoop, Callable[[], _Relay]], Any],
    ) -> tuple[_Transport, Any]:
        self._tell(f"connects to {where}")
        outer, protocol = self._outer(), protocol_factory()
        relay = _Relay(self, protocol)
        await self._outside(lambda: connect(outer, lambda: relay))
        if relay.transport is None:
            raise ConnectionResetError("the connection was closed while it was opened")
        return relay.transport, protocol

    def _tell(self, what: str) -> None:
        """Have it noted, with the client's name; on replay that is where the run stops."""
        session = self._driver.session
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        client = client_of(frame)
        if session.effects is not None:
            place = session.engine.places.caller()
            session.effects.attempt(Effect("network", f"{what}{f' ({client})' if client else ''}", place))

    def _outer(self) -> asyncio.AbstractEventLoop:
        source = self._driver.session.source
        outer = source.outer if isinstance(source, LiveSource) else None
        if outer is None:
            raise LoopNotSupported(
                "a connection cannot be made here: no loop performs host work",
                hint="await it in an async run, or use a tool",
            )
        return outer

    async def _outside(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do ``work`` on the outer loop; wait for it on this one."""
        inner = self._driver.loop
        waiting = inner.create_future()
        task = self._outer().create_task(_awaited(work), context=outside())

        def over(done: asyncio.Task[T]) -> None:
            self.hand_in(_settle, (waiting, done), context)

        context = copy_context()
        task.add_done_callback(over, context=outside())
        try:
            return cast(T, await waiting)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def hand_in(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        """Have something that happened outside handled in the run."""
        loop = self._driver.loop
        if not loop.is_closed():
            loop.call_soon(callback, *args, context=context)
            self._driver.wake_up()


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _settle(waiting: asyncio.Future[Any], done: asyncio.Task[Any]) -> None:
    if waiting.done():
        return
    if done.cancelled():
        waiting.cancel()
    elif (error := done.exception()) is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(done.result())


class _Relay(asyncio.BufferedProtocol if TYPE_CHECKING else asyncio.Protocol):  # type: ignore[misc]
    """Outside: hands what happens to a connection in to its protocol inside."""

    def __init__(self, bridge: Bridge, protocol: Any) -> None:
        self._bridge = bridge
        self.protocol = protocol
        self.transport: _Transport | None = None
        self._context = copy_context()

    def _inside(self, name: str, *args: Any) -> None:
        self._bridge.hand_in(self._call, (name, *args), self._context)

    def _call(self, name: str, *args: Any) -> None:
        method = getattr(self.protocol, name, None)
        if method is not None:
            method(*args)

    def connection_made(self, transport: Any) -> None:
        self.transport = _Transport(self._bridge, transport, self)
        self._inside("connection_made", self.transport)

    def data_received(self, data: bytes) -> None:
        if isinstance(self.protocol, asyncio.BufferedProtocol):
            self._bridge.hand_in(_fill, (self.protocol, data), self._context)
        else:
            self._inside("data_received", data)

    def eof_received(self) -> bool:
        self._inside("eof_received")
        return True  # whether it stays open is decided inside, by closing it

    def connection_lost(self, exc: Exception | None) -> None:
        self._inside("connection_lost", exc)

    def pause_writing(self) -> None:
        self._inside("pause_writing")

    def resume_writing(self) -> None:
        self._inside("resume_writing")


def _fill(protocol: asyncio.BufferedProtocol, data: bytes) -> None:
    """As asyncio does it for a protocol with a buffer of its own."""
    while data:
        buffer = memoryview(protocol.get_buffer(len(data)))
        count = min(len(buffer), len(data))
        buffer[:count] = data[:count]
        protocol.buffer_updated(count)
        data = data[count:]


class _Transport(asyncio.Transport):
    """Inside: what a protocol writes with. The transport itself is outside, and so is what it does."""

    def __init__(self, bridge: Bridge, real: Any, relay: _Relay) -> None:
        super().__init__()
        self._bridge = bridge
        self.real = real
        self._relay = relay

    def _do(self, name: str, *args: Any) -> Any:
        return run_outside(lambda: getattr(self.real, name)(*args))

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.real.get_extra_info(name, default)

    def get_protocol(self) -> Any:
        return self._relay.protocol

    def set_protocol(self, protocol: Any) -> None:
        self._relay.protocol = protocol

    def write(self, data: Any) -> None:
        self._do("write", data)

    def writelines(self, list_of_data: Any) -> None:
        self._do("writelines", list_of_data)

    def write_eof(self) -> None:
        self._do("write_eof")

    def can_write_eof(self) -> bool:
        return bool(self.real.can_write_eof())

    def close(self) -> None:
        self._do("close")

    def abort(self) -> None:
        self._do("abort")

    def is_closing(self) -> bool:
        return bool(self.real.is_closing())

    def is_reading(self) -> bool:
        return bool(self.real.is_reading())

    def pause_reading(self) -> None:
        self._do("pause_reading")

    def resume_reading(self) -> None:
        self._do("resume_reading")

    def get_write_buffer_size(self) -> int:
        return int(self.real.get_write_buffer_size())

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return cast("tuple[int, int]", self.real.get_write_buffer_limits())

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._do("set_write_buffer_limits", high, low)
