"""What an inner loop does not do: sockets, pipes, processes and signals, each refused by name.

The inner loop performs no I/O. A `Bridge` set on the loop (``loop.bridge``) takes over any of these methods by
having a method of the same name: that is the seam for a byte-level bridge, which puts the protocol inside the run
and the transport outside it. Without one, each method raises `LoopNotSupported`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentloom.errors import NotSupported

__all__ = ["LoopNotSupported", "RefusedIO"]

_CLIENT = "use a recorded HTTP client, agentloom.http, or a tool: its connection lives outside the run"
_SERVER = "an agent run cannot listen; start the server outside the run"
_RAW = "do socket work in a tool, which runs outside the run's loop"
_PROCESS = "start processes in a tool, which runs outside the run's loop"
_SIGNAL = "install signal handlers outside the run"


class LoopNotSupported(NotSupported, NotImplementedError):
    """A loop method that a run's inner loop does not have.

    Also a ``NotImplementedError``, which programs already expect from loops that lack a method.
    """


def _refused(name: str, instead: str) -> Any:
    """A loop method that goes to the bridge when it has ``name``, and otherwise raises `LoopNotSupported`."""

    def method(self: RefusedIO, *args: Any, **kwargs: Any) -> Any:
        if self.is_closed():
            raise RuntimeError("Event loop is closed")
        bridged = getattr(self.bridge, name, None)
        if bridged is not None:
            return bridged(*args, **kwargs)
        raise LoopNotSupported(f"loop.{name}() is not supported inside a run", hint=instead, what=name)

    method.__name__ = name
    method.__qualname__ = f"InnerLoop.{name}"
    method.__doc__ = f"Refused unless the bridge has it: {instead}."
    return method


class RefusedIO:
    """The I/O methods of an event loop, refused by name or handed to ``bridge``."""

    bridge: object | None = None

    if TYPE_CHECKING:

        def is_closed(self) -> bool: ...

    getaddrinfo = _refused("getaddrinfo", _CLIENT)
    getnameinfo = _refused("getnameinfo", _CLIENT)
    create_connection = _refused("create_connection", _CLIENT)
    create_datagram_endpoint = _refused("create_datagram_endpoint", _CLIENT)
    create_unix_connection = _refused("create_unix_connection", _CLIENT)
    start_tls = _refused("start_tls", _CLIENT)
    create_server = _refused("create_server", _SERVER)
    create_unix_server = _refused("create_unix_server", _SERVER)
    connect_accepted_socket = _refused("connect_accepted_socket", _SERVER)
    sendfile = _refused("sendfile", _RAW)
    connect_read_pipe = _refused("connect_read_pipe", _RAW)
    connect_write_pipe = _refused("connect_write_pipe", _RAW)
    add_reader = _refused("add_reader", _RAW)
    remove_reader = _refused("remove_reader", _RAW)
    add_writer = _refused("add_writer", _RAW)
    remove_writer = _refused("remove_writer", _RAW)
    sock_recv = _refused("sock_recv", _RAW)
    sock_recv_into = _refused("sock_recv_into", _RAW)
    sock_recvfrom = _refused("sock_recvfrom", _RAW)
    sock_recvfrom_into = _refused("sock_recvfrom_into", _RAW)
    sock_sendall = _refused("sock_sendall", _RAW)
    sock_sendto = _refused("sock_sendto", _RAW)
    sock_sendfile = _refused("sock_sendfile", _RAW)
    sock_connect = _refused("sock_connect", _RAW)
    sock_accept = _refused("sock_accept", _RAW)
    subprocess_exec = _refused("subprocess_exec", _PROCESS)
    subprocess_shell = _refused("subprocess_shell", _PROCESS)
    add_signal_handler = _refused("add_signal_handler", _SIGNAL)
    remove_signal_handler = _refused("remove_signal_handler", _SIGNAL)
