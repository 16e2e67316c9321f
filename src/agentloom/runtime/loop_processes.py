"""Processes that a run starts through its loop: outside of the run, their protocol inside."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any, cast

from agentloom.runtime.loop_connections import Passed, Transport
from agentloom.runtime.loop_outside import Outside

__all__ = ["Processes"]


class Processes(Outside):
    """Takes over the methods of an inner loop that start processes."""

    async def subprocess_exec(
        self, protocol_factory: Callable[[], Any], *args: Any, **options: Any
    ) -> tuple[_Process, Any]:
        """As on any loop."""
        self.tell(f"starts process {' '.join(os.fsdecode(part) for part in args)}", "process")
        outer = self.outer()
        return await self._started(
            protocol_factory, lambda relay: outer.subprocess_exec(relay, *args, **options)
        )

    async def subprocess_shell(
        self, protocol_factory: Callable[[], Any], cmd: Any, **options: Any
    ) -> tuple[_Process, Any]:
        """As on any loop."""
        self.tell(f"starts process {os.fsdecode(cmd)}", "process")
        outer = self.outer()
        return await self._started(
            protocol_factory, lambda relay: outer.subprocess_shell(relay, cmd, **options)
        )

    async def _started(
        self, protocol_factory: Callable[[], Any], start: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> tuple[_Process, Any]:
        protocol = protocol_factory()
        relay = _Relay(self, protocol)
        made, _ = await self.outside(lambda: start(lambda: relay))
        return relay.process(made), protocol


class _Relay(asyncio.SubprocessProtocol):
    """Outside: hands what happens to a process in to its protocol inside."""

    def __init__(self, bridge: Outside, protocol: Any) -> None:
        self._bridge = bridge
        self.protocol = protocol
        self._process: _Process | None = None
        self._context = copy_context()

    def process(self, real: Any) -> _Process:
        """What stands for the process inside."""
        if self._process is None:
            self._process = _Process(self._bridge, real, self)
        return self._process

    def _inside(self, name: str, *args: Any) -> None:
        self._bridge.hand_in(lambda: getattr(self.protocol, name)(*args), (), self._context)

    def connection_made(self, transport: Any) -> None:
        self._inside("connection_made", self.process(transport))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._inside("pipe_data_received", fd, data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._inside("pipe_connection_lost", fd, exc)

    def process_exited(self) -> None:
        self._inside("process_exited")

    def connection_lost(self, exc: Exception | None) -> None:
        self._inside("connection_lost", exc)

    def pause_writing(self) -> None:
        self._inside("pause_writing")

    def resume_writing(self) -> None:
        self._inside("resume_writing")


class _Process(Passed, asyncio.SubprocessTransport):
    """Inside: what a protocol sees of its process."""

    def __init__(self, bridge: Outside, real: Any, relay: _Relay) -> None:
        super().__init__(bridge, real, relay)
        self._pipes: dict[int, Any] = {}

    def get_pid(self) -> int:
        return cast(int, self.real.get_pid())

    def get_returncode(self) -> int | None:
        return cast("int | None", self.real.get_returncode())

    def get_pipe_transport(self, fd: int) -> Any:
        real = self.real.get_pipe_transport(fd)
        if real is None:
            return None
        if fd not in self._pipes:
            self._pipes[fd] = Transport(self._bridge, real, self._relay)
        return self._pipes[fd]

    def send_signal(self, signal: int) -> None:
        self._do("send_signal", signal)

    def terminate(self) -> None:
        self._do("terminate")

    def kill(self) -> None:
        self._do("kill")

    async def _wait(self) -> int:
        """asyncio's own ``Process.wait`` asks for this."""
        real = self.real
        return cast(int, await self._bridge.outside(real._wait))
