"""What a run says twice: parts of earlier payloads, and JSON text of earlier payloads (docs/trace-format.md, 5.4).

A tool's result comes back in the next prompt as ``json.dumps(result)``; a model's answer comes back with a role put
before it. Both are written as references to where they first stood.
"""

from __future__ import annotations

import json
import json.encoder
from collections.abc import Callable, Iterable
from hashlib import sha256
from itertools import islice
from typing import Any

import orjson

from agentloom.format.canonical import EXACT, Tree, floats
from agentloom.format.limits import APART_BYTES

__all__ = ["CONTENTS", "SHARE_BYTES", "STYLES", "Echoes", "content", "drop_oldest", "json_text", "text_of"]

SHARE_BYTES = 200
"""From this size of its JSON on a part of a payload is remembered; a reference to a part has about 100 bytes."""

CONTENTS = 1 << 17
"""So many contents, and so many parts, are remembered, the newest: some 300 bytes each, whatever the length of a run.
What comes back later than that is written again."""

_CONTAINERS = frozenset((dict, list))
_items: Callable[[Any], Iterable[tuple[Any, Any]]] = dict[Any, Any].items
_numbered: Callable[[Any], Iterable[tuple[Any, Any]]] = enumerate
_LEVELS = 4  # how deep a payload is looked into: choices[0].message.content
STYLES: dict[str, tuple[str, str, bool]] = {
    "spaced-ascii": (", ", ": ", True),
    "spaced": (", ", ": ", False),
    "compact-ascii": (",", ":", True),
    "compact": (",", ":", False),
}
"""Style of JSON text -> what separates items, what separates key and value, whether other than ASCII is escaped."""


def _writer(between: str, after_key: str, ascii_only: bool) -> Callable[[Tree], str]:
    """A function that writes a tree as ``json.dumps`` does."""
    encoder = json.JSONEncoder(ensure_ascii=ascii_only, separators=(between, after_key), check_circular=False)
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    escape: Any = getattr(json.encoder, "encode_basestring_ascii" if ascii_only else "encode_basestring")
    if make is None:
        return encoder.encode
    # What the encoder makes for each text that it writes, made once.
    write = make(None, encoder.default, escape, None, after_key, between, False, False, True)
    return lambda tree: "".join(write(tree, 0))


_identity: Callable[[object], int] = object.__hash__
"""Tells objects apart as ``id`` does, without telling audit hooks, of which a process that has replayed has one."""

_WRITERS = {style: _writer(*how) for style, how in STYLES.items()}


def text_of(tree: Tree) -> bytes:
    """The JSON of a tree that is known to be one."""
    return orjson.dumps(tree, option=EXACT)


def content(form: bytes, data: bytes) -> bytes:
    """What stands for a content while a run is written."""
    return sha256(form + data).digest()


def json_text(tree: Tree, style: str) -> str:
    """The JSON text of ``tree`` in a style. ``KeyError`` for an unknown one."""
    return _WRITERS[style](tree)


def _may_hold_floats(data: bytes) -> bool:
    """Whether the JSON of a tree has what each of its floats is written with: a point, or a signed exponent."""
    return b"." in data or b"e+" in data or b"e-" in data


def drop_oldest(held: dict[bytes, Any]) -> None:
    """Where more than ``CONTENTS`` are held a quarter of them goes, so that it is seldom done."""
    if len(held) <= CONTENTS:
        return
    for known in list(islice(held, len(held) // 4)):
        del held[known]


class Echoes:
    """Where the contents of a run first stood: whole payloads, and parts of payloads."""

    def __init__(self) -> None:
        self.whole: dict[bytes, str] = {}  # content -> blob id
        self.parts: dict[bytes, tuple[str | int, ...]] = {}  # content -> id of the payload, key, ...
        self._seen: dict[
            int, tuple[bytes, bytes]
        ] = {}  # identity -> JSON and content of a part of the current payload

    def identify(self, item: Tree) -> tuple[bytes, bytes]:
        """The JSON of a part of the current payload, and its content."""
        at = _identity(item)
        found = self._seen.get(at)
        if found is None:
            text = orjson.dumps(item, option=EXACT)
            found = self._seen[at] = (text, sha256(b"json" + text).digest())
        return found

    def identified(self, item: Tree, text: bytes, known: bytes) -> None:
        """What ``identify`` shall say of ``item``: it was found out already."""
        self._seen[_identity(item)] = (text, known)

    def done(self) -> None:
        """The current payload is written: its parts may go, and others may come where they were."""
        self._seen.clear()
        if len(self.whole) > CONTENTS:
            drop_oldest(self.whole)
        if len(self.parts) > CONTENTS:
            drop_oldest(self.parts)

    def forget(self, blobs: set[str]) -> None:
        """Blobs that will not be written after all."""
        self.whole = {known: blob for known, blob in self.whole.items() if blob not in blobs}

    def find(self, known: bytes) -> Tree:
        """A reference to where that content stands, or None."""
        blob = self.whole.get(known)
        if blob is not None:
            return {"$ref": blob}
        part = self.parts.get(known)
        return None if part is None else {"$part": [{"$ref": part[0]}, *part[1:]]}

    def find_text(self, text: str) -> Tree:
        """A reference to the value of which ``text`` is the JSON, or None."""
        if text[:1] not in "{[":
            return None
        try:
            tree: Tree = orjson.loads(text)
        except ValueError:
            return None
        data = orjson.dumps(tree, option=EXACT)
        source = self.find(sha256(b"json" + data).digest())
        if source is None or (_may_hold_floats(data) and any(True for _ in floats(tree))):
            return None
        for style, write in _WRITERS.items():
            if write(tree) == text:
                return {"$json": [source, style]}
        return None

    def learn(self, blob: str, tree: Tree) -> None:
        """Remember the parts of a payload that are worth a reference."""
        if type(tree) in _CONTAINERS:
            self._learn((blob,), tree, _LEVELS)

    def _learn(self, place: tuple[str | int, ...], tree: Any, levels: int) -> None:
        items: Iterable[tuple[Any, Any]] = _items(tree) if type(tree) is dict else _numbered(tree)
        for key, item in items:
            if type(item) is str:
                if SHARE_BYTES <= len(item) < APART_BYTES:
                    self.parts.setdefault(self.identify(item)[1], (*place, key))
            elif type(item) in _CONTAINERS:
                text, known = self.identify(item)
                if len(text) < SHARE_BYTES:
                    continue
                if len(text) < APART_BYTES:
                    self.parts.setdefault(known, (*place, key))
                if levels:
                    self._learn((*place, key), item, levels - 1)
