"""HTTP exchanges as plain values, and back: what is recorded of a request, a response and a stream of events.

A response is ``{"status", "headers", "json" | "text" | "bytes"}`` (``version`` when it was not HTTP/1.1); a streamed
one is a head without a body and then one value for each server-sent event: ``{"json" | "data", "event"?, "id"?,
"retry"?}``, or one ``{"json" | "text" | "bytes"}`` when the answer was not a stream after all. Credentials are in
headers and query fields; neither is kept except for the names below.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

__all__ = [
    "EventReader",
    "body_bytes",
    "body_fields",
    "event_bytes",
    "kept_headers",
    "request_fields",
]

_KEPT = frozenset(
    {
        "cf-ray",
        "content-disposition",
        "content-language",
        "content-type",
        "date",
        "etag",
        "last-modified",
        "link",
        "location",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-request-id",
        "x-should-retry",
    }
)
_KEPT_PREFIXES = ("anthropic-ratelimit-", "openai-", "ratelimit-", "x-ratelimit-")
_BOUNDARY = re.compile(r"boundary=\"?([^\";]+)\"?")


def kept_headers(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """The headers of a response that are recorded, names in lower case; repeated ones joined as RFC 9110 has it."""
    kept: dict[str, str] = {}
    for name, value in pairs:
        lower = name.lower()
        if lower in _KEPT or lower.startswith(_KEPT_PREFIXES):
            kept[lower] = f"{kept[lower]}, {value}" if lower in kept else value
    return kept


def request_fields(method: str, url: str, content_type: str | None, body: bytes) -> dict[str, Any]:
    """What an ``http`` call asks: method, URL, body (``http/1`` keeps credentials in the URL out of the trace). A
    multipart boundary, which is random, is replaced by a fixed one."""
    fields: dict[str, Any] = {"method": method.upper(), "url": url}
    if body:
        found = _BOUNDARY.search(content_type or "")
        if found and (content_type or "").lower().startswith("multipart/"):
            body = body.replace(found[1].encode(), b"boundary")
        fields.update(body_fields(content_type, body))
    return fields


def body_fields(content_type: str | None, body: bytes) -> dict[str, Any]:
    """A body as ``{"json": value}`` when it says that it is JSON and is, else ``text`` when UTF-8, else ``bytes``."""
    if not body:
        return {}
    kind = (content_type or "").partition(";")[0].strip().lower()
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return {"json": json.loads(body)}
        except (ValueError, RecursionError):  # it says JSON and is not: kept as the text that it is
            pass
    try:
        return {"text": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": body}


def body_bytes(fields: Mapping[str, Any]) -> bytes:
    """The bytes of a body that ``body_fields`` took apart; JSON in compact form."""
    if "json" in fields:
        return _json_bytes(fields["json"])
    if "text" in fields:
        return cast(str, fields["text"]).encode("utf-8")
    return cast(bytes, fields.get("bytes", b""))


def _json_bytes(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate: only an escape can carry it
        return json.dumps(value, separators=(",", ":")).encode("ascii")


class EventReader:
    """Splits the bytes of an event stream (WHATWG server-sent events) into one value for each event.

    As that specification has it, an event that the stream's end cuts off (no empty line after it) does not count.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._first = True
        self._fields: dict[str, Any] = {}
        self._data: list[str] = []

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """The events that ``data`` completes."""
        if self._first and data:
            self._first = False
            data = data.removeprefix(b"\xef\xbb\xbf")
        whole = self._rest + data
        # A carriage return at the very end may be half of a line end: it waits for the next bytes.
        held = b"\r" if whole.endswith(b"\r") else b""
        lines = re.split(rb"\r\n|\n|\r", whole[: len(whole) - len(held)])
        self._rest = lines.pop() + held
        for line in lines:
            event = self._line(line.decode("utf-8", "replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> dict[str, Any] | None:
        if not line:
            return self._take()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name in ("event", "id", "retry"):
            self._fields[name] = value
        return None  # anything else is a comment or unknown, and carries nothing

    def _take(self) -> dict[str, Any] | None:
        if not self._data and not self._fields:
            return None
        event, self._fields = self._fields, {}
        text = "\n".join(self._data)
        if text.startswith(("{", "[")):
            try:
                event["json"] = json.loads(text)
            except (ValueError, RecursionError):  # "[DONE]", or text that only looks like JSON
                event["data"] = text
        elif self._data:
            event["data"] = text
        self._data = []
        return event


def event_bytes(event: Mapping[str, Any]) -> bytes:
    """One event as it goes over the wire."""
    lines = [f"{name}: {event[name]}".encode() for name in ("event", "id", "retry") if name in event]
    if "json" in event:
        lines.append(b"data: " + _json_bytes(event["json"]))
    elif "data" in event:
        lines += [b"data: " + line.encode() for line in cast(str, event["data"]).split("\n")]
    return b"\n".join(lines) + b"\n\n"
