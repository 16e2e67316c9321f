"""Five shapes of secret, made up afresh from a seed, and a search of a whole store for what must not be in it."""

from __future__ import annotations

import base64
import binascii
import contextlib
import gzip
import random
import re
import string
import urllib.parse
import zlib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["SHAPES", "holds", "make", "unfolded"]

_ALNUM = string.ascii_letters + string.digits
SHAPES = ("openai", "aws", "jwt", "url", "pem")


def make(shape: str, rng: random.Random) -> str:
    """A secret of that shape. Made at run time: it is in no source."""

    def some(count: int, letters: str = _ALNUM) -> str:
        return "".join(rng.choice(letters) for _ in range(count))

    if shape == "openai":
        return "sk-" + "proj-" + some(44)
    if shape == "aws":
        return "AK" + "IA" + some(16, string.ascii_uppercase + "234567")
    if shape == "jwt":
        head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
        body = base64.urlsafe_b64encode(f'{{"sub":"{some(8)}","n":{rng.randrange(10**9)}}}'.encode()).decode()
        return f"{head}.{body.rstrip('=')}.{some(43)}"
    if shape == "url":
        # With a digit: a word alone is not looked for in other codings (docs/secrets.md).
        return f"postgres://app:{some(13)}7@db.example.com:5432/main"
    body = "\n".join(some(64, _ALNUM + "+/") for _ in range(3))
    return f"-----BEGIN {'RSA '}PRIVATE KEY-----\n{body}\n{some(22)}==\n-----END RSA PRIVATE KEY-----"


def core(shape: str, secret: str) -> str:
    """What of it must be nowhere: all of it, of an address the password, of a key block a line of it."""
    if shape == "url":
        return secret.split(":")[2].split("@", maxsplit=1)[0]
    return secret.split("\n")[2] if shape == "pem" else secret


_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){8,}")


def unfolded(data: bytes, depth: int = 3) -> Iterator[bytes]:
    """``data`` and what it holds in gzip, zstd frames, base64, percent encoding, hexadecimal, JSON escapes."""
    yield data
    if not depth:
        return
    for unfold in (gzip.decompress, zlib.decompress):
        if data[:2] in (b"\x1f\x8b", b"\x78\x9c", b"\x78\xda"):
            with contextlib.suppress(OSError, EOFError, zlib.error):
                yield from unfolded(unfold(data), depth - 1)
    if b"%" in data:
        yield from unfolded(urllib.parse.unquote_to_bytes(data), depth - 1)
    if b"\\" in data:
        plain = re.sub(rb"\\u00([0-7][0-9a-fA-F])", lambda found: bytes.fromhex(found[1].decode()), data)
        for escape, char in ((b"\\n", b"\n"), (b'\\"', b'"'), (b"\\/", b"/"), (b"\\\\", b"\\")):
            plain = plain.replace(escape, char)
        if plain != data:
            yield from unfolded(plain, depth - 1)
    if b"\x00" in data:
        yield data.replace(b"\x00", b"")
    for match in _BASE64.finditer(data):
        text = match[0].rstrip(b"=").replace(b"-", b"+").replace(b"_", b"/")
        for offset in range(4):
            part = text[offset:]
            part = part[: len(part) - 1] if len(part) % 4 == 1 else part
            with contextlib.suppress(ValueError, binascii.Error):
                yield from unfolded(base64.b64decode(part + b"=" * (-len(part) % 4)), min(depth - 1, 1))
    for match in _HEX.finditer(data):
        for offset in (0, 1):
            digits = match[0][offset:]
            yield from unfolded(bytes.fromhex(digits[: len(digits) // 2 * 2].decode()), min(depth - 1, 1))


def holds(folder: Path, secret: str) -> list[str]:
    """The files of a store in which ``secret`` is, after everything that can be decoded in them was decoded."""
    wanted = secret.encode()
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(wanted in data for data in unfolded(path.read_bytes()))
    ]
