"""Opening a large trace from its end: the head of the file, the index entries, and one stretch of it at a time.

Nothing is read but what is asked for, through a function that the caller gives (this package does no I/O). Index
entries hold byte offsets, which are hints: each is checked against what stands there, and a stretch that cannot be
found by them is found by scanning. Chains are not verified here; ``check`` does that with the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import orjson

from agentloom.errors import FormatError
from agentloom.format.fields import Broken, Entry
from agentloom.format.guards import is_map
from agentloom.format.limits import LINE_BYTES
from agentloom.format.lines import BLOB_START, ENTRY_START, read_blob, read_entry

__all__ = ["Mark", "Read", "Stretch", "header", "last_entries", "marks", "stretch_with"]

Read = Callable[[int, int], bytes]
"""``read(start, count)`` gives ``count`` bytes of the file from ``start``, fewer at its end."""

_STEP = 1 << 16


@dataclass(frozen=True, slots=True)
class Mark:
    """An index entry: its number, and the offset of its line."""

    seq: int
    offset: int


@dataclass(slots=True)
class Stretch:
    """Some consecutive lines: entries, and blobs by id (form and covered bytes)."""

    entries: list[Entry]
    blobs: dict[str, tuple[str, bytes]]


def header(read: Read, size: int) -> Stretch:
    """The start entry and its blobs (perhaps with those of the second entry, which stand behind them)."""
    stretch = Stretch([], {})
    for _, line in _lines(read, 0, size):
        if line.startswith(ENTRY_START) and stretch.entries:
            break
        _take(stretch, line)
    return stretch


def last_entries(read: Read, size: int, count: int = 1) -> list[Entry]:
    """The last ``count`` whole entries, oldest first. Reads backwards, about as much as they and their blobs take."""
    window = _STEP
    while True:
        start = max(size - window, 0)
        stretch = Stretch([], {})
        lines = _lines(read, start, size)
        if start:
            next(lines, None)  # begins in the middle of a line
        for _, line in lines:
            if line.startswith(ENTRY_START):
                _take(stretch, line)
        if len(stretch.entries) >= count or start == 0:
            return stretch.entries[-count:]
        window *= 4


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
        found.append(Mark(entry["seq"], offset))
        offset = entry["last"]
    return found


def stretch_with(read: Read, size: int, seq: int, known: list[Mark]) -> Stretch:
    """The entries and blobs from the index entry before entry ``seq`` (or the start) up to and with that entry.

    ``known`` comes from ``marks``. ``FormatError`` when there is no such entry.
    """
    mark = next((mark for mark in known if mark.seq <= seq), Mark(0, 0))
    for start in dict.fromkeys((mark.offset, 0)):
        stretch = Stretch([], {})
        for _, line in _lines(read, start, size):
            _take(stretch, line)
            if line.startswith(ENTRY_START) and stretch.entries[-1]["seq"] >= seq:
                break
        if stretch.entries and stretch.entries[-1]["seq"] == seq:
            return stretch
    raise FormatError("entry.seq", f"there is no entry {seq}")


def _take(stretch: Stretch, line: bytes) -> None:
    try:
        if line.startswith(BLOB_START):
            blob, form, covered = read_blob(line)
            stretch.blobs[blob] = (form, covered)
        else:
            stretch.entries.append(read_entry(line))
    except Broken as error:
        raise FormatError(error.code, error.message) from error
    if stretch.entries and type(stretch.entries[-1].get("seq")) is not int:
        raise FormatError("entry.field", "an entry needs its number")


def _last_index(read: Read, size: int) -> int | None:
    """The offset of the last index entry, searched for backwards in growing windows up to half a line limit."""
    window = _STEP
    while window <= LINE_BYTES // 2:
        start = max(size - window, 0)
        data = read(start, size - start)
        at = len(data)
        while (at := data.rfind(b'"kind":"index"', 0, at)) >= 0:
            line = data.rfind(b"\n", 0, at) + 1
            if (
                (line or start == 0)
                and data.startswith(ENTRY_START, line)
                and _index_at(read, start + line, size)
            ):
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
    rest = b""
    position = offset = start
    while position < size and (part := read(position, min(_STEP, size - position))):
        position += len(part)
        *whole, rest = (rest + part).split(b"\n")
        if len(rest) > LINE_BYTES:
            raise FormatError("line.long", f"a line of more than {LINE_BYTES} bytes", offset=offset)
        for line in whole:
            yield offset, line
            offset += len(line) + 1
