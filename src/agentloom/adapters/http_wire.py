"""HTTP exchanges as plain values, and back: what is recorded of a request, a response and a stream of events.

A response is ``{"status", "headers", "json" | "text" | "bytes"}`` (``version`` when it was not HTTP/1.1, ``reason``
when it was not the usual one, ``layout`` or ``text`` beside ``json`` that was not in compact form); a streamed one is a
head without a body and then one value for each server-sent event: ``{"json" | "data", "event"?, "id"?, "retry"?}``
(``layout`` or ``data`` beside ``json`` as above; ``{"text" | "bytes"}``: not in plain form, as it came), or ``{"body":
{"json" | "text" | "bytes"}}`` for each piece of an answer that is no stream of events. ``usage`` beside them: the
token counts that they tell.

Bodies are kept without their compression; the headers that describe the wire stay, as a client sees them. Names of
headers are in lower case, ``names`` has them as they came. Values of headers that hold credentials stand apart, in
``hidden``, under a name by which the redaction finds them: an agent has them, a trace has placeholders.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import quote, unquote

from agentloom.adapters.http_bodies import body_bytes, body_fields, json_fields
from agentloom.runtime.profiles import is_secret_header

__all__ = [
    "EventReader",
    "event_bytes",
    "head_fields",
    "head_pairs",
    "head_reason",
    "request_fields",
    "value_bytes",
    "written_body",
]

Pairs = list[tuple[str, str]]
_PART_NAME = re.compile(r";\s*name=\"([^\"]*)\"")
_BOUNDARY = re.compile(r"boundary=\"?([^\";]+)\"?")


def head_fields(
    status: int, pairs: Pairs, version: str = "HTTP/1.1", reason: str | None = None
) -> dict[str, Any]:
    """What is recorded of the head of a response. ``pairs``: its headers in order, as they came."""
    headers: dict[str, Any] = {}
    hidden: list[dict[str, str]] = []
    plain = True
    for name, value in pairs:
        lower = name.lower()
        plain = plain and lower == name and lower not in headers
        if _is_secret(lower):
            hidden.append(_hidden(lower, value))
        elif lower in headers:
            held = headers[lower]
            headers[lower] = [*held, value] if isinstance(held, list) else [held, value]
        else:
            headers[lower] = value
    head: dict[str, Any] = {"status": status, "headers": headers}
    if hidden:
        head["hidden"] = hidden
    if hidden or not plain:
        head["names"] = [name for name, _ in pairs]
    if version != "HTTP/1.1":
        head["version"] = version
    if reason is not None and reason != _REASONS.get(status):
        head["reason"] = reason
    return head


_is_secret = functools.lru_cache(1024)(is_secret_header)
_REASONS: dict[int, str] = {one.value: one.phrase for one in HTTPStatus}


def head_pairs(head: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The headers of a recorded head, in order, as they came."""
    headers: Mapping[str, Any] = head["headers"]
    names: list[str] | None = head.get("names")
    if names is None:
        return [(name, str(value)) for name, value in headers.items()]
    hidden = iter(cast("list[Mapping[str, str]]", head.get("hidden", ())))
    repeated: dict[str, Iterator[str]] = {
        name: iter(cast("list[str]", value)) for name, value in headers.items() if isinstance(value, list)
    }
    pairs: list[tuple[str, str]] = []
    for name in names:
        lower = name.lower()
        if lower in repeated:
            pairs.append((name, next(repeated[lower])))
        elif lower in headers:
            pairs.append((name, headers[lower]))
        else:
            pairs.append((name, _shown(next(hidden))))
    return pairs


def head_reason(head: Mapping[str, Any]) -> str:
    """The reason phrase of a recorded head."""
    return str(head.get("reason", _REASONS.get(head["status"], "")))


def _hidden(lower: str, value: str) -> dict[str, str]:
    """A credential of a header, in a form in which the redaction knows it by its name. Of a cookie the value alone is
    one. A value with spaces is quoted: as a sentence it would pass."""
    if lower.startswith("set-cookie"):
        pair, semicolon, rest = value.partition(";")
        name, equals, cookie = pair.partition("=")
        return {"name": name + equals, "cookie": cookie, "rest": semicolon + rest}
    return {"quoted": "%", "secret": quote(value)} if " " in value else {"secret": value}


def _shown(hidden: Mapping[str, str]) -> str:
    if "cookie" in hidden:
        return f"{hidden['name']}{hidden['cookie']}{hidden['rest']}"
    return unquote(hidden["secret"]) if "quoted" in hidden else hidden["secret"]


