"""Byte marks of lists of plain values: equal marks are equal values, type for type. They are compared, never read.

The pickler of the standard library is the quickest way through a Python value that tells exact types apart. In its fast
mode it does not look at which objects are the same, so equal values have equal bytes. What is not of a builtin type it
would ask how to be pickled: that runs code of the value's class, so it is refused instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, NoReturn

__all__ = ["Marks", "is_plain", "mark", "marker"]

_PROTOCOL = 3  # the last one that writes no frames around the bytes
_PART_BYTES = 1 << 16  # small enough for the processor's cache, where each part is written and compared
_BATCH = 1000  # items that the pickler writes between one MARK and its APPENDS


class _Foreign(Exception):
    """A value that is not of a builtin type."""


class _Sink:
    __slots__ = ("write",)


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> NoReturn:
        raise _Foreign


def marker() -> Callable[[Any], bytes | None]:
    """A function that gives the mark of a value; None where it holds a value that has none (another type, a cycle, very
    deep). One that is used again is quicker than a new one. Not for two threads at once."""
    parts: list[bytes] = []
    sink: Any = _Sink()
    sink.write = parts.append
    pickler = _Pickler(sink, _PROTOCOL)
    pickler.fast = True
    dump = pickler.dump

    def mark_of(items: Any) -> bytes | None:
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


_free: list[Callable[[Any], bytes | None]] = []


def is_plain(value: object, size: int) -> bool:
    """Whether ``value``, of about ``size`` bytes, has a mark: nothing in it is of another than a builtin type."""
    if size > _PART_BYTES:
        return marker()(value) is not None  # one that is kept would keep as much memory
    try:
        mark_of = _free.pop()  # one step: nobody else has it meanwhile
    except IndexError:
        mark_of = marker()
    try:
        return mark_of(value) is not None
    finally:
        _free.append(mark_of)


class Marks:
    """The marks of a list that grows: parts of some size, to the last of which the mark of what is added is joined."""

    __slots__ = ("_count", "_parts", "mark")

    def __init__(self, items: list[Any] | None = None) -> None:
        self.mark = marker()
        self._parts: list[
            tuple[int, int, bytes | bytearray | None]
        ] = []  # first item, the item after the last, mark
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
        begin, end = self._count, len(items)
        self._count = end
        if added is None:
            added = self.mark(items[begin:])
        if self._parts and added is not None:
            start, _, data = self._parts[-1]
            if type(data) is bytearray and len(data) < _PART_BYTES and end - start <= _BATCH:
                self._parts[-1] = (start, end, data)
                _join(data, begin - start, added, end - begin)
                return
        self._parts.append((begin, end, None if added is None else bytearray(added)))


def _join(data: bytearray, count: int, then: bytes, more: int) -> None:
    """Make of the mark of ``count`` items that of these and of ``more`` after them, at most ``_BATCH`` in all: items
    stand in marks one after the other, each as it would stand anywhere. Were it another one than the pickler writes for
    the whole, nothing would begin with the list."""
    if count == 1:
        data[3:3] = b"("
    del data[-2:]
    data += then[4:-2] if more > 1 else then[3:-2]
    data += b"e."
