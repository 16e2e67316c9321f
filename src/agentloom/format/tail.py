"""Opening a large trace from its end: the head of the file, the index entries, and one stretch of it at a time.

Nothing is read but what is asked for, through a function that the caller gives (this package does no I/O). Index
entries hold byte offsets, which are hints: each is checked against what stands there, and a stretch that cannot be
found by them is found by scanning. The chain is verified within a stretch; ``check`` does it for the whole file. Of
blobs only the places are kept, so that memory does not grow with what a stretch holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import orjson

from agentloom.errors import FormatError, IntegrityError
from agentloom.format.digests import entry_digest
from agentloom.format.fields import Broken, Entry
from agentloom.format.guards import is_map
from agentloom.format.limits import LINE_BYTES
from agentloom.format.lines import BLOB_START, ENTRY_START, read_entry

__all__ = ["Lines", "Mark", "Read", "entry_of", "marks", "stretch"]

Read = Callable[[int, int], bytes]
"""``read(start, count)`` gives ``count`` bytes of the file from ``start``, fewer at its end."""

_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class Mark:
    """An index entry: its number, the offset of its line, and the requests before it where it says so."""

    seq: int
    offset: int
    calls: int | None = None


def marks(read: Read, size: int) -> list[Mark]:
    """The index entries, last first, by following their hints from the end; as far as the hints hold.

    Finds the last of them within a few megabytes of the end, or none: then the file is small, or has no index.
    """
    found: list[Mark] = []
    offset = _last_index(read, size)
    while offset is not None:
        entry = _index_at(read, offset, size)
        if entry is None or (found and offset >= found[-1].offset):
            break
        calls = entry.get("calls")
        found.append(Mark(entry["seq"], offset, calls if type(calls) is int else None))
        offset = entry["last"]
    return found


@dataclass(slots=True)
class Lines:
    """Some consecutive entries with the offsets of their lines, the digest of the last, and where blobs stand."""

    entries: list[tuple[int, Entry]]
    head: str
    blobs: dict[str, int]


def stretch(read: Read, start: int, size: int, enough: Callable[[Entry, int], bool]) -> Lines:
    """The lines from the one that begins at ``start`` on, until ``enough(entry, number of entries)`` or the end.

    ``FormatError`` or ``IntegrityError`` with the offset where a line is damaged or does not follow the one before.
    """
    found = Lines([], "", {})
    for offset, line in _lines(read, start, size):
        if line.startswith(BLOB_START):
            found.blobs[line[9:73].decode("ascii", "replace")] = offset
            continue
        entry = entry_of(line, offset)
        if found.entries and entry.get("prev") != found.head:
            raise IntegrityError("chain.prev", "prev is not the digest of the entry before", offset=offset)
        found.entries.append((offset, entry))
        found.head = entry_digest(line)
        if enough(entry, len(found.entries)):
            break
    return found


def entry_of(line: bytes, offset: int) -> Entry:
    """An entry line as a mapping with a number and a kind. ``FormatError`` with the offset."""
    try:
        entry = read_entry(line)
    except Broken as error:
        raise FormatError(error.code, error.message, offset=offset) from error
    if type(entry.get("seq")) is not int or type(entry.get("kind")) is not str:
        raise FormatError("entry.field", "an entry needs its number and its kind", offset=offset)
    return entry


def _last_index(read: Read, size: int) -> int | None:
    """The offset of the last index entry, searched for backwards in growing windows up to half a line limit."""
    window = _STEP
    while window <= LINE_BYTES // 2:
        start = max(size - window, 0)
        data = read(start, size - start)
        at = len(data)
        while (at := data.rfind(b'"kind":"index"', 0, at)) >= 0:
            line = data.rfind(b"\n", 0, at) + 1
            if line and data.startswith(ENTRY_START, line) and _index_at(read, start + line, size):
                return start + line
        if start == 0:
            return None
        window *= 4
    return None


def _index_at(read: Read, offset: int, size: int) -> Entry | None:
    """The index entry whose line begins at ``offset``, or None when the hint is wrong."""
    if not 0 < offset < size or read(offset - 1, 1) != b"\n":
        return None
    line, newline, _ = read(offset, 1024).partition(b"\n")
    try:
        entry: object = orjson.loads(line) if newline else None
    except orjson.JSONDecodeError:
        return None
    if not is_map(entry):
        return None
    good = entry.get("kind") == "index" and type(entry.get("seq")) is int and entry.get("offset") == offset
    return entry if good and type(entry.get("last")) in (int, type(None)) else None


def _lines(read: Read, start: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each whole line from ``start`` on; a last line without its newline is left out."""
    begun: list[bytes] = []  # of a line that is longer than what was read at once
    length = 0
    position = offset = start
    while position < size and (part := read(position, min(_STEP, size - position))):
        position += len(part)
        first, *others = part.split(b"\n")
        begun.append(first)
        length += len(first)
        if length > LINE_BYTES:
            raise FormatError("line.long", f"a line of more than {LINE_BYTES} bytes", offset=offset)
        if not others:
            continue
        for line in (b"".join(begun), *others[:-1]):
            yield offset, line
            offset += len(line) + 1
        begun = [others[-1]]
        length = len(others[-1])
