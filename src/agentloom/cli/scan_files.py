"""Secrets in files, line by line: what old traces hold, where, and never the secret itself.

A file is read in pieces of bounded size, whatever its size. A trace is read by its lines: a finding has the
call and the path in its payload. Any other file is looked at as it is.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from agentloom.cli.scan_containers import members_of
from agentloom.format.limits import LINE_BYTES
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_rules import NO_RULES, Rules
from agentloom.runtime.redaction_streams import Joined

__all__ = ["Finding", "scan_path"]

_FIELDS = frozenset("seq prev at kind call name src agent entry key req val err type profile".split())
_EDGE = 8192  # bytes of two pieces that are looked at together
_TRACE = b'{"seq":'
_BLOB = b'{"blob":'
_DAMAGED = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)
"""What a line raises that is no line of a trace, or nested beyond all measure."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A secret in a file: where it is (entry, call and path of a trace, or the byte), and what it is."""

    file: str
    kind: str
    name: str | None = None
    entry: int | None = None
    call: str | None = None
    field: str | None = None
    path: str | None = None
    offset: int | None = None

    def facts(self) -> dict[str, object]:
        """The same for a machine."""
        names = ("file", "kind", "name", "entry", "call", "field", "path", "offset")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(slots=True)
class _Blob:
    found: list[tuple[str, Known]]
    chunks: list[Any] | None = None
    parts: list[str] = field(default_factory=list[str])


def scan_path(path: str, rules: Rules = NO_RULES) -> Iterator[Finding]:
    """The secrets in one file, and in what it folds (zstd, gzip, zip archives). ``OSError`` where it cannot be read,
    ``NotSupported`` where it unfolds to far more than its size."""
    for name, pieces in members_of(path):
        yield from _of_any(name, pieces, rules)


def _of_any(path: str, pieces: Iterator[bytes], rules: Rules) -> Iterator[Finding]:
    first = next(pieces, b"")
    if first.startswith(_TRACE):
        yield from _Trace(path, rules).findings(_lines(first, pieces))
    else:
        yield from _of_bytes(path, first, pieces, rules)


