"""One pass over the bytes of a trace: lines, chain, order, ids. ``payloads`` and ``checking`` stand on it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from agentloom.errors import FormatError, IntegrityError, UnsupportedVersion
from agentloom.format.digests import entry_digest
from agentloom.format.fields import Broken, Entry
from agentloom.format.lines import BLOB_START, ENTRY_START, bare, foreign, read_blob, read_entry
from agentloom.format.rules import Rules

__all__ = ["Fault", "Scan", "scan"]


@dataclass(slots=True)
class Fault:
    """The first thing that is wrong: its code (docs/trace-format.md, Errors), its line (from 1), the line's offset."""

    code: str
    line: int
    offset: int
    message: str
    integrity: bool = False
    version: bool = False

    def error(self) -> FormatError | IntegrityError:
        """The exception that says so."""
        if self.version:
            return UnsupportedVersion(
                self.code, self.message, line=self.line, offset=self.offset, hint="upgrade agentloom"
            )
        kind = IntegrityError if self.integrity else FormatError
        return kind(self.code, self.message, line=self.line, offset=self.offset)


@dataclass(slots=True)
class Scan:
    """What a pass found. Everything before the fault, if any, holds."""

    entries: list[Entry] = field(default_factory=list[Entry])
    entry_lines: list[tuple[int, int]] = field(
        default_factory=list[tuple[int, int]]
    )  # (line, offset) of each entry
    blobs: dict[str, tuple[str, bytes]] = field(
        default_factory=dict[str, tuple[str, bytes]]
    )  # id -> form, covered bytes
    blob_lines: list[tuple[str, int, int, int]] = field(default_factory=list[tuple[str, int, int, int]])
    # (id, line, offset, number of entries before it)
    rules: Rules = field(default_factory=Rules)
    fault: Fault | None = None
    torn: int = 0  # bytes at the end that are not a whole line

    @property
    def digests(self) -> list[str]:
        """The digest of each entry."""
        return self.rules.digests

    def whole(self, size: int) -> int:
        """The bytes up to the end of the last whole append (an entry, or the start entry with its blobs)."""
        whole = size - self.torn
        count = len(self.entries)
        if count > 1:
            for _, _, offset, before in reversed(self.blob_lines):
                if before < count:
                    break
                whole = offset
        return whole


def scan(data: bytes) -> Scan:
    """Read ``data`` up to its end or its first fault. Never raises for bad bytes."""
    found = Scan()
    broken = foreign(data)
    if broken is not None:
        found.fault = _fault(broken, 1, 0)
        return found
    position, number = 0, 0
    size = len(data)
    returns = b"\r" in data
    find = data.find
    blobs, entries, take = found.blobs, found.entries, found.rules.entry
    try:
        while position < size:
            number += 1
            end = find(b"\n", position)
            if end < 0:
                found.torn = size - position
                break
            line = data[position:end]
            if returns:
                _refuse_return(line)
            if line.startswith(BLOB_START):
                blob, form, covered = read_blob(line)
                if blob in blobs:
                    _refuse_twice(blob)
                blobs[blob] = (form, covered)
                found.blob_lines.append((blob, number, position, len(entries)))
            elif line.startswith(ENTRY_START):
                entry = read_entry(line)
                take(entry, entry_digest(line))
                entries.append(entry)
                found.entry_lines.append((number, position))
            else:
                _refuse_line()
            position = end + 1
    except Broken as error:
        if number > 1 and data.find(b"\n", position) == size - 1 and b"\x00" in data[position:]:
            found.torn = size - position  # blocks that were never written: a power cut, not an edit
        else:
            found.fault = _fault(error, number, position)
    except FormatError as error:  # a malformed call id
        found.fault = Fault(error.code, number, position, bare(error))
    if not found.entries and found.fault is None:
        found.fault = Fault("file.torn", 1, 0, "the file stops before its first line ends")
    return found


def _refuse_twice(blob: str) -> NoReturn:
    raise Broken("blob.duplicate", f"blob {blob[:12]} stands in the file twice")


def _refuse_line() -> NoReturn:
    raise Broken("line.kind", "neither an entry nor a blob line")


def _refuse_return(line: bytes) -> None:
    if b"\r" in line:
        raise Broken("line.cr", "a carriage return; lines end in a line feed alone")


def _fault(error: Broken, line: int, offset: int) -> Fault:
    return Fault(error.code, line, offset, error.message, error.integrity, error.version)
