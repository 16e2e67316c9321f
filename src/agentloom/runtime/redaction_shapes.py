"""What is secret where something of a known shape, or a telling name, begins."""

from __future__ import annotations

import re
from typing import cast

from agentloom.format.placeholders import START
from agentloom.runtime.redaction_formats import LEAST_KEY, Context, Format, is_open_value
from agentloom.runtime.redaction_found import NAMED, Found, Known
from agentloom.runtime.redaction_plan import Near

__all__ = ["Runs", "is_number", "is_open_url", "seen"]

_TOKEN = re.compile(rb"[A-Za-z0-9_-]*")
_NUMBER = re.compile(rb"[\"\\]{0,4}\s?:\s?-?[0-9]{6}")
_LETTER = re.compile(rb"[A-Za-z\x80-\xff]")
_DOTTED = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_CODE = (b"(", b"[", b".")


class Runs:
    """Runs of letters, digits, ``-`` and ``_``: in a long one nothing can be a key but what begins near its end, in a
    short one nothing at all. Without this each beginning in a long run would be followed as far as a key may go."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._from = 0
        self._end = -1
        self.skip = 0
        """What begins before here, and must end with its run, is no key."""

    def hopeless(self, one: Format | Near, start: int) -> bool:
        """Whether the run from ``start`` on is longer or shorter than ``one`` may be. Places come about in order."""
        if type(one) is not Format or not one.within:
            return False
        if start >= self._end or start < self._from:
            self._from = start
            self._end = cast("re.Match[bytes]", _TOKEN.match(self._data, start)).end()
        size = self._end - start
        if size > one.within:
            self.skip = self._end - one.within
            return True
        return size < LEAST_KEY


def seen(data: bytes, one: Format | Near, start: int) -> Found | None:
    """What is secret where something of a known shape, or a telling name, begins."""
    if type(one) is Format:
        match = one.pattern.match(data, start)
        if match is None:
            return None
        if "value" not in one.pattern.groupindex:
            return Found(*match.span(one.group), Known(one.kind))
        part = "user" if match["value"] is None else "value"
        return None if is_open_url(match[part]) else Found(*match.span(part), Known(one.kind))
    near = cast(Near, one)
    match = near.context.pattern.match(data, start + near.length)
    if match is None or is_open_value(match["value"]) or not _telling(data, start, match, near.context):
        return None
    return Found(*match.span("value"), Known(NAMED))


def is_number(data: bytes, one: Format | Near, start: int) -> bool:
    """Whether after a telling name stands a number: in JSON it is a secret, in a program seldom."""
    return type(one) is Near and _NUMBER.match(data, start + one.length) is not None


def is_open_url(value: bytes) -> bool:
    """Whether the password of an address is none: a mask, a placeholder, a reference to a variable."""
    return (
        value[:1] in (b"$", b"{", b"<", b"*", b"%") or START.encode() in value or set(value) <= set(b"*xX.")
    )


def _telling(data: bytes, start: int, match: re.Match[bytes], context: Context) -> bool:
    """Whether what stands after a telling name is more than a piece of a program or a sentence: quoted, in a
    form, or of letters and digits."""
    value = match["value"]
    if match["quote"]:
        return True
    if context.forms:
        before = data.rfind(b"&", max(0, start - 40), start), data.rfind(b"?", max(0, start - 40), start)
        if data[match.end("value") : match.end("value") + 1] == b"&" or max(before) >= 0:
            return True
        if (
            len(value) < 12
            or data[match.end("value") : match.end("value") + 1] in _CODE
            or _DOTTED.fullmatch(value)
        ):
            return False
    return value.translate(None, b"0123456789") != value and _LETTER.search(value) is not None
