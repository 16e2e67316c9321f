"""A trace taken apart, changed, and put together again with a chain and ids that hold: the work of an attacker."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass, field
from typing import Any

from agentloom.format.digests import NO_PREV, blob_id, entry_digest

_HEX = re.compile(rb"[0-9a-f]{64}")
_BLOB = re.compile(
    rb'\{"blob":"([0-9a-f]{64})","salt":"([0-9a-f]{32})","form":"(json|bytes|nonce)","data":(.+)\}'
)


def _renamed(text: bytes, ids: dict[bytes, bytes]) -> bytes:
    return _HEX.sub(lambda match: ids.get(match[0], match[0]), text)


@dataclass
class Blob:
    """A blob line: the id that others call it by, its salt, form, and the text of its data as on the line."""

    name: str
    salt: bytes
    form: str
    data: bytes

    def covered(self, data: bytes) -> bytes:
        """The bytes that the id covers, for the text ``data``."""
        if self.form == "json":
            return data
        try:
            return base64.b64decode(data.strip(b'"'))
        except ValueError:
            return data


@dataclass
class Draft:
    """The lines of a trace in order: entries as mappings (or raw bytes, written as they are), and blobs."""

    lines: list[dict[str, Any] | Blob | bytes] = field(default_factory=list)

    @classmethod
    def of(cls, data: bytes) -> Draft:
        """Take a sound trace apart."""
        draft = cls()
        for line in data.splitlines():
            match = _BLOB.fullmatch(line)
            if match:
                name, salt, form, text = match.groups()
                draft.lines.append(Blob(name.decode(), bytes.fromhex(salt.decode()), form.decode(), text))
            else:
                draft.lines.append(json.loads(line))
        return draft

    @property
    def blobs(self) -> list[Blob]:
        return [line for line in self.lines if isinstance(line, Blob)]

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if isinstance(line, dict)]

    def add(self, name: int, tree: Any, *, form: str = "json") -> str:
        """Put a blob at the end; the name to call it by (64 hex digits that stand for its id)."""
        called = f"{name:064x}"
        text = json.dumps(tree, separators=(",", ":"), ensure_ascii=False).encode() if form == "json" else (
            b'"' + base64.b64encode(bytes(tree)) + b'"'
        )  # fmt: skip
        self.lines.append(Blob(called, name.to_bytes(16, "big"), form, text))
        return called

    def write(self) -> bytes:
        """The trace with seq, prev, ids and the places of blobs made to hold, as far as that is possible."""
        ids: dict[bytes, bytes] = {}
        blobs = {blob.name.encode(): blob for blob in self.blobs}
        self._name(blobs, ids)
        of_start = self._named_by_start(blobs)
        parts: list[bytes] = []
        group: list[tuple[bool, bytes, bytes]] = []
        head, seq = NO_PREV, 0
        for line in self.lines:
            if isinstance(line, Blob):
                name = ids[line.name.encode()]
                text = _renamed(line.data, ids) if line.form == "json" else line.data
                body = b'{"blob":"%b","salt":"%b","form":"%b","data":%b}\n'
                whole = body % (name, line.salt.hex().encode(), line.form.encode(), text)
                group.append((line.name.encode() not in of_start, name, whole))
                continue
            parts += [whole for _, _, whole in sorted(group)]
            group = []
            if isinstance(line, bytes):
                parts.append(line)
                continue
            entry = {
                name: seq if name == "seq" else head if name == "prev" else value
                for name, value in line.items()
            }
            text = json.dumps(entry, separators=(",", ":"), ensure_ascii=False).encode(
                "utf-8", "surrogatepass"
            )
            text = _renamed(text, ids)
            parts.append(text + b"\n")
            head, seq = entry_digest(text), seq + 1
        return b"".join([*parts, *(whole for _, _, whole in sorted(group))])

    def _named_by_start(self, blobs: dict[bytes, Blob]) -> set[bytes]:
        """Blobs that the start entry reaches: they stand before those of the next entry."""
        found: set[bytes] = set()
        todo = _HEX.findall(json.dumps(self.entries[0]).encode()) if self.entries else []
        while todo:
            name = todo.pop()
            if name in blobs and name not in found:
                found.add(name)
                todo += _HEX.findall(blobs[name].data) if blobs[name].form == "json" else []
        return found

    @staticmethod
    def _name(blobs: dict[bytes, Blob], ids: dict[bytes, bytes]) -> None:
        """Compute ids, those of blobs that are named by others first. What is in a loop keeps the id it had."""
        for start in blobs:
            todo = [(start, False)]
            path: set[bytes] = set()
            while todo:
                name, ready = todo.pop()
                blob = blobs[name]
                if ready:
                    path.discard(name)
                    data = _renamed(blob.data, ids) if blob.form == "json" else blob.data
                    ids.setdefault(name, blob_id(blob.salt, blob.form, blob.covered(data)).encode())
                    continue
                if name in ids:
                    continue
                path.add(name)
                todo.append((name, True))
                if blob.form == "json":
                    for other in _HEX.findall(blob.data):
                        if other in path:
                            ids.setdefault(other, other)
                        elif other in blobs and other not in ids:
                            todo.append((other, False))
