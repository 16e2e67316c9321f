"""Descriptors, sockets and signals that a run waits for through its loop: outside of the run, what is called inside."""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any

from agentloom.runtime.loop_outside import Outside
from agentloom.runtime.scope import run_outside

__all__ = ["Descriptors"]

_Watched = tuple[Callable[..., object], tuple[Any, ...], Context]


class Descriptors(Outside):
    """Takes over the methods of an inner loop for descriptors, raw sockets and signals."""

    def __init__(self, driver: Any) -> None:
        super().__init__(driver)
        self._watched: dict[tuple[str, int], _Watched] = {}
        self._signals: set[int] = set()

    # -- descriptors ---------------------------------------------------------------------------------------------

    def add_reader(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """As on any loop."""
        self.tell("waits until a descriptor can be read")
        self._watch("reader", _number(fd), (callback, args, copy_context()))

    def add_writer(self, fd: Any, callback: Callable[..., object], *args: Any) -> None:
        """As on any loop."""
        self.tell("waits until a descriptor can be written")
        self._watch("writer", _number(fd), (callback, args, copy_context()))

    def remove_reader(self, fd: Any) -> bool:
        """As on any loop."""
        return self._unwatch("reader", _number(fd))

    def remove_writer(self, fd: Any) -> bool:
        """As on any loop."""
        return self._unwatch("writer", _number(fd))

    def _watch(self, what: str, fd: int, watched: _Watched) -> None:
        callback, args, context = watched
        outer = self.outer()
        self._watched[what, fd] = watched

        def ready() -> None:
            # A descriptor is ready until somebody reads it, which happens inside, later: not to be told twice.
            getattr(outer, f"remove_{what}")(fd)
            self.hand_in(inside, (), context)

        def inside() -> None:
            if self._watched.get((what, fd)) is not watched:
                return
            try:
                callback(*args)
            finally:
                if self._watched.get((what, fd)) is watched:
                    add()

        def add() -> None:
            run_outside(lambda: getattr(outer, f"add_{what}")(fd, ready))

        add()

    def _unwatch(self, what: str, fd: int) -> bool:
        if self._watched.pop((what, fd), None) is None:
            return False
        outer = self.outer()
        run_outside(lambda: getattr(outer, f"remove_{what}")(fd))
        return True

    # -- sockets -------------------------------------------------------------------------------------------------

    async def sock_recv(self, sock: Any, nbytes: int) -> Any:
        """As on any loop."""
        return await self._sock("reads from a socket", "sock_recv", sock, nbytes)

    async def sock_recv_into(self, sock: Any, buf: Any) -> Any:
        """As on any loop."""
        return await self._sock("reads from a socket", "sock_recv_into", sock, buf)

    async def sock_recvfrom(self, sock: Any, bufsize: int) -> Any:
        """As on any loop."""
        return await self._sock("reads from a socket", "sock_recvfrom", sock, bufsize)

    async def sock_recvfrom_into(self, sock: Any, buf: Any, nbytes: int = 0) -> Any:
        """As on any loop."""
        return await self._sock("reads from a socket", "sock_recvfrom_into", sock, buf, nbytes)

    async def sock_sendall(self, sock: Any, data: Any) -> Any:
        """As on any loop."""
        return await self._sock("writes to a socket", "sock_sendall", sock, data)

    async def sock_sendto(self, sock: Any, data: Any, address: Any) -> Any:
        """As on any loop."""
        return await self._sock(f"sends to {address}", "sock_sendto", sock, data, address)

    async def sock_sendfile(
        self, sock: Any, file: Any, offset: int = 0, count: int | None = None, *, fallback: bool | None = None
    ) -> Any:
        """As on any loop."""
        return await self._sock(
            "writes to a socket", "sock_sendfile", sock, file, offset, count, fallback=fallback
        )

    async def sock_connect(self, sock: Any, address: Any) -> Any:
        """As on any loop."""
        return await self._sock(f"connects to {address}", "sock_connect", sock, address)

    async def sock_accept(self, sock: Any) -> Any:
        """As on any loop."""
        return await self._sock("accepts a connection", "sock_accept", sock)

    async def _sock(self, words: str, name: str, *args: Any, **options: Any) -> Any:
        self.tell(words)
        outer = self.outer()
        return await self.outside(lambda: getattr(outer, name)(*args, **options))

    # -- signals -------------------------------------------------------------------------------------------------

    def add_signal_handler(self, sig: int, callback: Callable[..., object], *args: Any) -> None:
        """As on any loop. That a handler stands is nothing to record: only a signal that comes is told."""
        context, place = copy_context(), self.place()
        self._signals.add(sig)
        if self.replays:
            return
        outer = self.outer()

        def inside() -> None:
            self.tell_at(f"receives {signal.Signals(sig).name}", "process", place)
            callback(*args)

        run_outside(lambda: outer.add_signal_handler(sig, lambda: self.hand_in(inside, (), context)))

    def remove_signal_handler(self, sig: int) -> bool:
        """As on any loop."""
        if sig not in self._signals:
            return False
        self._signals.remove(sig)
        if not self.replays:
            outer = self.outer()
            run_outside(lambda: outer.remove_signal_handler(sig))
        return True


def _number(fd: Any) -> int:
    return fd if isinstance(fd, int) else int(fd.fileno())
