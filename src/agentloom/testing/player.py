"""`Player`: recorded HTTP traffic, served on loopback.

Real answers of real providers, byte for byte, without a key or a network; and the same answers broken on purpose. ::

    with Player("cassettes/test_refund.yaml") as player:
        client = openai.OpenAI(base_url=player.base_url("/chat/completions"), api_key="unused")
        ...
    assert not player.misses and not player.unused
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast
from urllib.parse import quote, urlsplit

from agentloom.errors import TrafficError
from agentloom.testing.exchanges import Exchange, Headers, Traffic
from agentloom.testing.loopback import Loopback, QuietHandler
from agentloom.testing.player_matching import Arrived, Compare, Miss, Shelf
from agentloom.testing.traffic import read_traffic

__all__ = ["Faults", "Player"]

# Of the recorded connection, not of the answer: the server's own are sent instead.
_OWN = frozenset(
    ["connection", "content-length", "date", "keep-alive", "server", "trailer", "transfer-encoding"]
)
_NO_CONTENT = (204, 304)
_TOKEN = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)  # what RFC 9110 allows as a header's name


@dataclass(frozen=True, slots=True)
class Faults:
    """How to break an answer. ``delay``: seconds before its first byte. ``pieces``: bytes of each write, the last size
    again and again (0: all at once); a write is a chunk of the transfer. ``pause``: seconds between writes.
    ``cut``: after so many bytes of the body (0: after the headers) the connection ends, as a lost one does, without
    the end of the transfer. ``drop``: it ends without any answer.
    """

    delay: float = 0.0
    pieces: int | Sequence[int] = 0
    pause: float = 0.0
    cut: int | None = None
    drop: bool = False

    def split(self, body: bytes) -> Iterator[bytes]:
        """The writes that make up ``body``."""
        sizes = [self.pieces] if isinstance(self.pieces, int) else list(self.pieces)
        size, start = 0, 0
        for number in range(len(body) + 1):
            size = sizes[number] if number < len(sizes) else size
            piece = body[start : start + size] if size > 0 else body[start:]
            if not piece:
                return
            yield piece
            start += len(piece)


Source = Exchange | Traffic | str | os.PathLike[str]
Breaks = Faults | Callable[[Exchange, int], Faults | None]


class Player(Loopback):
    """The server. ``sources``: files (`read_traffic`), what was read of them, or exchanges; in recorded order.

    A request is answered by the exchange of the same method, path and parsed body (``compare="path"``: whatever the
    body); requests that are alike get their answers in recorded order, each once, or over again with ``repeat``.
    ``ignore``: fields of JSON bodies that are not compared. Where nothing fits, the answer has status 404 and a JSON
    error that names the nearest exchange and the field that differs; `misses` keeps it.

    ``faults``: how to break answers; a function is asked for each (the exchange, and how many requests came before).
    """

    def __init__(
        self,
        *sources: Source,
        compare: Compare = "body",
        ignore: Sequence[str] = (),
        repeat: bool = False,
        faults: Breaks | None = None,
    ) -> None:
        super().__init__(_Handler, "player")
        exchanges = tuple(one for source in sources for one in _exchanges(source))
        self._shelf = Shelf(exchanges, how=compare, ignore=ignore, repeat=repeat)
        self._lock = threading.Lock()
        self.faults = faults
        self.seen: list[Arrived] = []

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """All that can be played."""
        return self._shelf.exchanges

    @property
    def misses(self) -> list[Miss]:
        """Why requests were not answered."""
        with self._lock:
            return [one.answer for one in self.seen if isinstance(one.answer, Miss)]

    @property
    def unused(self) -> list[Exchange]:
        """Exchanges that no request asked for."""
        with self._lock:
            return self._shelf.unused()

    def rewind(self) -> None:
        """Start again from the first exchange; `seen` is emptied."""
        with self._lock:
            self._shelf.rewind()
            self.seen.clear()

    def base_url(self, tail: str) -> str:
        """The address for a client that puts ``tail`` (``/chat/completions``) behind it to reach the recorded path.

        That of the first exchange whose path ends so; ValueError when there is none.
        """
        for one in self.exchanges:
            path = one.path
            if path is None or path.endswith(tail):
                return self.url + quote((path or "").removesuffix(tail), safe="/:@")
        raise ValueError(
            f"no recorded path ends with {tail}: {sorted({str(one.path) for one in self.exchanges})[:8]}"
        )

    def take(self, method: str, url: str, headers: Headers, body: bytes) -> tuple[Arrived, Faults]:
        """Note a request, choose its answer and how to break it (called by the server's threads)."""
        with self._lock:
            number = len(self.seen)
            answer = self._shelf.take(method, url, headers, body)
            arrived = Arrived(number + 1, method, url, headers, body, answer)
            self.seen.append(arrived)
        faults = self.faults
        if faults is not None and not isinstance(faults, Faults):
            faults = faults(answer, number) if isinstance(answer, Exchange) else None
        return arrived, faults if isinstance(answer, Exchange) and faults else Faults()


def _exchanges(source: Source) -> Iterable[Exchange]:
    if isinstance(source, Exchange):
        return (source,)
    traffic = source if isinstance(source, Traffic) else read_traffic(source)
    if not traffic.exchanges:
        what = "frames of a websocket" if traffic.frames else "no exchange"
        raise TrafficError(
            f"{traffic.path} holds {what}, which an HTTP server cannot play",
            hint="read_traffic(path).frames has the messages" if traffic.frames else None,
            file=traffic.path,
        )
    return traffic.exchanges


class _Handler(QuietHandler):
    @property
    def player(self) -> Player:
        return cast("Player", self.owner)

    def other(self) -> None:
        self.answer()

    def answer(self) -> None:
        try:
            body = self.received()
            target = urlsplit(self.path)  # a proxy's client sends the whole address
        except ValueError as error:  # no number where a length has to be, no address
            self.send_error(400, str(error))
            return
        url = target.path + (f"?{target.query}" if target.query else "")
        headers = tuple((name, str(value)) for name, value in self.headers.items())
        arrived, faults = self.player.take(self.command, url, headers, body)
        if faults.drop or (faults.delay and self.player.stopping.wait(faults.delay)):
            self.close_connection = True
        elif isinstance(arrived.answer, Miss):
            self._missed(arrived.answer)
        else:
            self._play(arrived.answer, faults)

    def _missed(self, miss: Miss) -> None:
        error = {
            "type": "no_recorded_answer",
            "code": miss.kind,
            "message": miss.message,
            "param": miss.place,
        }
        data = json.dumps({"type": "error", "error": error, "nearest": miss.nearest}).encode()
        self.send_response(404)
        self.send_header("content-type", "application/json")
        self.send_header("x-agentloom-miss", miss.kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self._write(data)

    def _play(self, exchange: Exchange, faults: Faults) -> None:
        body = exchange.body
        self.send_response_only(exchange.status)
        for name, value in _sent(exchange).items():
            for one in value:
                self.send_header(name, one)
        if exchange.status in _NO_CONTENT:
            self.end_headers()
            return
        chunked = exchange.streamed or faults.pieces != 0
        if chunked:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        for number, piece in enumerate(faults.split(body[: faults.cut])):
            if number and faults.pause and self.player.stopping.wait(faults.pause):
                self.close_connection = True
                return
            self._write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        if faults.cut is not None:  # no last chunk, fewer bytes than said: the client sees an incomplete body
            self.close_connection = True
        elif chunked:
            self._write(b"0\r\n\r\n")

    def _write(self, data: bytes) -> None:
        if self.command != "HEAD":
            self.wfile.write(data)
            self.wfile.flush()


def _sent(exchange: Exchange) -> Mapping[str, list[str]]:
    """The recorded headers that go out: not those of the connection, nor an encoding that the body does not have."""
    sent: dict[str, list[str]] = {}
    for name, value in exchange.headers:
        lower = name.lower()
        if lower in _OWN or (lower == "content-encoding" and not exchange.encoded):
            continue
        if lower == "content-type" and exchange.content_type not in value.lower():
            continue  # redacted
        if _TOKEN.fullmatch(name) and not set(value) & set("\r\n\0"):
            sent.setdefault(name, []).append(value.encode("latin-1", "replace").decode("latin-1"))
    if not any(name.lower() == "content-type" for name in sent) and exchange.body:
        sent["content-type"] = [exchange.content_type]
    return sent
