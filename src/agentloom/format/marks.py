"""Byte marks of lists of plain values: equal marks are equal values, type for type. They are compared, never read.

The pickler of the standard library is the quickest way through a Python value that tells exact types apart. In its fast
mode it does not look at which objects are the same, so equal values have equal bytes. What is not of a builtin type it
would ask how to be pickled: that runs code of the value's class, so it is refused instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Marks", "mark", "marker"]

_PROTOCOL = 3  # the last one that writes no frames around the bytes
_PART_BYTES = 1 << 16  # small enough for the processor's cache, where each part is written and compared
_PIECES = 12  # pieces that are marked again as one


class _Foreign(Exception):
    """A value that is not of a builtin type."""


class _Sink:
    __slots__ = ("write",)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> NoReturn:
        raise _Foreign


def marker() -> Callable[[list[Any]], bytes | None]:
    """A function that gives the mark of a list; None where it holds a value that has none (another type, a cycle, very
    deep). One that is used again is quicker than a new one. Not for two threads at once."""
    parts: list[bytes] = []
    sink: Any = _Sink()
    sink.write = parts.append
    pickler = _Pickler(sink, _PROTOCOL)
    pickler.fast = True
    dump = pickler.dump

    def mark_of(items: list[Any]) -> bytes | None:
        parts.clear()
        try:
            dump(items)
        except (_Foreign, ValueError, RecursionError):
            return None
        return b"".join(parts)

    return mark_of


def mark(items: list[Any]) -> bytes | None:
    """The mark of ``items`` (see ``marker``)."""
    return marker()(items)


class Marks:
    """The marks of a list that grows: parts of some size, and small pieces after them that were added since."""

    __slots__ = ("_count", "_parts", "_pieces", "mark")

    def __init__(self, items: list[Any] | None = None) -> None:
        self.mark = marker()
        self._parts: list[tuple[int, int, bytes | None]] = []  # first item, the item after the last, mark
        self._pieces = 0
        self._count = 0
        if items:
            self.extend(items)

    def begin(self, items: list[Any]) -> bool:
        """Whether ``items`` begins with the whole list."""
        mark_of = self.mark
        for start, end, data in reversed(self._parts):  # most lists that are others differ at the end
            if data is None or mark_of(items[start:end]) != data:
                return False
        return True

    def extend(self, items: list[Any], added: bytes | None = None) -> None:
        """The list is ``items`` now, which begins with it; ``added`` is the mark of the rest, which is plain
        (``encoding.plain_items``), where it is known."""
        start, end = self._count, len(items)
        self._count = end
        self._pieces += 1
        if self._pieces == _PIECES:
            start, added = self._joined(), None
        if added is None:
            added = self.mark(items[start:])
        self._parts.append((start, end, added))

    def _joined(self) -> int:
        """Where the pieces begin, which are left out: they become a part, with the part before while it is small."""
        del_from = len(self._parts) - _PIECES + 1
        if del_from and len(self._parts[del_from - 1][2] or b"") < _PART_BYTES:
            del_from -= 1
        first = self._parts[del_from][0]
        del self._parts[del_from:]
        self._pieces = 0
        return first
