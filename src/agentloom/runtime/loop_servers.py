"""Servers that a run opens through its loop: outside of the run, the protocols of their connections inside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from typing import Any

from agentloom.runtime.loop_connections import Relay
from agentloom.runtime.loop_outside import Outside
from agentloom.runtime.scope import run_outside

__all__ = ["Servers"]


class Servers(Outside):
    """Takes over the methods of an inner loop that accept connections."""

    async def create_server(
        self, protocol_factory: Callable[[], Any], host: Any = None, port: Any = None, **options: Any
    ) -> _Server:
        """As on any loop."""
        self.tell(f"listens on {'a socket' if options.get('sock') is not None else f'{host}:{port}'}")
        outer = self.outer()
        return await self._opened(
            protocol_factory, lambda relay: outer.create_server(relay, host, port, **options)
        )

    async def create_unix_server(
        self, protocol_factory: Callable[[], Any], path: Any = None, **options: Any
    ) -> _Server:
        """As on any loop."""
        self.tell(f"listens on {path}")
        outer = self.outer()
        return await self._opened(
            protocol_factory, lambda relay: outer.create_unix_server(relay, path, **options)
        )

    async def connect_accepted_socket(
        self, protocol_factory: Callable[[], Any], sock: Any, **options: Any
    ) -> tuple[Any, Any]:
        """As on any loop."""
        self.tell("talks on an accepted socket")
        outer, protocol = self.outer(), protocol_factory()
        relay = Relay(self, protocol)
        await self.outside(lambda: outer.connect_accepted_socket(lambda: relay, sock, **options))
        return relay.transport, protocol

    async def _opened(
        self, protocol_factory: Callable[[], Any], listen: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> _Server:
        context = copy_context()
        return _Server(
            self,
            await self.outside(lambda: listen(lambda: _Accepted(self, protocol_factory, context.copy()))),
        )


class _Accepted(Relay):
    """The relay of an accepted connection, whose protocol is made inside."""

    def __init__(self, bridge: Outside, protocol_factory: Callable[[], Any], context: Context) -> None:
        super().__init__(bridge, None, context=context)
        self._factory = protocol_factory

    def _call(self, name: str, *args: Any) -> None:
        if name == "connection_made":
            self.protocol = self._factory()
        super()._call(name, *args)


class _Server(asyncio.AbstractServer):
    """Inside: what stands for a server."""

    def __init__(self, bridge: Outside, real: Any) -> None:
        self._bridge = bridge
        self._real = real

    @property
    def sockets(self) -> Any:
        """The sockets that it listens on."""
        return self._real.sockets

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._bridge.inner()

    def is_serving(self) -> bool:
        return bool(self._real.is_serving())

    def close(self) -> None:
        run_outside(self._real.close)

    def close_clients(self) -> None:
        """Close what it has accepted (Python 3.13)."""
        run_outside(self._real.close_clients)

    def abort_clients(self) -> None:
        """Break off what it has accepted (Python 3.13)."""
        run_outside(self._real.abort_clients)

    async def start_serving(self) -> None:
        await self._bridge.outside(self._real.start_serving)

    async def serve_forever(self) -> None:
        await self.start_serving()
        try:
            await self._bridge.inner().create_future()
        except asyncio.CancelledError:
            self.close()
            await self.wait_closed()
            raise

    async def wait_closed(self) -> None:
        await self._bridge.outside(self._real.wait_closed)
