"""Bodies of HTTP messages as plain values, and back: JSON as its value, else text when it is UTF-8, else bytes.

What comes from a server comes back as the very same bytes (``answer_fields``, ``body_bytes``). Both are done for each
event of a stream, so the common forms of JSON take a way through orjson, whose text is used only where it is what the
standard library would write.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

import orjson

__all__ = ["answer_fields", "body_bytes", "body_fields", "json_fields", "plain_body"]

_UNFOLDED = 256 << 20  # bytes
_EXACT = orjson.OPT_PASSTHROUGH_SUBCLASS | orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def plain_body(encoding: str | None, body: bytes) -> bytes:
    """The body of a request without its compression (gzip, deflate), which holds the time and depends on the library.
    One that is not what it says, is compressed otherwise, or unfolds to over 256 MiB stays as it is."""
    if not encoding:
        return body
    kind = encoding.strip().lower()
    if not body or kind not in ("gzip", "x-gzip", "deflate"):
        return body
    for window in (
        zlib.MAX_WBITS | 32,
        -zlib.MAX_WBITS,
    ):  # with a header of either kind; deflate as some send it
        unfolding = zlib.decompressobj(window)
        try:
            plain = unfolding.decompress(body, _UNFOLDED)
        except zlib.error:
            continue
        if unfolding.eof and not unfolding.unused_data:
            return plain
    return body


def body_fields(content_type: str | None, body: bytes) -> dict[str, Any]:
    """A body as ``{"json": value}`` when it says that it is JSON and is, else ``text`` when UTF-8, else ``bytes``."""
    if not body:
        return {}
    if _says_json(content_type):
        try:
            return {"json": _loaded(body)}
        except (ValueError, RecursionError):  # it says JSON and is not: kept as the text that it is
            pass
    try:
        return {"text": body.decode("utf-8")}
    except UnicodeDecodeError:
        return {"bytes": body}


def _says_json(content_type: str | None) -> bool:
    if content_type == "application/json":
        return True
    kind = (content_type or "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _loaded(body: bytes) -> Any:
    """What ``json.loads`` gives, in a fraction of its time where the body is compact JSON, as SDKs send it."""
    try:
        value: Any = orjson.loads(body)
        if orjson.dumps(value) == body:  # nothing was lost: no key twice, no integer over 64 bits
            return value
    except (ValueError, TypeError):
        pass
    return json.loads(body)


def answer_fields(content_type: str | None, body: bytes) -> dict[str, Any]:
    """``body_fields`` of an answer, which come back as the very same bytes: JSON that is not in compact form has its
    ``layout`` beside it, or, where that does not describe it, its ``text``."""
    if body and _says_json(content_type):
        return json_fields(body)
    return body_fields(content_type, body)


def json_fields(body: bytes) -> dict[str, Any]:
    """``answer_fields`` of a body that says that it is JSON."""
    try:
        value: Any = orjson.loads(body)
        data = orjson.dumps(value)
    except (ValueError, TypeError):
        pass  # the standard library takes more: NaN, other encodings, more levels
    else:
        if data == body and _is_usual(data):
            return {"json": value}
        for layout in _likely(data, body):
            if _laid_out(value, layout) == body:
                return {"json": value, "layout": layout}
    return _laid_out_fields(body)


def _likely(compact: bytes, body: bytes) -> Iterator[dict[str, Any]]:
    """Layouts in which many servers write a line of JSON that is ``compact`` in short."""
    more = len(body) - len(compact)
    if body[-2:] == b" }" and more > 0 and body[: len(compact) - 1] == compact[:-1]:
        yield {"pad": more}  # Anthropic: spaces against those who measure what is sent
    elif b'": ' in body and b"\n" not in body:
        yield {"spaced": True}
        yield {"colons": True}  # Google


def _laid_out_fields(body: bytes) -> dict[str, Any]:
    fields = body_fields("application/json", body)
    if "json" not in fields or _json_bytes(fields["json"]) == body:
        return fields
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:  # JSON in another encoding
        return {"bytes": body}
    inner = text.strip(" \t\r\n")
    before = text[: text.index(inner)] if inner else ""
    indent = _INDENT.match(inner)
    layout: dict[str, Any] = {"indent": len(indent[1])} if indent else {}
    edges = {"before": before, "after": text[len(before) + len(inner) :]}
    layout |= {name: edge for name, edge in edges.items() if edge}
    ways: list[dict[str, Any]] = [{}, {"ascii": True}, {"spaced": True}, {"spaced": True, "ascii": True}]
    if not layout and body.isascii() and b"\\u" not in body:
        del ways[:2]  # what was tried already
    for more in ways:
        if _laid_out(fields["json"], layout | more) == body:
            return fields | {"layout": layout | more}
    return fields | {"text": text}


_INDENT = re.compile(r"[\[{]\n( +)")


def body_bytes(fields: Mapping[str, Any]) -> bytes:
    """The bytes of a body that ``answer_fields`` took apart (of ``body_fields``: JSON in compact form)."""
    if "text" in fields:
        return cast(str, fields["text"]).encode("utf-8")
    if "json" in fields:
        layout: Mapping[str, Any] | None = fields.get("layout")
        return _json_bytes(fields["json"]) if layout is None else _laid_out(fields["json"], layout)
    return cast(bytes, fields.get("bytes", b""))


def _laid_out(value: Any, layout: Mapping[str, Any]) -> bytes:
    """JSON in a layout: ``indent`` (spaces), ``spaced`` (after colons and commas), ``colons`` (spaced after these
    alone), ``ascii`` (all else escaped), ``pad`` (spaces before the last brace), ``before`` and ``after`` it."""
    if len(layout) == 1:
        if "spaced" in layout:
            return _spaced(value).encode("utf-8", "surrogatepass")
        if "colons" in layout:
            return _colons(value).encode("utf-8", "surrogatepass")
        if "pad" in layout:
            data = _json_bytes(value)
            return b"%b%b%b" % (data[:-1], b" " * layout["pad"], data[-1:])
    indent: int | None = layout.get("indent")
    spaced = indent is not None or layout.get("spaced")
    colon, comma = (": " if spaced else ":"), (", " if spaced and indent is None else ",")
    ascii_only = bool(layout.get("ascii"))
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, separators=(comma, colon))
    return f"{layout.get('before', '')}{text}{layout.get('after', '')}".encode("utf-8", "surrogatepass")


_spaced = json.JSONEncoder(ensure_ascii=False).encode
_colons = json.JSONEncoder(ensure_ascii=False, separators=(",", ": ")).encode
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def _json_bytes(value: Any) -> bytes:
    """Compact JSON as the standard library writes it, with line separators escaped."""
    quick = _quick_bytes(value)
    if quick is not None:
        return quick
    try:
        text = _compact(value)
        # httpx's iter_lines ends lines at these, and no server that escapes them means that.
        for mark, escape in (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
            text = text.replace(mark, escape)
        return text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate: only an escape can carry it
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _quick_bytes(value: Any) -> bytes | None:
    """``_json_bytes`` by orjson, or None where orjson writes something in another way than the standard library: small
    floats and exponents, NaN (as null), line separators (and what it refuses)."""
    try:
        data = orjson.dumps(value, option=_EXACT)
    except TypeError:
        return None
    if not _is_usual(data) or (b"null" in data and orjson.loads(data) != value):
        return None
    return data


def _is_usual(data: bytes) -> bool:
    """Whether the standard library writes these numbers and texts in the same way."""
    if (b"e-" in data or b"e+" in data or b".0000" in data) and _ODD_FLOAT.search(data):
        return False
    return data.isascii() or not any(mark in data for mark in _SEPARATORS)


_ODD_FLOAT = re.compile(rb"[0-9]e[-+][0-9]|0\.0000")
_SEPARATORS = tuple(mark.encode() for mark in ("\x85", "\u2028", "\u2029"))
