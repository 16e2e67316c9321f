"""A threaded HTTP server on loopback that ends when it is told to: what the fakes of this package stand on."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

__all__ = ["Loopback", "QuietHandler"]


class Loopback:
    """The server. Use as a context manager, or `start` and `stop`.

    ``handler`` answers requests; its ``owner`` is this object. ``name`` is for threads and messages. After `stop` the
    port is closed, so that a later request fails to connect. ``stopping`` is set while the server does not run.
    """

    def __init__(self, handler: type[QuietHandler], name: str) -> None:
        self._handler = handler
        self._name = name
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.stopping = threading.Event()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``. ValueError before `start`."""
        if self._server is None:
            raise ValueError(f"the {self._name} does not run: use it in a `with` block, or call start()")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> Self:
        """Listen on an ephemeral port of loopback."""
        self.stopping.clear()
        self._server = _Server(self, self._handler)
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.02},
            name=self._name.replace(" ", "-"),
            daemon=True,
        )
        self._thread.start()
        return self

    def stop(self) -> None:
        """Close the port and every connection, and wait for the threads."""
        server, thread = self._server, self._thread
        if server is None or thread is None:
            return
        self._server = self._thread = None
        self.stopping.set()
        server.shutdown()
        server.hang_up()
        thread.join()
        server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class QuietHandler(BaseHTTPRequestHandler):
    """HTTP/1.1 without a log. A POST is for `answer`; every other method is for `other`, which refuses it."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def owner(self) -> Any:
        """The `Loopback` that this request came to."""
        return cast("_Server", self.server).owner

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
        """Requests are kept by the owner, not printed."""

    def received(self) -> bytes:
        """The body of the request, also one that comes in chunks. ValueError for a length that is no number."""
        if "chunked" not in (self.headers.get("transfer-encoding") or "").lower():
            return self.rfile.read(int(self.headers.get("content-length") or 0))
        parts: list[bytes] = []
        while size := int(self.rfile.readline(20).partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline(4)
        while self.rfile.readline(65537).strip():  # trailers
            pass
        return b"".join(parts)

    def answer(self) -> None:
        """Answer a POST."""
        raise NotImplementedError

    def other(self) -> None:
        """Answer any other method."""
        self.send_error(501, f"no answer for {self.command}")

    def do_POST(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.other()

    def do_HEAD(self) -> None:
        self.other()

    def do_PUT(self) -> None:
        self.other()

    def do_PATCH(self) -> None:
        self.other()

    def do_DELETE(self) -> None:
        self.other()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True
    request_queue_size = 128  # many clients may connect at once

    def __init__(self, owner: Loopback, handler: type[QuietHandler]) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(("127.0.0.1", 0), handler)

    def server_bind(self) -> None:
        # HTTPServer.server_bind looks the host's name up; loopback needs no name service.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Wake the threads that wait on idle connections."""
        with self._guard:
            for connection in self._open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:  # the client was faster
                    continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in mid-answer is part of many tests: nothing to say."""
