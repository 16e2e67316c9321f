"""A look at a large trace: its first and last calls, or one call, without reading the rest.

What is read is checked against its neighbours in the chain and by its blob ids; what lies between is not looked at.
The index entries count the calls (``docs/trace-format.md``, Entries); without them there is no glance.
"""

from __future__ import annotations

from collections.abc import Callable

from agentloom.errors import FormatError
from agentloom.format.guards import is_map
from agentloom.format.journal import Entry, Journal
from agentloom.format.scanning import Scan
from agentloom.format.seeking import Blobs, entries_naming
from agentloom.format.tail import Lines, Mark, Read, marks, stretch
from agentloom.replay.recording import Recording

__all__ = ["glance"]

_FIRST = 48  # entries at the start of the file: more than a screen of calls
_LAST = 64 << 20  # bytes after the last index entry from which there is no glance
_ANSWERS = frozenset(("outcome", "chunks"))


def glance(read: Read, size: int, call: str | None = None) -> Recording | None:
    """The first and the last calls, or call number or id ``call``, of a trace of ``size`` bytes.

    None where that cannot be told from parts of the file: no index that counts calls, a call that is not found by
    number or whole id. ``FormatError`` or ``IntegrityError`` with the offset where what was read is damaged.
    """
    known = marks(read, size)
    if not known or known[0].calls is None or size - known[0].offset > _LAST:
        return None
    looked = _Look(read, size, known, known[0].calls)
    if not looked.agrees():
        return None
    if call is None or (call.isdecimal() and not 1 <= int(call) <= looked.total):
        return looked.ends()  # of which the caller sees that there is no such call
    seq, number = looked.find(call)
    return None if number is None else looked.one(number, seq)


class _Look:
    """What was read of one file."""

    def __init__(self, read: Read, size: int, known: list[Mark], before: int) -> None:
        self._read = read
        self._size = size
        self._known = [*known, Mark(0, 0, 0)]
        self._first = stretch(read, 0, size, lambda _, number: number >= _FIRST)
        self._last = stretch(read, known[0].offset, size, _never)
        self._before = before
        self.total = before + sum(entry["kind"] == "request" for _, entry in self._last.entries)

    def agrees(self) -> bool:
        """Whether the run's end, where it has one, counts as many calls as the index."""
        ends = [entry.get("totals") for _, entry in self._last.entries if entry["kind"] == "end"]
        counts = [totals["calls"] for totals in ends if is_map(totals) and "calls" in totals]
        return counts in ([], [self.total])

    def ends(self) -> Recording:
        """The first calls, the last calls, and what stands at the end."""
        numbers = {**_numbered(self._first, 0), **_numbered(self._last, self._before)}
        return self._recording([self._first, self._last], numbers)

    def find(self, word: str) -> tuple[int | None, int | None]:
        """The seq and the number of the call that a number or a whole id means, as far as it is told."""
        if word.isdecimal():
            return None, int(word)
        for _, entry in entries_naming(self._read, 0, self._size, word):
            if entry["kind"] == "request" and entry.get("call") == word:
                return entry["seq"], self._number(entry["seq"])
        return None, None

    def _number(self, seq: int) -> int | None:
        """The number of the call whose request is entry ``seq``."""
        mark = self._mark(lambda mark: mark.seq <= seq)
        part = stretch(self._read, mark.offset, self._size, lambda entry, _: int(entry["seq"]) >= seq)
        return _numbered(part, mark.calls or 0).get(seq)

    def one(self, number: int, seq: int | None) -> Recording | None:
        """Call ``number``, with what came of it."""
        mark = self._mark(lambda mark: mark.calls is not None and mark.calls < number)
        count = mark.calls or 0

        def reached(entry: Entry, _: int) -> bool:
            nonlocal count
            if entry["kind"] == "request":
                count += 1
            return count >= number

        part = stretch(self._read, mark.offset, self._size, reached)
        offset, request = part.entries[-1]
        if count != number or (seq is not None and request["seq"] != seq):
            return None
        part.entries = [(offset, request)]
        for place, entry in entries_naming(self._read, offset, self._size, request["call"]):
            if entry.get("call") == request["call"] and entry["kind"] in _ANSWERS:
                part.entries.append((place, entry))
                if entry["kind"] == "outcome":
                    break
        self._last.entries = [item for item in self._last.entries if item[1]["kind"] == "end"]
        return self._recording([part, self._last], {request["seq"]: number}, offset)

    def _mark(self, fits: Callable[[Mark], bool]) -> Mark:
        return next(mark for mark in self._known if fits(mark))

    def _recording(self, parts: list[Lines], numbers: dict[int, int], near: int = 0) -> Recording:
        start = self._first.entries[0][1]
        entries: dict[int, Entry] = {0: start}
        places: dict[str, int] = dict(self._first.blobs)
        for part in parts:
            places.update(part.blobs)
            entries.update({entry["seq"]: entry for _, entry in part.entries})
        calls = {entry["call"] for entry in entries.values() if entry["kind"] == "request"}
        found = Scan(
            entries=[
                entry
                for entry in entries.values()
                if entry["kind"] not in _ANSWERS or entry.get("call") in calls
            ],
            blobs=Blobs(self._read, self._size, places, near),
        )
        if start.get("kind") != "start":
            raise FormatError("no-start", "the trace does not begin with a start entry", line=1)
        found.digests.append(self._last.head)
        found.rules.end = next((entry for entry in found.entries if entry["kind"] == "end"), None)
        return Recording.of_part(Journal(found, self._size), numbers, self.total)


def _never(_entry: Entry, _number: int) -> bool:
    return False


def _numbered(part: Lines, before: int) -> dict[int, int]:
    """The number of each request of a stretch by its seq, when ``before`` requests came before it."""
    requests = [entry["seq"] for _, entry in part.entries if entry["kind"] == "request"]
    return {seq: before + place for place, seq in enumerate(requests, 1)}
