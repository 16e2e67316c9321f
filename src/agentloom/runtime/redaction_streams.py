"""Streams: a secret may be split over chunks at any place. The texts at one place of the chunks are looked at
as one text.

Chunks are delivered at once, unredacted; they are written together before the run's next host call or at the
stream's end. A secret stands, as a placeholder, in the chunk in which it begins, and is missing from those
after it. What was written while a secret may have begun in it is remembered: the end of it can come with
chunks that are written later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentloom.format.canonical import Tree
from agentloom.format.guards import is_list, is_map

if TYPE_CHECKING:
    from agentloom.runtime.redaction import Redactor

__all__ = ["Joined"]

_TAIL = 4096  # bytes of what was written that are looked at again with what follows
_LEVELS = 12
_NUMBERED = ("index", "output_index", "content_index", "item_id")
Path = tuple[object, ...]


@dataclass(slots=True)
class _Text:
    """The pieces of one text: where each stands (number of the chunk, containers and key), and its bytes."""

    tail: bytes = b""
    hidden: int = 0
    """Bytes at the end of ``tail`` that were written as a placeholder: a secret that had begun."""
    pieces: list[tuple[int, Path, bytes]] = field(default_factory=list[tuple[int, Path, bytes]])


class Joined:
    """The texts of one stream."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._texts: dict[Path, _Text] = {}

    def redacted(self, values: list[Tree], *, final: bool) -> list[Tree]:
        """The chunks as they are written; the very same where nothing in them is secret. ``final``: no more
        will come."""
        for text in self._texts.values():
            text.pieces.clear()
        for number, value in enumerate(values):
            self._collect(number, value, (), (), _LEVELS)
        changes: list[tuple[int, Path, str]] = []
        for text in self._texts.values():
            if text.pieces:
                changes += self._changed(text, final=final)
        return _with(values, changes) if changes else values

    def _collect(self, number: int, tree: Any, place: Path, key: Path, levels: int) -> None:
        """Add the texts of a chunk. ``place``: where it stands; ``key``: which text of the stream it goes on
        with, by the numbers that the chunk gives its parts rather than their places in it."""
        if type(tree) is str:
            if tree:
                held = self._texts.get(key)
                if held is None:
                    held = self._texts[key] = _Text()
                held.pieces.append((number, place, tree.encode("utf-8", "surrogatepass")))
        elif not levels:
            return
        elif is_map(tree):
            mark = next((tree[name] for name in _NUMBERED if name in tree), None)
            below = key if mark is None else (*key, mark)
            for name, item in tree.items():
                if type(item) is str or type(item) is dict or type(item) is list:
                    self._collect(number, item, (*place, name), (*below, name), levels - 1)
        elif is_list(tree):
            for index, item in enumerate(tree):
                numbered = is_map(item) and any(name in item for name in _NUMBERED)
                self._collect(number, item, (*place, index), key if numbered else (*key, index), levels - 1)

    def _changed(self, text: _Text, *, final: bool) -> list[tuple[int, Path, str]]:
        whole = text.tail + b"".join([data for _, _, data in text.pieces])
        written = len(text.tail)
        spans = self._redactor.stream_spans(whole, whole[written - text.hidden : written], final=final)
        shown = written - text.hidden
        for start, stop, _ in spans:
            if start < shown < stop and stop > written:
                self._redactor.led(whole[start:stop], whole[start:shown])
        if text.hidden and not any(start <= shown and stop > shown for start, stop, _ in spans):
            self._redactor.kept(whole[shown:written])
        changes: list[tuple[int, Path, str]] = []
        at = written
        for number, place, data in text.pieces:
            new = _cut(data, at, spans, written, text.hidden)
            if new != data:
                changes.append((number, place, new.decode("utf-8", "surrogatepass")))
            at += len(data)
        hidden = len(whole) - spans[-1][0] if spans and spans[-1][1] == len(whole) else 0
        text.tail = whole[-max(_TAIL, hidden) :]
        text.hidden = hidden
        return changes


def _cut(data: bytes, at: int, spans: list[tuple[int, int, bytes]], written: int, hidden: int) -> bytes:
    """A piece, which begins at ``at`` in its text, without what of it is in ``spans``. The placeholder of each
    stands in the piece where it begins; of one that began in what was written before, in the first piece,
    unless it was written then (the last ``hidden`` bytes of it)."""
    parts: list[bytes] = []
    place, end = at, at + len(data)
    for start, stop, new in spans:
        if stop <= at or start >= end:
            continue
        parts.append(data[place - at : max(start, at) - at])
        if start >= at or (at == written and start < written - hidden):
            parts.append(new)
        place = min(stop, end)
    parts.append(data[place - at :])
    return b"".join(parts)


def _with(values: list[Tree], changes: list[tuple[int, Path, str]]) -> list[Tree]:
    made = list(values)
    for number, place, new in changes:
        made[number] = _put(made[number], place, new)
    return made


def _put(tree: Any, place: Path, new: str) -> Any:
    if not place:
        return new
    copy: Any = tree.copy()
    copy[place[0]] = _put(tree[place[0]], place[1:], new)
    return copy
