"""How a known value may stand in a text: as it is, and as programs write it for JSON, addresses, pages, shells, tables.

A *spelling* is looked for by its beginning and compared where that stands, so that what is looked for stays short
however long the value is. Codings of bytes (base64, hexadecimal, UTF-16 of ASCII) are looked for by beginnings alone:
what stands there is decoded.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote, quote_plus

from agentloom.runtime.redaction_found import Known

__all__ = ["HEAD", "Spelling", "Spellings", "cores", "foreign_letters", "spelt"]

HEAD = 64
"""Bytes of a spelling that are looked for."""

_IN_JSON = 6
"""Texts of JSON in each other, the payload among them, in which a value is known."""
_OTHERS_IN_JSON = 3
"""The same of other spellings."""
_IN_ADDRESSES = 3
_KEY = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9_-]{16,}")
"""What may be written in letters of another case and still be told from a word."""
_PERCENT = re.compile(r"%[0-9A-F]{2}")


def _as_it_is(data: bytes) -> bytes:
    return data


def _two_bytes(order: str) -> Callable[[bytes], bytes]:
    return lambda data: data.decode("utf-8", "surrogateescape").encode(order, "surrogatepass")


@dataclass(frozen=True, slots=True)
class Spelling:
    """One way to write ``value``: ``text``. ``write``: how its placeholder is written there."""

    text: bytes
    value: bytes
    known: Known
    write: Callable[[bytes], bytes] = _as_it_is


@dataclass(frozen=True, slots=True)
class Spellings:
    """The spellings that begin alike, the longest first."""

    all: Sequence[Spelling]

    def at(self, data: bytes, start: int) -> Spelling | None:
        """The one that stands at a place."""
        for one in self.all:
            if data.startswith(one.text, start):
                return one
        return None


def spelt(value: bytes, known: Known) -> Iterator[Spelling]:
    """The spellings of a value, itself first; some twice."""
    text = value.decode("utf-8", "surrogateescape")
    yield Spelling(value, value, known)
    for form in _texts(text):
        yield Spelling(form.encode("utf-8", "surrogateescape"), value, known)
    if _KEY.fullmatch(text):
        yield Spelling(value.lower(), value, known)
        yield Spelling(value.upper(), value, known, bytes.upper)
    if not text.isascii():
        for order in ("utf-16-le", "utf-16-be"):
            write = _two_bytes(order)
            yield Spelling(write(value), value, known, write)


def _texts(text: str) -> Iterator[str]:
    yield from _in_json([text], _IN_JSON)
    yield from _in_json(_quoted(text), _OTHERS_IN_JSON)
    yield from _in_addresses(text)


def _in_json(forms: Iterable[str], most: int) -> Iterator[str]:
    """Forms, and what they are within up to so many texts of JSON; each may escape letters beyond ASCII, or not."""
    level = dict.fromkeys(forms)
    yield from level
    for _ in range(most):
        level = {
            json.dumps(form, ensure_ascii=escaped)[1:-1]: None for form in level for escaped in (False, True)
        }
        yield from level


def _in_addresses(text: str) -> Iterator[str]:
    level = {
        quote(text, safe="", errors="surrogateescape"),
        quote(text, errors="surrogateescape"),
        quote_plus(text, errors="surrogateescape"),
        quote(text, safe="!'()*", errors="surrogateescape"),  # as browsers do
    }
    level |= {_PERCENT.sub(lambda found: found[0].lower(), form) for form in level}
    for _ in range(_IN_ADDRESSES):
        yield from sorted(level)
        level = {quote(form, safe="") for form in level}


def _quoted(text: str) -> Iterator[str]:
    """As the standard library, template engines and databases escape it. What is put around it counts to it where it
    tells one way of quoting from the others: a placeholder needs no quotes."""
    yield repr(text)[1:-1]
    yield ascii(text)[1:-1]
    yield repr(text.encode("utf-8", "surrogateescape"))[2:-1]
    pages = {
        html.escape(text),
        html.escape(text, quote=False),
        html.escape(text, quote=False).replace('"', "&quot;"),
        html.escape(text, quote=False).replace('"', "&#34;").replace("'", "&#39;"),
        html.escape(text).replace("&#x27;", "&#39;"),
        html.escape(text).replace("&#x27;", "&apos;"),  # XML
    }
    yield from sorted(pages)
    if not text.isascii():
        yield from sorted(form.encode("ascii", "xmlcharrefreplace").decode() for form in pages)
    if "'" in text:
        for inner in ("'\"'\"'", "'\\''"):  # ``shlex.quote``, and as people do
            yield "'" + text.replace("'", inner) + "'"
        yield text.replace("'", "''")  # SQL, YAML
    if '"' in text:
        yield '"' + text.replace('"', '""') + '"'  # tables
    yield _in_mail(text)


def _in_mail(text: str) -> str:
    """Quoted-printable (RFC 2045), without line breaks."""
    return "".join(
        chr(byte) if 32 <= byte < 127 and byte != 61 else f"={byte:02X}"
        for byte in text.encode("utf-8", "surrogateescape")
    )


def foreign_letters(value: bytes) -> Iterator[bytes]:
    """What stands in every text in which letters of a value are escaped, however deep: the number of the first one."""
    for letter in value.decode("utf-8", "surrogateescape"):
        if not letter.isascii():
            digits = json.dumps(letter)[3:7].encode()
            yield b"u" + digits
            yield b"u" + digits.upper()
            return


def cores(value: bytes, *, least: int = 8) -> list[tuple[bytes, int]]:
    """The base64 of ``value`` wherever it may begin in a block, without the characters that its neighbours share, in
    both alphabets; and after how many characters of a block each begins."""
    found: list[tuple[bytes, int]] = []
    for before in range(3):
        coded = base64.b64encode(b"\x00" * before + value)
        skip = (0, 2, 3)[before]
        over = (before + len(value)) % 3
        core = coded[skip : len(coded) - ((0, 3, 2)[over] if over else 0)]
        if len(core) >= least:
            found += [(one, skip % 4) for one in {core, core.replace(b"+", b"-").replace(b"/", b"_")}]
    return found
