"""Byte marks of lists of plain values: equal marks are equal values, type for type. They are compared, never read.

The pickler of the standard library is the quickest way through a Python value that tells exact types apart. In its fast
mode it does not look at which objects are the same, so equal values have equal bytes. What is not of a builtin type it
would ask how to be pickled: that runs code of the value's class, so it is refused instead.
"""

from __future__ import annotations

import pickle
from typing import Any, NoReturn

__all__ = ["Marks", "mark"]

_PROTOCOL = 3  # the last one that writes no frames around the bytes
_PART_BYTES = 1 << 16  # small enough for the processor's cache, where each part is written and compared


class _Foreign(Exception):
    """A value that is not of a builtin type."""


class _Sink:
    __slots__ = ("write",)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> NoReturn:
        raise _Foreign


def mark(items: list[Any]) -> bytes | None:
    """The mark of ``items``; None when they hold a value that has none (another type, a cycle, very deep)."""
    parts: list[bytes] = []
    sink: Any = _Sink()
    sink.write = parts.append
    pickler = _Pickler(sink, _PROTOCOL)
    pickler.fast = True
    try:
        pickler.dump(items)
    except (_Foreign, ValueError, RecursionError):
        return None
    return parts[0] if len(parts) == 1 else b"".join(parts)


class Marks:
    """The marks of a list that grows, in parts of some size."""

    __slots__ = ("_closed", "_count", "_last", "_start")

    def __init__(self, items: list[Any]) -> None:
        """``items`` are plain (``encoding.plain_copy``)."""
        self._closed: list[tuple[int, int, bytes]] = []
        self._start = self._count = 0
        self._last: bytes | None = None  # None: nothing begins with it
        self.extend(items)

    def begin(self, items: list[Any]) -> bool:
        """Whether ``items`` begins with the whole list."""
        if self._last is None or mark(items[self._start : self._count]) != self._last:
            return False
        return all(mark(items[start:end]) == data for start, end, data in self._closed)

    def extend(self, items: list[Any]) -> None:
        """The list is ``items`` now, which begins with it. What is added is plain."""
        last = mark(items[self._start :])
        self._count = len(items)
        self._last = last
        if last is not None and len(last) >= _PART_BYTES:
            self._closed.append((self._start, self._count, last))
            self._start = self._count
            self._last = mark([])