def _lines(first: bytes, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, each of which is at most as long as the format allows; what is longer comes in parts."""
    rest = first
    for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
        yield from whole
        if len(rest) > LINE_BYTES:
            yield rest
            rest = b""
    yield from rest.split(b"\n")


def _of_bytes(path: str, first: bytes, pieces: Iterator[bytes], rules: Rules) -> Iterator[Finding]:
    redactor = Redactor(rules)
    kept, at = b"", 0
    piece = first
    while piece:
        data = kept + piece
        for start, end, known in redactor.found_in(data):
            if end > len(kept):
                yield Finding(path, known.kind, known.name, offset=at - len(kept) + start)
        at += len(piece)
        kept = data[-_EDGE:]
        piece = next(pieces, b"")


class _Trace:
    """One trace. Payloads are attributed to the entry that they stand beside."""

    def __init__(self, path: str, rules: Rules) -> None:
        self._path = path
        self._redactor = Redactor(rules)
        self._held: list[tuple[tuple[object, ...], Known]] = []
        self._redactor.tell(lambda path, known: self._held.append((path, known)))
        self._blobs: dict[str, _Blob] = {}
        self._edges: dict[str, tuple[bytes, bytes]] = {}
        self._start: dict[str, Any] = {}
        self._calls: dict[str, int] = {}
        self._streams: dict[str, Joined] = {}

    def findings(self, lines: Iterable[bytes]) -> Iterator[Finding]:
        for line in lines:
            if line.startswith(_BLOB):
                self._blob(line)
            elif line:
                yield from self._entry(line)
        yield from self._attributed({"kind": "start"} | self._start if len(self._calls) == 0 else {})

    def _blob(self, line: bytes) -> None:
        try:
            self._well_formed(line)
        except _DAMAGED:  # no payload: as any text
            self._blobs[f"line {len(self._blobs)}"] = _Blob(self._looked(line.decode("utf-8", "replace")))

    def _well_formed(self, line: bytes) -> None:
        fields: dict[str, Any] = orjson.loads(line)
        ident, form, data = str(fields["blob"]), fields["form"], fields["data"]
        if form == "nonce":
            return
        if form == "bytes":
            tree: Any = {"$bytes": data}
            plain = base64.b64decode(data)
            self._edges[ident] = (plain[:_EDGE], plain[-_EDGE:])
        else:
            tree = data
        found: list[tuple[str, Known]] = []
        if self._redactor.suspects(line):
            found = self._looked(tree) or self._looked(line.decode("utf-8", "replace"))
        chunks = cast("list[Any]", tree) if isinstance(tree, list) else None  # type: ignore[redundant-cast]
        self._blobs[ident] = _Blob(found, chunks, list(_parts_of(tree)))

    def _looked(self, tree: Any) -> list[tuple[str, Known]]:
        self._held.clear()
        self._redactor.tree(tree)
        return list(dict.fromkeys((_shown(path), known) for path, known in self._held))

    def _entry(self, line: bytes) -> Iterator[Finding]:
        try:
            loaded: object = orjson.loads(line)
        except ValueError:
            loaded = None
        if not isinstance(loaded, dict):
            self._blobs["line"] = _Blob(self._looked(line.decode("utf-8", "replace")))
            yield from self._attributed({"kind": "damaged line"})
            return
        entry = cast("dict[str, Any]", loaded)
        for name, value in entry.items() if self._redactor.suspects(line) else ():
            of_name = [] if name in _FIELDS else self._looked(name)
            for path, known in [*of_name, *self._looked(value)]:
                yield self._finding(entry, "another field" if of_name else name, path, known)
        if entry.get("kind") == "start":
            self._start = entry
            return
        call = entry.get("call")
        if entry.get("kind") == "request" and isinstance(call, str):
            self._calls[call] = len(self._calls) + 1
        if entry.get("kind") == "chunks" and isinstance(call, str):
            yield from self._stream(entry, call)
        elif entry.get("kind") == "outcome":
            self._streams.pop(str(call), None)
        yield from self._attributed(entry)

    def _stream(self, entry: dict[str, Any], call: str) -> Iterator[Finding]:
        """A secret that is split over chunks."""
        blob = self._blobs.get(str(entry.get("val")))
        if blob is None or blob.chunks is None:
            return
        joined = self._streams.setdefault(call, Joined(self._redactor))
        self._held.clear()
        if joined.redacted(blob.chunks, final=True) is not blob.chunks and not blob.found:
            for _, known in self._held:
                yield self._finding(entry, "val", "split over chunks", known)

    def _attributed(self, entry: dict[str, Any]) -> Iterator[Finding]:
        """What was found in the payloads since the last entry. Those of the start entry stand after it."""
        names = {value: name for name, value in entry.items() if isinstance(value, str)}
        starts = {value: name for name, value in self._start.items() if isinstance(value, str)}
        for ident, blob in self._blobs.items():
            of_start = ident in starts and ident not in names
            holder, field_name = (self._start, starts[ident]) if of_start else (entry, names.get(ident))
            for path, known in [*blob.found, *self._across(blob.parts)]:
                yield self._finding(holder, field_name, path, known)
        self._blobs.clear()

    def _across(self, parts: list[str]) -> list[tuple[str, Known]]:
        """What lies across the edge of two parts of a long text."""
        found: list[tuple[str, Known]] = []
        for left, right in itertools.pairwise(parts):
            tail, head = self._edges.get(left, (b"", b""))[1], self._edges.get(right, (b"", b""))[0]
            for start, end, known in self._redactor.found_in(tail + head):
                if start < len(tail) < end:
                    found.append(("across parts", known))
        return found

    def _finding(self, entry: dict[str, Any], name: str | None, path: str, known: Known) -> Finding:
        call = entry.get("call")
        number = self._calls.get(call) if isinstance(call, str) else None
        seq = entry.get("seq")
        return Finding(
            self._path,
            known.kind,
            known.name,
            seq if isinstance(seq, int) else None,
            None if number is None else f"{number} {call}",
            f"{entry.get('kind')}.{name}" if name else str(entry.get("kind")),
            path or None,
        )


def _parts_of(tree: Any) -> Iterator[str]:
    """The ids of the parts of long texts and bytes in a payload, in their order."""
    todo = [tree]
    while todo:
        item = todo.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            for tag in ("$text", "$bytes", "$bytearray"):
                parts = fields.get(tag)
                if len(fields) == 1 and isinstance(parts, list):
                    yield from (str(part["$ref"]) for part in cast("list[dict[str, Any]]", parts))
            todo += [value for value in fields.values() if isinstance(value, (dict, list))]
        elif isinstance(item, list):
            todo += [value for value in cast("list[Any]", item) if isinstance(value, (dict, list))]  # type: ignore[redundant-cast]


def _shown(path: tuple[object, ...]) -> str:
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in path]
    return "".join(parts).removeprefix(".")
