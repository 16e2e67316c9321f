"""A server that sends given bytes in given slices, and the three ways to run a program against it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import pydantic


@dataclass(frozen=True)
class Sent:
    """One answer. ``slice``: bytes a chunk of the transfer (0: all at once); ``lost``: the connection ends before the
    transfer does."""

    data: bytes = field(repr=False)
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/event-stream"})
    slice: int = 0
    lost: bool = False

    def slices(self) -> Iterator[bytes]:
        size = self.slice or max(1, len(self.data))
        for start in range(0, len(self.data), size):
            yield self.data[start : start + size]


class Wire:
    """Answers each POST with the next of ``answers`` (the last one again and again), until it is left."""

    def __init__(self, *answers: Sent) -> None:
        self.answers = list(answers)
        self.bodies: list[bytes] = []

    def __enter__(self) -> Self:
        wire = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it
                """Nothing to say."""

            def do_POST(self) -> None:
                wire.bodies.append(self.rfile.read(int(self.headers.get("content-length") or 0)))
                answer = wire.answers[min(len(wire.bodies), len(wire.answers)) - 1]
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("transfer-encoding", "chunked")
                self.send_header("connection", "close")
                self.end_headers()
                self.close_connection = True
                try:
                    for part in answer.slices():
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                    if not answer.lost:
                        self.wfile.write(b"0\r\n\r\n")
                except OSError:  # the client went away in mid-answer: part of the tests
                    return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self._server.allow_reuse_address = False
        self._server.socket.bind(("127.0.0.1", 0))
        self._server.server_address = self._server.socket.getsockname()
        self._server.server_activate()
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The ``base_url`` for an OpenAI client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"


def seen(value: Any) -> Any:
    """All that a program can see of an SDK object: types by name at every level, set and extra fields, plain values."""
    if isinstance(value, pydantic.BaseModel):
        fields = {name: seen(getattr(value, name)) for name in type(value).model_fields}
        extra = {name: seen(one) for name, one in (value.model_extra or {}).items()}
        return {
            "type": f"{type(value).__module__}:{type(value).__qualname__}",
            "fields": fields,
            "extra": extra,
            "set": sorted(value.model_fields_set),
            "request_id": getattr(value, "_request_id", None),
        }
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(seen, value)]
    if isinstance(value, dict):
        return {"dict": [[name, seen(one)] for name, one in value.items()]}
    if isinstance(value, BaseException):
        told: dict[str, Any] = {
            "raised": f"{type(value).__module__}:{type(value).__qualname__}",
            "text": str(value),
        }
        told |= {
            name: seen(getattr(value, name))
            for name in ("status_code", "code", "param", "type", "body", "request_id")
            if hasattr(value, name)
        }
        cause = value.__cause__
        if (
            cause is not None and "httpcore" in type(cause).__module__
        ):  # holds the connection: left out (docs/run.md)
            cause = None
        return told | {"cause": None if cause is None else seen(cause)}
    return [type(value).__name__, value]
