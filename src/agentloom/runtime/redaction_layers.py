"""Ways in which text hides in text: escapes, percent encoding, NULs of UTF-16, base64, hexadecimal, gzip.

A *local* coding gives each character a place of its own: what is found in the decoded text is replaced in the
coded one. A *block* coding is decoded, redacted and coded again, so that redacting and coding may change
places: a replay that codes a placeholder makes what was recorded.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

__all__ = [
    "UNFOLDED",
    "Local",
    "TooMuch",
    "base64_blocks",
    "gunzip",
    "hex_blocks",
    "is_folded",
    "local_layers",
    "recode_gzip",
    "unescaped",
]

UNFOLDED = 64 << 20
"""Bytes that folded data in one payload may unfold to and is still looked into."""


@dataclass(slots=True)
class Local:
    """A decoded text: its stretches begin at ``plain`` in ``data`` and at ``coded`` in the coded text, by turns as
    it is written and an escape. ``code``: how a replacement is written in the coded text."""

    data: bytes
    plain: list[int]
    coded: list[int]
    code: Callable[[bytes], bytes]
    single: bool = False
    """Each byte of ``data`` is one in the coded text, whatever stands between."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of ``data`` is in the coded text."""
        return self._place(start), self._place(end - 1) + 1 if self.single else self._place(end)

    def _place(self, index: int) -> int:
        if self.single:
            return self.coded[index]
        stretch = bisect_right(self.plain, index) - 1
        return self.coded[stretch] + (0 if stretch % 2 else index - self.plain[stretch])


_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_SHORT = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"0": b"\x00"}
_PERCENT = re.compile(rb"%([0-9a-fA-F]{2})")
_SAFE = re.compile(rb"[^A-Za-z0-9_.~-]")


def local_layers(data: bytes, *, wide: bool = True) -> Iterator[Local]:
    """The local codings that ``data`` may be in, each decoded; UTF-16 where ``wide``."""
    if b"\\" in data:
        yield _decoded(data, _ESCAPE, _unescaped, _same)
    if b"%" in data and (found := _decoded(data, _PERCENT, _unquoted, _quoted)).data != data:
        yield found
    if wide and b"\x00" in data:
        yield _without_nuls(data)


def _decoded(
    data: bytes,
    pattern: re.Pattern[bytes],
    plain: Callable[[re.Match[bytes]], bytes],
    code: Callable[[bytes], bytes],
) -> Local:
    parts: list[bytes] = []
    plain_at: list[int] = [0]
    coded_at: list[int] = [0]
    at = size = 0
    for match in pattern.finditer(data):
        begin, end = match.span()
        found = plain(match)
        parts += (data[at:begin], found)
        size += begin - at
        plain_at += (size, size + len(found))
        coded_at += (begin, end)
        size += len(found)
        at = end
    parts.append(data[at:])
    return Local(b"".join(parts), plain_at, coded_at, code)


def unescaped(data: bytes) -> bytes:
    """``data`` without its escapes."""
    return _ESCAPE.sub(_unescaped, data)


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1] or match[2]
    if code is None:
        return _SHORT.get(match[3], match[3])
    return chr(int(code, 16)).encode("utf-8", "surrogatepass")


def _unquoted(match: re.Match[bytes]) -> bytes:
    return bytes.fromhex(match[1].decode())


def _same(data: bytes) -> bytes:
    return data


def _quoted(data: bytes) -> bytes:
    return _SAFE.sub(lambda match: b"%%%02X" % match[0][0], data)


def _without_nuls(data: bytes) -> Local:
    """ASCII text in UTF-16: every other byte is NUL."""
    kept = [index for index, byte in enumerate(data) if byte]
    return Local(data.replace(b"\x00", b""), [], [*kept, len(data)], _wide, True)


def _wide(data: bytes) -> bytes:
    return b"\x00".join(data[index : index + 1] for index in range(len(data)))


# -- blocks -----------------------------------------------------------------------------------------------------------

_RUN64 = re.compile(rb"[A-Za-z0-9+/_-]{12,}={0,2}")
_RUN16 = re.compile(rb"(?:[0-9a-fA-F]{2}){8,}")
Change = Callable[[bytes], bytes]


