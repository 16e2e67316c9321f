"""Which recorded exchange answers a request, and what to say when none does.

A request fits an exchange when method, path and body are equal. Bodies are compared parsed: JSON by value (whatever the
order of its keys; 1 and 1.0 are one number there), forms by their fields, multipart bodies by their parts, whatever the
boundary. Parameters of the address decide only between exchanges that fit alike.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from agentloom.format.values import encode
from agentloom.replay.fields import compare
from agentloom.testing.exchanges import Exchange, Headers, decoded, find_header

__all__ = ["Arrived", "Compare", "Miss", "Shelf", "comparable"]

Compare = Literal["body", "path"]
_NO_BODY = "(no body)"


@dataclass(frozen=True, slots=True)
class Miss:
    """A request that no exchange answers.

    ``kind``: ``missing`` (nothing of that method and path), ``changed`` (another body) or ``exhausted`` (recorded
    ``times`` times, asked for once more). ``nearest`` is the name of the exchange that is most like it, ``place`` the
    first field that differs, ``recorded`` and ``now`` its values (None: not there).
    """

    kind: Literal["missing", "changed", "exhausted"]
    message: str
    nearest: str | None = None
    place: str | None = None
    recorded: Any = field(default=None, repr=False)
    now: Any = field(default=None, repr=False)
    times: int = 0


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request that came to a player. ``number`` counts from 1; ``answer``: the exchange or the miss that it got."""

    number: int
    method: str
    url: str
    headers: Headers = field(repr=False)
    body: bytes = field(repr=False)
    answer: Exchange | Miss = field(repr=False)

    @property
    def path(self) -> str:
        """The path, percent-decoded."""
        return unquote(urlsplit(self.url).path)

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return find_header(self.headers, name)

    def json(self) -> Any:
        """The body as JSON. ValueError."""
        return json.loads(self.body)


class Shelf:
    """The exchanges of a player in recorded order, and which of them were given out. Not for several threads."""

    def __init__(
        self, exchanges: Iterable[Exchange], *, how: Compare, ignore: Sequence[str], repeat: bool
    ) -> None:
        self.exchanges = tuple(exchanges)
        self._how: Compare = how
        self._ignore = frozenset(ignore)
        self._repeat = repeat
        self._given: dict[int, int] = {}
        self._bodies = [
            None if one.request_body is None else self._key(one.request_body, one.request_headers)
            for one in self.exchanges
        ]

    def rewind(self) -> None:
        """As if nothing had been asked for yet."""
        self._given.clear()

    def unused(self) -> list[Exchange]:
        """The exchanges that were not given out."""
        return [one for number, one in enumerate(self.exchanges) if number not in self._given]

    def take(self, method: str, url: str, headers: Headers, body: bytes) -> Exchange | Miss:
        """The next exchange that the request fits, or why there is none."""
        fits = self._fitting(method, url, self._key(body, headers))
        if not fits:
            return self._miss(method, url, headers, body)
        fresh = [number for number in fits if number not in self._given]
        if not fresh and not self._repeat:
            first = self.exchanges[fits[0]]
            text = f"{method} {_shown(url)}: recorded {_times(len(fits))}, asked for once more; first as {first.name}"
            return Miss("exhausted", text, first.name, times=len(fits))
        number = fresh[0] if fresh else min(fits, key=lambda one: (self._given[one], one))
        self._given[number] = self._given.get(number, 0) + 1
        return self.exchanges[number]

    def _fitting(self, method: str, url: str, key: str) -> list[int]:
        """The exchanges that fit, of the best rank only: wholly known ones before those of unknown address or body."""
        path, query = _path(url), sorted(parse_qsl(urlsplit(url).query, keep_blank_values=True))
        ranks: list[list[int]] = [[], [], [], []]
        for number, one in enumerate(self.exchanges):
            known = one.path is None or (one.method == method and _path(one.url) == path)
            same = self._how == "path" or self._bodies[number] in (None, key)
            if not known or not same:
                continue
            unknown = one.path is None or (self._bodies[number] is None and self._how == "body")
            vague = one.path is None and self._bodies[number] is None
            rank = 3 if vague else 2 if unknown else 0 if sorted(one.query) == query else 1
            ranks[rank].append(number)
        return next((rank for rank in ranks if rank), ranks[0])

    def _miss(self, method: str, url: str, headers: Headers, body: bytes) -> Miss:
        asked = f"{method} {_shown(url)}"
        path = _path(url)
        near = [one for one in self.exchanges if one.method == method and _path(one.url) == path]
        if not near:
            known = sorted({f"{one.method} {one.path}" for one in self.exchanges if one.path is not None})
            listed = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
            return Miss("missing", f"nothing was recorded for {asked}; recorded: {listed or 'nothing'}")
        now = encode(self._comparable(body, headers))
        best, found = None, None
        for one in near[:200]:
            recorded = encode(self._comparable(one.request_body or b"", one.request_headers))
            differing = compare(recorded, now, limit=20)
            if found is None or differing.total < found.total:
                best, found = one, differing
        if best is None or found is None or not found.items:
            return Miss("changed", f"{asked}: its body differs from every recorded one")
        first = found.items[0]
        more = f" (and {found.total - 1} more fields)" if found.total > 1 else ""
        was, now_is = (
            _value(first.recorded, first.kind == "added"),
            _value(first.now, first.kind == "removed"),
        )
        text = (
            f"{asked} differs from every recorded request; nearest is {best.name}: {first.path or 'the body'} "
            f"was {was}, is {now_is}{more}"
        )
        return Miss("changed", text, best.name, first.path, first.recorded, first.now)

    def _key(self, body: bytes, headers: Headers) -> str:
        return json.dumps(self._comparable(body, headers), sort_keys=True)

    def _comparable(self, body: bytes, headers: Headers) -> Any:
        value = comparable(body, headers)
        if self._ignore and isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            return {name: one for name, one in fields.items() if name not in self._ignore}
        return value


def comparable(body: bytes, headers: Headers) -> Any:
    """A request's body as JSON values in which equal meaning is equal."""
    data = decoded(body, headers)
    kind = (find_header(headers, "content-type") or "").lower()
    if not data:
        return _NO_BODY
    boundary = re.search(rb"\A-{2}([^\r\n]{1,200})\r?\n", data)
    if boundary and (kind.startswith("multipart/") or b"ontent-" in data[:2000]):
        return {"parts": [_part(part) for part in data.split(b"--" + boundary[1])[1:-1]]}
    if kind.startswith("application/x-www-form-urlencoded"):
        return {"form": sorted(map(list, parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True)))}
    try:
        return json.loads(data, parse_float=_number)
    except (ValueError, RecursionError):
        return _opaque(data)


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _part(data: bytes) -> dict[str, Any]:
    head, _, content = data.strip(b"\r\n").replace(b"\r\n", b"\n", 20).partition(b"\n\n")
    lines = (line.partition(b":") for line in head.split(b"\n"))
    headers = {
        name.decode("latin-1").strip().lower(): said.decode("latin-1").strip() for name, _, said in lines
    }
    return {"headers": headers, "content": _opaque(content)}


def _opaque(data: bytes) -> Any:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    return text


def _path(url: str) -> str | None:
    if not url:
        return None
    return re.sub("//+", "/", unquote(urlsplit(url).path)).rstrip("/") or "/"


def _shown(url: str) -> str:
    """An address without its parameters, which may hold a credential."""
    return urlsplit(url).path[:200]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _value(value: object, absent: bool) -> str:
    if absent:
        return "absent"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 120 else text[:117] + "..."
