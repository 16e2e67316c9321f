"""Whether a value comes from a placeholder: code sliced, measured or hashed what was a secret when recorded."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from agentloom.format.placeholders import placeholder
from agentloom.format.unkept import unkept
from agentloom.format.values import Tree

if TYPE_CHECKING:
    from agentloom.replay.fields import Difference
    from agentloom.runtime.redaction_secrets import Secret

__all__ = ["derivation", "of_unkept"]

_LEAST = 4  # characters of a piece of a placeholder that tell
_DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s")


def derivation(items: Sequence[Difference], secrets: Mapping[int, Secret]) -> str | None:
    """How the first value that differs comes from a placeholder, in words: ``its first 8 characters``; None
    where it does not, as far as can be told."""
    for item in items:
        for text in _texts(item.now):
            for number in sorted(secrets):
                how = _how(text, placeholder(number))
                if how is not None:
                    secret = secrets[number]
                    return f"{placeholder(number)} ({secret.name or secret.kind}): {how}"
        if type(item.now) is int and type(item.recorded) is int:
            for number, secret in sorted(secrets.items()):
                if item.now == len(placeholder(number)):
                    return f"{placeholder(number)} ({secret.name or secret.kind}): its length"
    return None


def of_unkept(items: Sequence[Difference], names: Sequence[str]) -> str | None:
    """Which of ``names``, that the trace does not hold, the first value comes of that differs; None where it does not,
    as far as can be told."""
    for item in items:
        for name in names:
            mark = unkept(name)
            if type(item.now) is int and item.now == len(mark):
                return name
            if any(mark.lower() in text.lower() or _digest(text, mark.encode()) for text in _texts(item.now)):
                return name
    return None


def _texts(tree: Tree) -> Iterator[str]:
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, list):
        for item in tree[:50]:
            yield from _texts(item)
    elif isinstance(tree, dict):
        for item in list(tree.values())[:50]:
            yield from _texts(item)


def _how(text: str, mark: str) -> str | None:
    digest = _digest(text, mark.encode())
    if digest is not None:
        return digest
    if mark in text:
        return None  # it was passed on as it is
    for changed, what in ((mark.upper(), "in upper case"), (mark[::-1], "reversed")):
        if changed in text:
            return what
    for length in range(len(mark) - 1, _LEAST - 1, -1):
        if mark[:length] in text:
            return f"its first {length} characters"
        if mark[-length:] in text:
            return f"its last {length} characters"
    for start in range(1, len(mark) - _LEAST):
        for end in range(len(mark) - 1, start + _LEAST, -1):
            if mark[start:end] in text and mark[start:end].strip("_"):
                return f"its characters {start + 1} to {end}"
    return None


def _digest(text: str, data: bytes) -> str | None:
    """Which digest of ``data`` is in ``text``, in words."""
    for name in _DIGESTS:
        digest = hashlib.new(name, data, usedforsecurity=False)
        if digest.hexdigest() in text or base64.b64encode(digest.digest()).decode() in text:
            return f"its {name.upper()}"
    if f"{zlib.crc32(data):08x}" in text or str(zlib.crc32(data)) in text:
        return "its CRC-32"
    return None