def request_fields(
    method: str, url: str, content_type: str | None, body: bytes, content: dict[str, Any] | None = None
) -> dict[str, Any]:
    """What an ``http`` call asks: method, URL, body (``http/1`` keeps credentials in the URL out of the trace). A
    multipart body is ``form``, its parts by name, without its boundary, which is random. ``content``: the
    ``body_fields`` of the body where they are known already."""
    fields: dict[str, Any] = {"method": method.upper(), "url": url}
    found = _BOUNDARY.search(content_type or "")
    if body and found and (content_type or "").lower().startswith("multipart/"):
        form = _form(body, found[1].strip().encode())
        if form is not None:
            return fields | {"form": form}
        content, body = None, body.replace(found[1].strip().encode(), b"boundary")
    return fields | (body_fields(content_type, body) if content is None else content)


def _form(body: bytes, boundary: bytes) -> dict[str, Any] | None:
    """The parts of a multipart body by name, a list where a name repeats: headers, and ``json``, ``text`` or ``bytes``.
    None for a body that is not put together as RFC 7578 has it: taken apart it would lose something."""
    first, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary)
    if first or not parts or parts.pop() not in (b"--", b"--\r\n"):
        return None
    form: dict[str, Any] = {}
    for part in parts:
        head, gap, content = part.partition(b"\r\n\r\n")
        lines = head.decode("utf-8", "surrogateescape").split("\r\n")
        pairs = [line.split(": ", 1) for line in lines[1:]]
        if lines[0] or not gap or any(len(pair) != 2 for pair in pairs):
            return None
        headers = {name.lower(): value for name, value in pairs}
        name = _PART_NAME.search(headers.get("content-disposition", ""))
        if name is None or len(headers) != len(pairs):
            return None
        made = {"headers": headers} | body_fields(headers.get("content-type"), content)
        held = form.get(name[1])
        form[name[1]] = made if held is None else [*held, made] if isinstance(held, list) else [held, made]
    return form


class EventReader:
    """Splits the bytes of an event stream (WHATWG server-sent events) into one value for each event.

    An event is taken apart only where that loses nothing to any client: what is not in plain form (a byte order mark,
    unknown fields, invalid UTF-8, an event that the stream's end cuts off, a comment alone) is kept as it came, as
    ``text`` or ``bytes``. One that is plain but not in the order or spacing in which it would be written has its bytes
    beside it (``raw``), one whose lines end in another way says so (``ends``): the bytes always come back.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._raw: list[bytes] = []  # the lines of an event that has begun, with their ends
        self._lines: list[bytes] = []

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The events that ``data`` completes."""
        whole = self._rest + data if self._rest else data
        if b"\r" not in whole:
            lines = whole.split(b"\n")
            self._rest = lines.pop()
            ends: Iterable[bytes] = itertools.repeat(b"\n")
        else:
            # A carriage return at the very end may be half of a line end: it waits for the next bytes.
            held = b"\r" if whole.endswith(b"\r") else b""
            *parts, rest = _LINE_ENDS.split(whole[: len(whole) - len(held)])
            self._rest = rest + held
            lines, ends = parts[::2], parts[1::2]
        for line, end in zip(lines, ends, strict=False):
            self._raw.append(line + end)
            if line:
                self._lines.append(line)
            else:
                yield self._event()

    def finish(self) -> Iterator[dict[str, Any]]:
        """What is left at the stream's end: an event that a carriage return ends, or the part of one that was cut."""
        if self._rest.endswith(b"\r"):
            line, self._rest = self._rest, b""
            self._raw.append(line)
            if line == b"\r":
                yield self._event()
            else:
                self._lines.append(line[:-1])
        left = b"".join(self._raw) + self._rest
        if left:
            yield _as_it_came(left)
        self._raw, self._rest = [], b""

    def _event(self) -> dict[str, Any]:
        """The event that an empty line has ended."""
        parts, lines = self._raw, self._lines
        self._raw, self._lines = [], []
        raw = b"".join(parts)
        known = _usual_event(lines, raw)
        if known is not None:
            return known
        fields = [one for one in lines if one[:1] != b":"]
        event = _plain_event(fields) if fields else None
        if event is None:
            return _as_it_came(raw)
        if len(lines) != len(fields) or not _in_order(fields):
            event["raw"] = raw.decode("utf-8")
        elif raw != b"\n".join(fields) + b"\n\n":
            if raw == b"\r\n".join(fields) + b"\r\n\r\n":
                event["ends"] = "\r\n"
            else:
                event["raw"] = raw.decode("utf-8")
        return event