def base64_blocks(
    data: bytes, aligned: dict[int, int], change: Change, *, every: bool = True
) -> Iterator[tuple[int, int, bytes]]:
    """The runs of base64 in which ``change`` changes something: start, end, and what stands there then.

    ``aligned``: places at which something is known to begin ``aligned[place]`` characters after a multiple of four.
    Without ``every`` only the runs with such a place are decoded.
    """
    places = sorted(aligned)
    for match in _RUN64.finditer(data):
        start, end = match.span()
        here = places[bisect_left(places, start) : bisect_left(places, end)]
        if not here and not every:
            continue
        offsets = {0, *((place - aligned[place] - start) % 4 for place in here)}
        for offset in sorted(offsets):
            found = _changed64(data[start + offset : end], change)
            if found is not None:
                yield start + offset, end, found
                break


def _changed64(run: bytes, change: Change) -> bytes | None:
    text = run.rstrip(b"=")
    url = b"-" in text or b"_" in text
    if url and (b"+" in text or b"/" in text):
        return None
    if len(text) % 4 == 1:
        text = text[:-1]  # something else begins there
    altchars = b"-_" if url else None
    padded = text + b"=" * (-len(text) % 4)
    try:
        plain = base64.b64decode(padded, altchars)
    except (ValueError, binascii.Error):
        return None
    changed = change(plain)
    if changed == plain:
        return None
    coded = base64.b64encode(changed, altchars)
    bare = len(text) % 4 != 0 and not run.endswith(b"=")
    return coded.rstrip(b"=") if bare else coded


def hex_blocks(
    data: bytes, change: Change, places: Sequence[int] = (), *, every: bool = True
) -> Iterator[tuple[int, int, bytes]]:
    """As ``base64_blocks``, of hexadecimal digits. ``places``: in order."""
    for match in _RUN16.finditer(data):
        if not every and bisect_left(places, match.start()) == bisect_left(places, match.end()):
            continue
        run = match[0]
        for offset in (0, 1):
            digits = run[offset:]
            digits = digits[: len(digits) // 2 * 2]
            plain = bytes.fromhex(digits.decode())
            changed = change(plain)
            if changed != plain:
                text = changed.hex().encode()
                upper = run.upper() == run and run.lower() != run
                yield (
                    match.start() + offset,
                    match.start() + offset + len(digits),
                    text.upper() if upper else text,
                )
                break


class TooMuch(Exception):
    """Folded data unfolds to more than is looked into."""


def is_folded(data: bytes) -> bool:
    """Whether data begins like a gzip or zlib member."""
    return data[:2] in (b"\x1f\x8b", b"\x78\x01", b"\x78\x9c", b"\x78\xda")


def gunzip(data: bytes, most: int = UNFOLDED) -> bytes | None:
    """What a gzip or zlib member unfolds to, with what follows it; None for other data. ``TooMuch`` for more than
    ``most`` bytes."""
    found = _member(data, most)
    return None if found is None else b"".join(found)


def _member(data: bytes, most: int) -> tuple[bytes, bytes] | None:
    """What a member unfolds to, and what follows it."""
    if not is_folded(data):
        return None
    unfolding = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        plain = unfolding.decompress(data, most + 1)
    except zlib.error:
        return None
    if len(plain) > most:
        raise TooMuch
    return (plain, unfolding.unused_data) if plain else None


def recode_gzip(data: bytes, change: Change, most: int = UNFOLDED) -> bytes:
    """``data``, a gzip or zlib member, with its content changed, and what follows it; the very same where nothing
    changes. ``TooMuch`` where it unfolds to more than ``most`` bytes: nothing of it is ever cut off."""
    found = _member(data, most)
    if found is None:
        return data
    plain, rest = found
    changed = change(plain)
    kept = change(rest) if rest else rest  # further members, or anything
    if changed == plain and kept == rest:
        return data
    if changed == plain:
        return data[: len(data) - len(rest)] + kept
    folded = gzip.compress(changed, mtime=0) if data[:2] == b"\x1f\x8b" else zlib.compress(changed)
    return folded + kept
