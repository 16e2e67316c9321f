"""What a first look at a payload decodes: stretches behind a place where a coded secret may begin, each of bounded
length, none twice, and no more in all than ``Work`` allows.

Beginnings of four characters stand in random bytes by chance. What decides is the decoded stretch.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from agentloom.runtime.redaction_layers import UNFOLDED, TooMuch, gunzip, unescaped

__all__ = ["Stretches", "Work"]

WINDOW = 65_536
"""Bytes that are decoded from a place on."""
REACH = 32_768
"""Bytes that a secret takes in base64 at most: the longest pattern is one of 20 000 bytes."""
BEFORE = 16_384
"""Bytes before an escape in which the secret that it is part of may begin."""

_RATIO = 16
_FREE = 4 << 20
_HEAD = 4096  # characters of base64 in which a gzip member must prove to be one

_RUN64 = re.compile(rb"[A-Za-z0-9+/_-]*")
_RUN16 = re.compile(rb"[0-9a-fA-F]*")
_URL = bytes.maketrans(b"-_", b"+/")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_ALPHABET = frozenset(_LETTERS)
_LEADS = frozenset(b"nrtbf")  # letters of escapes before which stands a backslash


class Work:
    """How many bytes may still be decoded for a payload of ``size`` bytes: 16 times as many, and 4 MiB; and unfolded of
    gzip: 64 MiB."""

    def __init__(self, size: int) -> None:
        self.left = _FREE + _RATIO * size
        self.folded = UNFOLDED

    def take(self, size: int) -> bool:
        """Whether so many more may be."""
        self.left -= size
        return self.left >= 0


@dataclass(slots=True)
class Stretches:
    """The stretches of one text that may hold something coded. ``suspects`` looks at each, decoded."""

    data: bytes
    suspects: Callable[[bytes], bool]
    _done: dict[object, int] = field(default_factory=dict[object, int])
    """Of each coding, and of each of its phases: up to where what begins was looked at."""

    def base64(self, start: int, more: int) -> bool:
        """From a place that is ``more`` characters after a multiple of four."""
        begin = start - more
        if more and (begin < 0 or self.data[begin:start].translate(None, _LETTERS)):
            begin += 4
        if self._is_done(("base64", begin % 4), start):
            return False
        run = _RUN64.match(self.data, begin, begin + WINDOW)
        if run is None or run.end() <= start:
            return False
        self._now_done(("base64", begin % 4), begin, run.end())
        return self.suspects(_decoded(run[0]))

    def hexadecimal(self, start: int) -> bool:
        """Digits from a place on."""
        if self._is_done(("hex", start % 2), start):
            return False
        run = _RUN16.match(self.data, start, start + WINDOW)
        if run is None:
            return False
        self._now_done(("hex", start % 2), start, run.end())
        return self.suspects(bytes.fromhex(run[0][: len(run[0]) // 2 * 2].decode()))

    def wide(self, start: int) -> bool:
        """Text in UTF-16."""
        if self._is_done("wide", start):
            return False
        end = min(len(self.data), start + WINDOW)
        self._now_done("wide", start, end)
        return self.suspects(self.data[start:end].replace(b"\x00", b""))

    def escapes(self, start: int) -> bool:
        """Around an escape of a character that needs none."""
        if self._is_done("escapes", start):
            return False
        end = min(len(self.data), start + WINDOW)
        self._now_done("escapes", start, end)
        return self.suspects(unescaped(self.data[max(0, start - BEFORE) : end]))

    def zipped(self, start: int) -> bool:
        """A gzip or zlib member in base64, which must be at the beginning of its run."""
        data = self.data
        before = data[start - 1] if start else 0
        if before in _ALPHABET and not (before in _LEADS and data[start - 2 : start - 1] == b"\\"):
            return False
        head = _RUN64.match(data, start, start + _HEAD)
        if head is None or not _unfolds(_decoded(head[0])):
            return False
        run = _RUN64.match(data, start)
        try:
            folded = None if run is None else gunzip(_decoded(run[0]))
        except TooMuch:
            return True
        return folded is not None and self.suspects(folded)

    def _is_done(self, coding: object, start: int) -> bool:
        return start + REACH <= self._done.get(coding, 0)

    def _now_done(self, coding: object, start: int, end: int) -> None:
        whole = end < start + WINDOW  # it ends there, and so does what begins in it
        self._done[coding] = end + REACH if whole else end


def _decoded(run: bytes) -> bytes:
    text = run.translate(_URL)
    if len(text) % 4 == 1:
        text = text[:-1]
    return base64.b64decode(text + b"=" * (-len(text) % 4))


def _unfolds(head: bytes) -> bool:
    """Whether deflated data begins like that. Of random bytes few do that long."""
    try:
        return bool(zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(head, 1))
    except zlib.error:
        return False
