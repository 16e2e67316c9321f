"""Every digest of the format, each under a prefix of its own (docs/trace-format.md, Digests).

The prefixes keep a digest of one purpose from ever being read as one of another purpose.
"""

from __future__ import annotations

import hashlib
import hmac
from hashlib import sha256
from typing import Protocol, Self

from agentloom.format.canonical import Tree, canonical

__all__ = [
    "BLOB",
    "ENTRY",
    "KEY",
    "LEAF",
    "NODE",
    "NONCE_BYTES",
    "NO_PREV",
    "SALT_BYTES",
    "Hash",
    "blob_id",
    "entry_digest",
    "request_key",
]

ENTRY = b"agentloom/v1/entry\x00"
BLOB = b"agentloom/v1/blob\x00"
KEY = b"agentloom/v1/key/1\x00"
LEAF = b"agentloom/v1/leaf\x00"
NODE = b"agentloom/v1/node\x00"

SALT_BYTES = 16
_FORMS = {"json": b"json\x00"}
NONCE_BYTES = 32
NO_PREV = "0" * 64


class Hash(Protocol):
    """A hash under way, as hashlib makes them."""

    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...
    def copy(self) -> Self: ...


def entry_digest(line: bytes) -> str:
    """Digest of an entry: over the exact bytes of its line without the newline. 64 hex digits."""
    return hashlib.sha256(ENTRY + line).hexdigest()


def blob_id(salt: bytes, form: str, data: bytes) -> str:
    """Id of a blob: 16 bytes of salt, the form's name, a zero byte, and the data. 64 hex digits.

    ``data`` is the JSON text as written for the form ``json``, the decoded bytes for the others.
    """
    head = _FORMS.get(form) or b"%b\x00" % form.encode()
    return sha256(b"".join((BLOB, salt, head, data))).hexdigest()


def request_key(nonce: bytes, profile: str, tree: Tree) -> str:
    """Key of a request: HMAC-SHA256 under the run's nonce, first 16 bytes, 32 hex digits.

    ``tree`` holds the load-bearing fields alone, already redacted. Without the nonce (it is erased together with any
    payload) a key confirms no guess of the request.
    """
    message = b"%b%b\x00%b" % (KEY, profile.encode(), canonical(tree))
    return hmac.digest(nonce, message, "sha256")[:16].hex()
