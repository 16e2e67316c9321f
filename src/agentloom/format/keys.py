"""Request keys for one run. The key of a history costs what was added to it: the hash so far is kept and copied.

What a key is says ``request_key`` (docs/trace-format.md, Keys): an HMAC over the canonical text of the request. Here
the same text is fed in pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from agentloom.format.canonical import Tree, canonical
from agentloom.format.captures import Grown
from agentloom.format.digests import KEY, Hash

__all__ = ["Keys"]

_NAMES = 1000  # tails that are kept
_BLOCK = 64  # bytes of a block of SHA-256, to which HMAC fills up its secret
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))


class Keys:
    """Makes the keys of a run under its ``nonce`` (32 bytes)."""

    def __init__(self, nonce: bytes) -> None:
        secret = nonce.ljust(_BLOCK, b"\x00")
        self._texts: dict[str, bytes] = {}
        self._heads: dict[str, bytes] = {}  # of each profile
        self._tails: dict[tuple[str, str], bytes] = {}  # of each kind and name
        self._inner = hashlib.sha256(secret.translate(_INNER))
        self._outer = hashlib.sha256(secret.translate(_OUTER))

    def key(
        self, profile: str, kind: str, name: str, fields: dict[str, Tree], grown: Mapping[str, Grown]
    ) -> str:
        """``request_key`` of ``{"type": kind, "name": name, "fields": fields}``; ``grown`` are those of its fields
        that are histories. ``NotSupported``: see ``Grown.check``."""
        hashed: Hash = self._inner.copy()
        try:
            literal, tail = self._heads[profile], self._tails[kind, name]
        except KeyError:
            literal, tail = self._around(profile, kind, name)
        if not grown or grown.keys().isdisjoint(fields):
            hashed.update(literal + canonical(fields)[1:-1] + tail)
            return self._sealed(hashed)
        before: tuple[object, ...] = ()
        some: dict[str, Tree] = {}  # fields since the last history
        comma = b""
        for field in sorted(fields):
            history = grown.get(field)
            if history is None:
                some[field] = fields[field]
                continue
            text, comma = _among(some, comma) if some else (b"", comma)
            before = (*before, b"%b%b%b%b:[" % (literal, text, comma, self._text(field)))
            hashed = _after(history, before, hashed)
            before = (*before, history)
            literal, comma, some = b"]", b",", {}
        rest = _among(some, comma)[0] if some else b""
        hashed.update(literal + rest + tail)
        return self._sealed(hashed)

    def _around(self, profile: str, kind: str, name: str) -> tuple[bytes, bytes]:
        """What stands before and after the fields."""
        literal = self._heads[profile] = b'%b%b\x00{"fields":{' % (KEY, profile.encode())
        if len(self._tails) >= _NAMES:
            self._tails.clear()
        tail = self._tails[kind, name] = b'},"name":%b,"type":%b}' % (canonical(name), canonical(kind))
        return literal, tail

    def _text(self, name: str) -> bytes:
        text = self._texts.get(name)
        if text is None:
            text = self._texts[name] = canonical(name)
        return text

    def _sealed(self, hashed: Hash) -> str:
        outer = self._outer.copy()
        outer.update(hashed.digest())
        return outer.hexdigest()[:32]


def _among(some: dict[str, Tree], comma: bytes) -> tuple[bytes, bytes]:
    """The text of some fields after ``comma``, and what goes before a field that follows them."""
    return comma + canonical(some)[1:-1], b","


def _after(history: Grown, before: tuple[object, ...], hashed: Hash) -> Hash:
    """The hash after the items of ``history``, of which ``hashed`` has taken all of ``before`` but its last text."""
    base = history.base
    if history.state is not None and history.before == before:
        return history.state.copy()
    if base is not None and base.state is not None and base.before == before:
        hashed = base.state.copy()
        hashed.update(b"," + canonical(history.items[history.keep :])[1:-1])
    else:
        history.check()  # they are read again here
        text = before[-1]
        if type(text) is bytes:
            hashed.update(text)
        hashed.update(canonical(history.items)[1:-1])
    history.before, history.state = before, hashed
    return hashed.copy()
