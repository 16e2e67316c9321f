"""Connections of libraries that have no adapter: the protocol stays inside the run, the transport is outside."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import TYPE_CHECKING, Any, cast

from agentloom.runtime.loop_io import LoopNotSupported
from agentloom.runtime.loop_outside import Outside
from agentloom.runtime.scope import run_outside

__all__ = ["Connections", "Datagrams", "Passed", "Relay", "Transport"]


class Connections(Outside):
    """Takes over the methods of an inner loop that open client connections, and those of datagrams and pipes."""

    async def create_connection(
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **options: Any
    ) -> tuple[Transport, Any]:
        """As on any loop."""
        where = f"{host}:{port}" if host is not None else "a socket"
        return await self._connected(
            where,
            protocol_factory,
            lambda outer, relay: outer.create_connection(relay, host, port, **options),
        )

    async def create_unix_connection(
        self, protocol_factory: Callable[[], Any], path: Any = None, **options: Any
    ) -> tuple[Transport, Any]:
        """As on any loop."""
        return await self._connected(
            str(path),
            protocol_factory,
            lambda outer, relay: outer.create_unix_connection(relay, path, **options),
        )

    async def create_datagram_endpoint(
        self,
        protocol_factory: Callable[[], Any],
        local_addr: Any = None,
        remote_addr: Any = None,
        **options: Any,
    ) -> tuple[Datagrams, Any]:
        """As on any loop."""
        where = f"to {remote_addr}" if remote_addr is not None else f"at {local_addr}"
        self.tell(f"exchanges datagrams {where}")
        outer, protocol = self.outer(), protocol_factory()
        relay = Relay(self, protocol, made=Datagrams)
        await self.outside(
            lambda: outer.create_datagram_endpoint(lambda: relay, local_addr, remote_addr, **options)
        )
        return cast("Datagrams", relay.transport), protocol

    async def connect_read_pipe(
        self, protocol_factory: Callable[[], Any], pipe: Any
    ) -> tuple[Transport, Any]:
        """As on any loop."""
        return await self._connected(
            f"pipe {_called(pipe)}",
            protocol_factory,
            lambda outer, relay: outer.connect_read_pipe(relay, pipe),
        )

    async def connect_write_pipe(
        self, protocol_factory: Callable[[], Any], pipe: Any
    ) -> tuple[Transport, Any]:
        """As on any loop."""
        return await self._connected(
            f"pipe {_called(pipe)}",
            protocol_factory,
            lambda outer, relay: outer.connect_write_pipe(relay, pipe),
        )

    async def start_tls(
        self, transport: Any, protocol: Any, sslcontext: Any, **options: Any
    ) -> Transport | None:
        """As on any loop, for a transport of this one."""
        if not isinstance(transport, Transport):
            raise LoopNotSupported(
                "loop.start_tls() of a transport of another loop", hint="open it in the run"
            )
        relay = Relay(self, protocol)
        real, outer = transport.real, self.outer()
        real.set_protocol(relay)
        made = await self.outside(lambda: outer.start_tls(real, relay, sslcontext, **options))
        if made is None:
            return None
        relay.transport = upgraded = Transport(self, made, relay)
        return upgraded

    async def sendfile(
        self,
        transport: Any,
        file: Any,
        offset: int = 0,
        count: int | None = None,
        *,
        fallback: bool = True,
    ) -> Any:
        """As on any loop, for a transport of this one."""
        self.tell("sends a file")
        real, outer = getattr(transport, "real", transport), self.outer()
        return await self.outside(lambda: outer.sendfile(real, file, offset, count, fallback=fallback))

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        """As on any loop."""
        self.tell(f"looks up {host}")
        outer = self.outer()
        return await self.outside(lambda: outer.getaddrinfo(host, port, **options))

    async def getnameinfo(self, address: Any, flags: int = 0) -> Any:
        """As on any loop."""
        self.tell("looks up a name")
        outer = self.outer()
        return await self.outside(lambda: outer.getnameinfo(address, flags))

    async def _connected(
        self,
        where: str,
        protocol_factory: Callable[[], Any],
        connect: Callable[[asyncio.AbstractEventLoop, Callable[[], Relay]], Any],
    ) -> tuple[Transport, Any]:
        self.tell(f"connects to {where}")
        outer, protocol = self.outer(), protocol_factory()
        relay = Relay(self, protocol)
        await self.outside(lambda: connect(outer, lambda: relay))
        if relay.transport is None:
            raise ConnectionResetError("the connection was closed while it was opened")
        return relay.transport, protocol


def _called(pipe: Any) -> str:
    return str(getattr(pipe, "name", "?"))


class Relay(asyncio.BufferedProtocol if TYPE_CHECKING else asyncio.Protocol):  # type: ignore[misc]
    """Outside: hands what happens to a connection in to its protocol inside. ``made``: makes what the protocol is given
    to write with. ``context``: where it is handed in; that of the running code, if none is given."""

    def __init__(
        self,
        bridge: Outside,
        protocol: Any,
        made: Callable[[Outside, Any, Relay], Any] | None = None,
        context: Context | None = None,
    ) -> None:
        self._bridge = bridge
        self.protocol = protocol
        self.transport: Any = None
        self._made = made or Transport
        self._context = copy_context() if context is None else context

    def _inside(self, name: str, *args: Any) -> None:
        self._bridge.hand_in(self._call, (name, *args), self._context)

    def _call(self, name: str, *args: Any) -> None:
        method = getattr(self.protocol, name, None)
        if method is not None:
            method(*args)

    def connection_made(self, transport: Any) -> None:
        self.transport = self._made(self._bridge, transport, self)
        self._inside("connection_made", self.transport)

    def data_received(self, data: bytes) -> None:
        self._bridge.hand_in(self._feed, (data,), self._context)

    def _feed(self, data: bytes) -> None:
        if isinstance(self.protocol, asyncio.BufferedProtocol):
            _fill(self.protocol, data)
        else:
            self._call("data_received", data)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._inside("datagram_received", data, addr)

    def error_received(self, exc: Exception) -> None:
        self._inside("error_received", exc)

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


class Passed:
    """Inside: what stands for a transport outside, and has it do what it is told."""

    def __init__(self, bridge: Outside, real: Any, relay: Any) -> None:
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

    def close(self) -> None:
        self._do("close")

    def abort(self) -> None:
        self._do("abort")

    def is_closing(self) -> bool:
        return bool(self.real.is_closing())


class Datagrams(Passed, asyncio.DatagramTransport):
    """What a protocol of datagrams writes with."""

    def sendto(self, data: Any, addr: Any = None) -> None:
        self._do("sendto", data, addr)


class Transport(Passed, asyncio.Transport):
    """What a protocol writes with."""

    def write(self, data: Any) -> None:
        self._do("write", data)

    def writelines(self, list_of_data: Any) -> None:
        self._do("writelines", list_of_data)

    def write_eof(self) -> None:
        self._do("write_eof")

    def can_write_eof(self) -> bool:
        return bool(self.real.can_write_eof())

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
