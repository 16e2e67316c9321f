"""Reading just enough of a trace file to list it. No chain is checked here: that is ``agentloom verify``.

A trace of at most `LARGE` bytes is read whole, line by line. Of a larger one only the start entry with its blobs and
the last entries are read (the row says ``partial``), unless the question needs all of it (``deep``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson

from agentloom.format.decoding import decode
from agentloom.format.digests import entry_digest
from agentloom.format.limits import LINE_BYTES
from agentloom.format.runids import is_run_id
from agentloom.store.base import RunRow
from agentloom.store.find import tags_of
from agentloom.store.lines import BLOB, ENTRY
from agentloom.store.waiting import NEEDLES, Waits

__all__ = ["LARGE", "Source", "damaged", "live", "scan", "scan_bytes", "sort_key", "unfinished"]

LARGE = 16 << 20
"""Bytes from which a trace counts as large."""

_CHUNK = 1 << 18
_HEAD = 4 << 20  # bytes of the start entry and its blobs that are read at most of a large trace
_TAIL = (
    64 << 10
)  # bytes of the end of a large trace that are read first; then four times as much, up to _HEAD
_NEUTRAL = {"erase", "seal", "tag", "flag", "note", "index"}  # say nothing about whether the run ended
_CLOSED = {"completed", "failed", "cancelled"}

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """A trace of ``size`` bytes; ``span(start, count)`` reads ``count`` of them, fewer at the end (`OSError`)."""

    size: int
    span: Callable[[int, int], bytes]

    @classmethod
    def of(cls, data: bytes) -> Source:
        return cls(len(data), lambda start, count: data[start : start + count])


def damaged(run: str, size: int, problem: str) -> RunRow:
    """The row of a file that is no readable trace."""
    return RunRow(run, "damaged", size=size, problem=problem)


def unfinished(row: RunRow) -> bool:
    """Whether the trace has no end entry, so that `live` is to say what that means."""
    return row.status in ("open", "suspended")


def live(row: RunRow, running: bool) -> RunRow:
    """A row without an end entry, told apart: somebody writes it, it waits, or nobody writes it any more."""
    if running:
        return replace(row, status="running")
    return row if row.status == "suspended" else replace(row, status="crashed")


def sort_key(run: str) -> tuple[bool, str]:
    """Run ids sort by time; names that are no run ids come last (in a newest-first list)."""
    return is_run_id(run), run


def scan_bytes(data: bytes, run: str, *, running: bool) -> RunRow:
    """The row of a trace in memory, read whole."""
    row = scan(Source.of(data), run, deep=True)
    return live(row, running) if unfinished(row) else row


def scan(source: Source, run: str, *, deep: bool) -> RunRow:
    """The row of a trace; without an end entry its status is ``suspended`` where it only waits, else ``open``."""
    if source.size == 0:
        return _unborn(run, 0)
    reading = _Reading(run)
    try:
        if deep or source.size <= LARGE:
            reading.whole(source)
        else:
            reading.ends(source)
        return reading.row(source)
    except _Damage as damage:
        return damaged(run, source.size, str(damage))


def _unborn(run: str, size: int) -> RunRow:
    return RunRow(run, "open", size=size, problem="stopped before its first entry was written")


class _Damage(Exception):
    """Why a file is no readable trace."""


class _Reading:
    """What was seen of one trace so far."""

    def __init__(self, run: str) -> None:
        self.run = run
        self.start: Entry = {}
        self.end: Entry | None = None
        self.last = b""  # the last entry line
        self.flags = 0
        self.calls: dict[str, int] = {}
        self.names: dict[str, dict[str, int]] = {"tool": {}, "model": {}}
        self.tag_blobs: list[str] = []
        self.wanted: set[str] = set()
        self.found: dict[str, object] = {}
        self.recent: dict[
            str, bytes
        ] = {}  # blob lines since the last entry: a tag's value comes just before it
        self.partial = False
        self.waits = Waits()

    # -- which bytes

    def whole(self, source: Source) -> None:
        for number, (offset, line) in enumerate(_lines(source, 0, source.size), 1):
            self._line(number, offset, line)
        if self.wanted - set(self.found):  # a tag whose value was written long before it
            for _, line in _lines(source, 0, source.size):
                if line.startswith(BLOB) and (blob := line[9:73].decode("ascii", "replace")) in self.wanted:
                    self._collect(blob, line)

    def ends(self, source: Source) -> None:
        self.partial = True
        head_end = 0
        for number, (offset, line) in enumerate(_lines(source, 0, source.size), 1):
            if number > 1 and (line.startswith(ENTRY) or offset > _HEAD):
                break
            self._line(number, offset, line)
            head_end = offset + len(line) + 1
        self.recent.clear()
        window = _TAIL
        while not self._tail(source, start := max(head_end, source.size - window), head_end):
            if window >= _HEAD:
                break
            window *= 4
        if not self.end:
            self._waits(source, head_end, start)
            return
        totals = self.end.get("totals")
        count = cast("dict[str, object]", totals).get("calls") if isinstance(totals, dict) else None
        self.calls = {"": count} if isinstance(count, int) else {}

    def _tail(self, source: Source, start: int, head_end: int) -> bool:
        """Read the entries after ``start``; whether they tell how the run ended."""
        self.end, self.flags, self.tag_blobs, self.waits = None, 0, self.tag_blobs[:0], Waits()
        lines = list(_lines(source, start, source.size))
        if start > head_end and lines:
            del lines[0]  # begins in the middle of a line
        entries = [line for _, line in lines if line.startswith(ENTRY)]
        for offset, line in lines:
            self._line(0, offset, line)
        return start <= head_end or any(_kind(line) not in _NEUTRAL for line in entries)

    def _waits(self, source: Source, start: int, tail: int) -> None:
        """What an unfinished large trace waits for may have been asked long before its ``tail``: the bytes are
        searched, and the entries looked at from the first that tells of it."""
        first = _first_of(source, start, NEEDLES)
        if first >= tail:
            return
        self.waits = Waits()
        for offset, line in _lines(source, first, source.size):
            if line.startswith(ENTRY):
                self.waits.take(_load(line, 0, offset))

    # -- one line

    def _line(self, number: int, offset: int, line: bytes) -> None:
        if not line.startswith(ENTRY):
            if number == 1:
                raise _Damage("it does not begin with a start entry (line 1)")
            self._blob(number, offset, line)
            return
        entry = _load(line, number, offset)
        if number == 1:
            self._start(entry)
        else:
            self._entry(entry)
        self.last = line
        self.recent.clear()

    def _start(self, entry: Entry) -> None:
        if entry.get("kind") != "start" or entry.get("format") != "loom":
            raise _Damage("it does not begin with a start entry (line 1)")
        version = entry.get("version")
        if not isinstance(version, str) or version.partition(".")[0] != "1":
            raise _Damage(f"it is a trace of version {version!r}; this agentloom reads version 1")
        if entry.get("run") != self.run:
            raise _Damage(f"the file holds run {entry.get('run')!r}: import it instead of copying it here")
        self.start = entry
        self.wanted |= {
            blob for name in ("tags", "conversation", "policy") if isinstance(blob := entry.get(name), str)
        }

    def _entry(self, entry: Entry) -> None:
        kind = entry.get("kind")
        self.waits.take(entry)
        if kind == "request":
            self._request(entry)
        elif kind == "flag":
            self.flags += 1
        elif kind == "tag" and isinstance(blob := entry.get("val"), str):
            self.tag_blobs.append(blob)
            self.wanted.add(blob)
            if blob in self.recent:
                self._collect(blob, self.recent[blob])
        elif kind == "end" and entry.get("run", self.run) == self.run:
            self.end = entry
        elif kind not in _NEUTRAL:
            self.end = None  # a retry or a resumption went on after the end

    def _request(self, entry: Entry) -> None:
        self.end = None
        kind, name = entry.get("type"), entry.get("name")
        if not isinstance(kind, str):
            return
        self.calls[kind] = self.calls.get(kind, 0) + 1
        if isinstance(name, str) and (counts := self.names.get(kind)) is not None:
            counts[name] = counts.get(name, 0) + 1

    def _blob(self, number: int, offset: int, line: bytes) -> None:
        if not line.startswith(BLOB) or line[73:82] != b'","salt":':
            where = f"line {number}, byte {offset}" if number else f"byte {offset}"
            raise _Damage(f"what stands at {where} is neither an entry nor a blob")
        blob = line[9:73].decode("ascii", "replace")
        if blob in self.wanted:
            self._collect(blob, line)
        else:
            self.recent[blob] = line

    def _collect(self, blob: str, line: bytes) -> None:
        if blob not in self.found:
            payload = _load(line, 0, 0)
            # Only what a tag or a conversation id can be: a large one is in pieces, and is not searched for.
            self.found[blob] = decode(payload.get("data")) if payload.get("form") == "json" else None

    # -- the result

    def row(self, source: Source) -> RunRow:
        start, end = self.start, self.end
        if not start:
            if not source.span(0, len(ENTRY)).startswith(ENTRY):
                raise _Damage("it does not begin with a start entry (line 1)")
            return _unborn(self.run, source.size)
        waits = Waits() if end else self.waits
        status = end.get("status") if end else "suspended" if waits.at_rest else "open"
        if end and status not in _CLOSED:
            raise _Damage(f"its end entry has status {status!r}")
        parent = start.get("parent")
        return RunRow(
            run=self.run,
            status=str(status),
            agent=_text(start.get("agent")) or "",
            started=_number(start.get("at")) or 0,
            ended=_number(end.get("at")) if end else None,
            tags=self._tags(),
            conversation=self._conversation(),
            flags=self.flags,
            calls=self.calls,
            tools=self.names["tool"],
            models=self.names["model"],
            size=source.size,
            head=entry_digest(self.last),
            parent=_text(cast("Entry", parent).get("run")) if isinstance(parent, dict) else _text(parent),
            partial=self.partial,
            guard=self._guard(),
            asks=waits.asks,
            due=waits.due,
            epoch=self.waits.epoch,
        )

    def _guard(self) -> str | None:
        blob = self.start.get("policy")
        if not isinstance(blob, str):
            return "off"
        policy = self.found.get(blob)
        return (
            _text(cast("dict[str, object]", policy).get("guard", "off")) if isinstance(policy, dict) else None
        )

    def _tags(self) -> tuple[str, ...]:
        blobs = [self.start.get("tags"), *self.tag_blobs]
        tags = [tag for blob in blobs if isinstance(blob, str) for tag in tags_of(self.found.get(blob))]
        return tuple(dict.fromkeys(tags))

    def _conversation(self) -> str | None:
        blob = self.start.get("conversation")
        return _text(self.found.get(blob)) if isinstance(blob, str) else None


def _lines(source: Source, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes, without newline, of every whole line from ``start`` on; a torn last line is left out."""
    rest = b""
    offset = start
    position = start
    while position < stop and (part := source.span(position, min(_CHUNK, stop - position))):
        position += len(part)
        block = rest + part if rest else part
        if b"\n" not in part:
            rest = block
            if len(rest) > LINE_BYTES:
                raise _Damage(f"the line at byte {offset} is longer than {LINE_BYTES:,} bytes")
            continue
        lines = block.split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield offset, line
            offset += len(line) + 1


def _first_of(source: Source, start: int, needles: Sequence[bytes]) -> int:
    """Where the first line from ``start`` (the start of a line) on begins that holds one of ``needles``; the end of the
    trace where none does."""
    longest = max(map(len, needles))
    begin, rest, position = start, b"", start
    while position < source.size and (part := source.span(position, min(_CHUNK, source.size - position))):
        block = rest + part
        hits = [hit for needle in needles if (hit := block.find(needle)) >= 0]
        if hits:
            newline = block.rfind(b"\n", 0, min(hits))
            return begin if newline < 0 else position - len(rest) + newline + 1
        newline = block.rfind(b"\n")
        if newline >= 0:
            begin = position - len(rest) + newline + 1
        position += len(part)
        rest = block[-longest:]
    return source.size


def _load(line: bytes, number: int, offset: int) -> Entry:
    try:
        entry: object = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        where = f"line {number}, byte {offset}" if number else f"byte {offset}"
        raise _Damage(f"the entry at {where} is not JSON") from error
    return cast("Entry", entry)


def _kind(line: bytes) -> object:
    return _load(line, 0, 0).get("kind")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
