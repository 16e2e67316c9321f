"""`FakeProvider`: a scripted HTTP server that speaks OpenAI's chat completions, Responses, legacy completions and
embeddings, Anthropic's messages and Google's generateContent.

For tests of agents and of agentloom itself: no key, no network beyond loopback, an ephemeral port, the same answers
every time. ::

    with FakeProvider([Says(tools=[Wants("lookup", {"id": 812})]), Says("It costs $40.")]) as fake:
        client = openai.OpenAI(base_url=fake.openai_url, api_key="unused")
        ...
    assert fake.count == 2
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentloom.testing.loopback import Loopback, QuietHandler
from agentloom.testing.replies import Drops, Fails, Protocol, Raw, Reply, Says, error_body, message, stream

__all__ = ["FakeProvider", "Seen"]

# Whatever stands before them: hosts have places of their own (`/openai/deployments/NAME/chat/completions`).
_ENDS: dict[str, Protocol] = {
    "/chat/completions": "openai",
    "/responses": "responses",
    "/v1/messages": "anthropic",
    ":generateContent": "google",
    ":streamGenerateContent": "google",
}
# Only where the script is for other paths too: a client that asks for what was not scripted gets 404.
_MORE: dict[str, Protocol] = {"/embeddings": "embeddings", "/completions": "completions", "": "other"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that arrived. ``number`` counts from 1; header names are in lower case; ``path`` is with its query."""

    number: int
    protocol: Protocol
    headers: Mapping[str, str]
    body: dict[str, Any]
    path: str = ""

    @property
    def streaming(self) -> bool:
        return bool(self.body.get("stream")) or ":streamGenerateContent" in self.path

    @property
    def model(self) -> str:
        """The model asked for, in the body or in the address."""
        named = self.path.partition("?")[0].rpartition("/models/")[2].partition(":")[0]
        return str(self.body.get("model") or (named if ":" in self.path else None))


Script = Iterable[Reply | str] | Callable[[Seen], Reply | str]


class FakeProvider(Loopback):
    """The server. ``script``: replies in order of arrival, or a function of the request; a str is `Says` of it.

    A request after the last reply is answered with status 500 and a message that says so. Use as a context manager, or
    `start` and `stop`. `seen` holds every request that arrived; `stop` ends the port, so that a later request fails to
    connect. ``others``: requests of any method to any path are answered from the script too.
    """

    def __init__(self, script: Script = (), *, others: bool = False) -> None:
        super().__init__(_Handler, "fake provider")
        self.others = others
        self._function = script if callable(script) else None
        self._replies = iter(() if callable(script) else list(script))
        self._lock = threading.Lock()
        self.seen: list[Seen] = []

    @property
    def count(self) -> int:
        """How many requests arrived."""
        return len(self.seen)

    @property
    def openai_url(self) -> str:
        """The ``base_url`` for an OpenAI client."""
        return self.url + "/v1"

    @property
    def anthropic_url(self) -> str:
        """The ``base_url`` for an Anthropic client."""
        return self.url

    @property
    def google_url(self) -> str:
        """The ``base_url`` for a client of google-genai (``http_options``)."""
        return self.url

    def env(self) -> dict[str, str]:
        """Variables that send unchanged programs of both SDKs here."""
        return {
            "OPENAI_BASE_URL": self.openai_url,
            "OPENAI_API_KEY": "unused",
            "ANTHROPIC_BASE_URL": self.anthropic_url,
            "ANTHROPIC_API_KEY": "unused",
        }

    def take(
        self, protocol: Protocol, headers: Mapping[str, str], body: dict[str, Any], path: str = ""
    ) -> tuple[Seen, Reply]:
        """Note a request and choose its reply (called by the server's threads)."""
        with self._lock:
            seen = Seen(len(self.seen) + 1, protocol, headers, body, path)
            self.seen.append(seen)
            reply = None if self._function is not None else next(self._replies, None)
        if self._function is not None:
            reply = self._function(seen)
        if reply is None:
            return seen, Fails(500, f"the script has no reply for request {seen.number}")
        return seen, Says(reply) if isinstance(reply, str) else reply


def _body(data: bytes) -> dict[str, Any]:
    """A JSON object as it is; anything else is empty."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class _Handler(QuietHandler):
    @property
    def fake(self) -> FakeProvider:
        return cast("FakeProvider", self.owner)

    def answer(self) -> None:
        data = self.received()
        path = self.path.partition("?")[0]
        ends = _ENDS | (_MORE if self.fake.others else {})
        protocol: Protocol | None = next((one for end, one in ends.items() if path.endswith(end)), None)
        if protocol is None:
            self._json(404, error_body("openai", Fails(404, f"the fake provider has no {self.path}")))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen, reply = self.fake.take(protocol, headers, _body(data), self.path)
        if reply.latency and self.fake.stopping.wait(reply.latency):
            self.close_connection = True
            return
        self._answer(seen, reply)

    def other(self) -> None:
        """Answer a request of another method than POST."""
        if self.fake.others:
            self.answer()
        else:
            super().other()

    def _answer(self, seen: Seen, reply: Reply) -> None:
        model = seen.model
        if isinstance(reply, Drops):
            self.close_connection = True
        elif isinstance(reply, Raw):
            self._send(reply.status, reply.body, reply.headers)
        elif isinstance(reply, Fails):
            extra = {} if reply.retry_after is None else {"retry-after": f"{reply.retry_after:g}"}
            self._json(reply.status, error_body(seen.protocol, reply), extra)
        elif seen.streaming:
            options: Mapping[str, Any] = seen.body.get("stream_options") or {}
            usage = bool(options.get("include_usage"))
            self._stream(
                stream(seen.protocol, reply, model, seen.number, usage=usage), reply.break_after is not None
            )
        else:
            try:
                body = message(seen.protocol, reply, model, seen.number)
            except ValueError as error:  # a reply that cannot be sent so: the client hears why
                self._json(500, error_body(seen.protocol, Fails(500, str(error))))
            else:
                self._json(200, body)

    def _json(self, status: int, body: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> None:
        self._send(status, json.dumps(body).encode(), {"content-type": "application/json", **(extra or {})})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self._ids()
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _ids(self) -> None:
        number = self.fake.count
        self.send_header("x-request-id", f"req_fake_{number}")
        self.send_header("request-id", f"req_fake_{number}")

    def _stream(self, events: Iterable[bytes], broken: bool) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self._ids()
        self.end_headers()
        for event in events:
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            self.wfile.flush()
        if broken:  # no last chunk: the client sees an incomplete body
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
