"""Finding single lines of a large trace without reading it whole: blobs by id, entries by what they name."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from agentloom.errors import FormatError
from agentloom.format.fields import Broken, Entry
from agentloom.format.limits import LINE_BYTES
from agentloom.format.lines import BLOB_START, ENTRY_START, read_blob
from agentloom.format.tail import Read, entry_of

__all__ = ["Blobs", "entries_naming"]

_STEP = 1 << 16
_WIDE = 1 << 22  # bytes at a time of a search through the whole file
_NEAR = 1 << 24  # bytes from ``near`` on in which a blob is searched for first
_SEARCHES = 32  # blobs that are searched for one by one; then the places of all are noted


def entries_naming(read: Read, start: int, size: int, text: str) -> Iterator[tuple[int, Entry]]:
    """The entries, from the line that begins at ``start`` on, in which ``text`` stands as a JSON string."""
    seen = -1
    for at in _places(read, start, size, orjson.dumps(text)):
        offset = _line_start(read, at, start)
        if offset != seen and read(offset, len(ENTRY_START)) == ENTRY_START:
            seen = offset
            yield offset, entry_of(_whole_line(read, offset), offset)


class Blobs(dict[str, tuple[str, bytes]]):
    """The blobs of a file by id (form and covered bytes), each read, and its id checked, when it is asked for.

    ``known``: where some of them stand. Others are searched for, first after offset ``near``; ``in`` and ``get`` see
    only what was read.
    """

    def __init__(self, read: Read, size: int, known: dict[str, int], near: int = 0) -> None:
        super().__init__()
        self._read = read
        self._size = size
        self._known = known
        self._near = near
        self._searches = 0

    def __missing__(self, blob: str) -> tuple[str, bytes]:
        offset = self._known.get(blob)
        if offset is None:
            offset = self._search(blob)
        try:
            found, form, covered = read_blob(_whole_line(self._read, offset))
        except Broken as error:
            raise FormatError(error.code, error.message, offset=offset) from error
        if found != blob:
            raise KeyError(blob)
        self[blob] = (form, covered)
        return form, covered

    def _search(self, blob: str) -> int:
        self._searches += 1
        if self._searches < _SEARCHES:
            sought = b'\n{"blob":"%b"' % blob.encode()
            near = _places(self._read, self._near, min(self._near + _NEAR, self._size), sought)
            at = next(near, None)
            if at is None:
                at = next(_places(self._read, 0, self._size, sought), None)
            if at is not None:
                self._known[blob] = at + 1
        elif self._searches == _SEARCHES:
            for at in _places(self._read, 0, self._size, b"\n" + BLOB_START):
                self._known.setdefault(self._read(at + 10, 64).decode("ascii", "replace"), at + 1)
        return self._known[blob]


def _places(read: Read, start: int, size: int, sought: bytes) -> Iterator[int]:
    """The offsets at which ``sought`` stands, in order."""
    rest = b""
    position = start
    while position < size and (part := read(position, min(_WIDE, size - position))):
        window = rest + part
        base = position - len(rest)
        at = window.find(sought)
        while at >= 0:
            yield base + at
            at = window.find(sought, at + 1)
        position += len(part)
        rest = window[max(0, len(window) - len(sought) + 1) :]


def _line_start(read: Read, at: int, start: int) -> int:
    """The offset of the first byte of the line in which ``at`` is; ``start`` begins a line."""
    step = 1024
    while at > start:
        begin = max(at - step, start)
        newline = read(begin, at - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        at = begin
        step = _STEP
    return start


def _whole_line(read: Read, offset: int) -> bytes:
    """The line that begins at ``offset``, without its newline."""
    parts: list[bytes] = []
    length = 0
    step = 1024
    while part := read(offset + length, step):
        head, newline, _ = part.partition(b"\n")
        parts.append(head)
        length += len(part)
        if newline:
            return b"".join(parts)
        if length > LINE_BYTES:
            raise FormatError("line.long", f"a line of more than {LINE_BYTES} bytes", offset=offset)
        step = _STEP
    raise FormatError("tail.torn", "the file ends within this line", offset=offset)