def _usual_event(lines: list[bytes], raw: bytes) -> dict[str, Any] | None:
    """An event of the form that by far the most have, a line of JSON, with or without a name before it; None for all
    others."""
    if not lines or lines[-1][:7] != b"data: {" or raw[-2:] != b"\n\n":
        return None
    named: dict[str, Any] = {}
    if len(lines) == 2 and lines[0][:7] == b"event: " and lines[0].isascii():
        named["event"] = lines[0][7:].decode()
    elif len(lines) != 1:
        return None
    if len(raw) != sum(map(len, lines)) + len(lines) + 1:  # other line ends
        return None
    known = json_fields(lines[-1][6:])
    return named | known if "json" in known and "text" not in known else None


_ORDER = (b"event: ", b"id: ", b"retry: ", b"data: ")


def _in_order(lines: list[bytes]) -> bool:
    """Whether the lines of an event are as `event_bytes` writes them."""
    last = 0
    for line in lines:
        place = next((at for at, start in enumerate(_ORDER) if line.startswith(start)), None)
        if place is None or place < last:
            return False
        last = place
    return True


_LINE_ENDS = re.compile(rb"(\r\n|\n|\r)")


def _plain_event(lines: list[bytes]) -> dict[str, Any] | None:
    """The fields of an event; None when taking it apart would lose something."""
    event: dict[str, Any] = {}
    data: list[str] = []
    for line in lines:
        name, colon, rest = line.partition(b":")
        try:
            value = rest.removeprefix(b" ").decode("utf-8")
        except UnicodeDecodeError:
            return None
        if name == b"data":
            data.append(value)
        elif name in (b"event", b"id", b"retry") and colon and name.decode() not in event:
            event[name.decode()] = value
        else:
            return None
    text = "\n".join(data)
    if text.startswith(("{", "[")):
        fields = json_fields(text.encode())
        if "json" not in fields:  # "[DONE]", or text that only looks like JSON
            return event | {"data": text}
        event["json"] = fields["json"]
        if "layout" in fields:
            event["layout"] = fields["layout"]
        elif "text" in fields:
            event["data"] = text
    elif data:
        event["data"] = text
    return event or None


def _as_it_came(raw: bytes) -> dict[str, Any]:
    """Bytes that are no plain event."""
    return body_fields(None, raw)


def event_bytes(event: Mapping[str, Any]) -> bytes:
    """One event as it goes over the wire."""
    if "text" in event or "bytes" in event:
        return body_bytes(event)
    if "raw" in event:
        return cast(str, event["raw"]).encode("utf-8")
    ends: bytes = event.get("ends", "\n").encode()
    lines = [f"{name}: {event[name]}".encode() for name in ("event", "id", "retry") if name in event]
    if "data" in event:
        lines += [b"data: " + line.encode() for line in cast(str, event["data"]).split("\n")]
    elif "json" in event:
        lines += [b"data: " + line for line in body_bytes(event).split(b"\n")]
    return ends.join(lines) + ends + ends


def value_bytes(value: Mapping[str, Any]) -> bytes:
    """The bytes of one recorded chunk: an event, or a piece of an answer that was no stream of events."""
    return body_bytes(value["body"]) if "body" in value else event_bytes(value)


def written_body(data: bytes | bytearray) -> bytes | None:
    """The body of a request as a client has written it to a connection; None while it is not whole."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    length = 0
    for name, value in _FRAMING.findall(data, 0, end + 2):
        if name[:1] in b"tT":
            if b"chunked" in value.lower():
                return _unchunked(bytes(data[end + 4 :]))
        else:
            length = int(value)
    return bytes(data[end + 4 : end + 4 + length]) if len(data) - end - 4 >= length else None


_FRAMING = re.compile(rb"\r\n(transfer-encoding|content-length)[ \t]*:([^\r]*)(?=\r\n)", re.IGNORECASE)


def _unchunked(data: bytes) -> bytes | None:
    parts: list[bytes] = []
    while True:
        line, end, data = data.partition(b"\r\n")
        if not end:
            return None
        size = int(line.partition(b";")[0], 16)
        if size == 0:
            return b"".join(parts)
        if len(data) < size + 2:
            return None
        parts.append(data[:size])
        data = data[size + 2 :]
