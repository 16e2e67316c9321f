"""The journal: writing its entries, and a whole trace in memory. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

import orjson

from agentloom.errors import FormatError
from agentloom.format.canonical import EXACT, Tree
from agentloom.format.checking import Verdict, check
from agentloom.format.digests import ENTRY, NO_PREV
from agentloom.format.fields import Entry
from agentloom.format.limits import INDEX_EVERY, LINE_BYTES
from agentloom.format.payloads import Journal

__all__ = ["Entry", "Journal", "JournalWriter", "Verdict", "check"]

_RESERVED = frozenset({"seq", "prev", "at", "kind"})


class JournalWriter:
    """Turns fields into chained entry lines.

    ``head`` and ``seq`` are the digest and number of the last entry, ``offset`` the bytes of the trace so far as far as
    they were told: entries count themselves, blob lines are told with ``skip``.
    """

    def __init__(self) -> None:
        self.head = NO_PREV
        self.seq = -1
        self.offset = 0
        self._index: int | None = None  # offset of the last index entry
        self._index_seq = 0
        self._requests = 0

    def skip(self, count: int) -> None:
        """``count`` bytes of blob lines go into the trace before the next entry."""
        self.offset += count

    def entry(self, kind: str, fields: Mapping[str, Tree], *, at: int) -> bytes:
        """One entry as a line with its newline, ``at`` nanoseconds since 1970; seq and prev are filled in.

        Every ``INDEX_EVERY`` entries an index entry goes before it (two lines then): call it right before writing.
        """
        if not _RESERVED.isdisjoint(fields):
            raise FormatError("entry.field", f"seq, prev, at and kind of {kind} entry are not the caller's")
        return self.entry_of(kind, orjson.dumps(dict(fields), option=EXACT)[1:-1], at=at)

    def entry_of(self, kind: str, text: bytes, *, at: int) -> bytes:
        """As ``entry``, of fields whose JSON (without the braces) is at hand; none of them is seq, prev, at or kind."""
        line = self._line(kind, text, at)
        if kind == "request":
            self._requests += 1
        if self.seq - self._index_seq >= INDEX_EVERY - 1 and kind != "end":
            line += self._index_line(at)
        return line

    def _line(self, kind: str, text: bytes, at: int) -> bytes:
        start = (self.seq + 1, self.head.encode(), at, kind.encode(), b"," if text else b"", text)
        line = b'{"seq":%d,"prev":"%b","at":%d,"kind":"%b"%b%b}' % start
        if len(line) > LINE_BYTES:
            raise FormatError("line.long", f"{kind} entry of {len(line)} bytes; the limit is {LINE_BYTES}")
        self.seq += 1
        self.head = sha256(ENTRY + line).hexdigest()
        self.offset += len(line) + 1
        return line + b"\n"

    def _index_line(self, at: int) -> bytes:
        here = self.offset
        fields = {"offset": here, "last": self._index, "calls": self._requests}
        line = self._line("index", orjson.dumps(fields)[1:-1], at)
        self._index = here
        self._index_seq = self.seq
        return line

    @classmethod
    def resume(cls, journal: Journal) -> JournalWriter:
        """A writer that goes on after the last entry of ``journal`` (its torn tail must be cut off first)."""
        writer = cls()
        writer.head = journal.head
        writer.seq = len(journal.entries) - 1
        writer.offset = journal.size
        writer._requests = sum(entry["kind"] == "request" for entry in journal.entries)
        for entry in reversed(journal.entries):
            if entry["kind"] == "index":
                writer._index, writer._index_seq = entry["offset"], entry["seq"]
                break
        return writer
