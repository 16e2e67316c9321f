"""Texts in pieces: a secret may be split at any place over the chunks of a stream, and over the items of a list. The
pieces of one text are looked at as one.

Chunks are delivered at once, unredacted; they are written together before the run's next host call or at the
stream's end. A secret stands, as a placeholder, in the piece in which it begins, and is missing from those
after it. What was written while a secret may have begun in it is remembered: the end of it can come with
chunks that are written later.

Which pieces go on with each other is told by the names on the way to them and by the numbers that providers give their
parts (``index``). Without a number both are tried: that an item goes on with the item at the same place of the chunk
before (two texts side by side), and that it goes on with the item before it.
"""

from __future__ import annotations

import base64
import bisect
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentloom.format.canonical import Tree
from agentloom.format.guards import is_list, is_map
from agentloom.format.placeholders import START
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_tokens import ALTERNATIVES, BYTES, is_piece, put

__all__ = ["Joined", "flowing"]

_TAIL = 4096  # bytes of what was written that are looked at again with what follows
_LEVELS = 16
_MARK = START.encode()
_NUMBERED = ("index", "output_index", "content_index", "summary_index", "contentBlockIndex")
_NUMBERS = frozenset(_NUMBERED)
_ALIKE = {"content_block": "delta"}  # Anthropic: what a block starts with goes on in its deltas
_NO_TEXT = frozenset(
    (
        "type", "role", "object", "model", "event", "finish_reason", "service_tier", "system_fingerprint",
        "obfuscation", "$ref", *ALTERNATIVES,
    )
)  # fmt: skip
Path = tuple[Any, ...]
Span = tuple[int, int, bytes]
"""Start, end, and what stands there then."""
Cut = tuple[int, int, bytes, bool]
"""The same of a piece, and whether it has only a part of the secret."""


class _Redactor(Protocol):
    def stream_spans(self, data: bytes, begun: bytes, *, final: bool) -> list[Span]: ...
    def found_in(self, data: bytes) -> list[tuple[int, int, Known]]: ...
    def hidden(self, secret: bytes, known: Known) -> bytes: ...
    def rest_span(self, data: bytes, start: int, end: int) -> list[Span]: ...
    def kept(self, begun: bytes) -> None: ...
    def led(self, secret: bytes, lead: bytes) -> None: ...
    def was_joined(self, values: list[Tree]) -> None: ...


@dataclass(slots=True)
class _Text:
    """The pieces of one text: where each stands (number of the chunk, containers and key), and its bytes."""

    tail: bytes = b""
    hidden: int = 0
    """Bytes at the end of ``tail`` that were written as a placeholder: a secret that had begun."""
    pieces: list[tuple[int, Path, bytes]] = field(default_factory=list[tuple[int, Path, bytes]])
    apart: bool = False
    """Whether each piece may as well be a text of its own."""


class Joined:
    """The texts of one stream."""

    def __init__(self, redactor: _Redactor) -> None:
        self._redactor = redactor
        self._ways = (_Texts(redactor, in_order=False), _Texts(redactor, in_order=True))

    def redacted(self, values: list[Tree], *, final: bool) -> list[Tree]:
        """The chunks as they are written; the very same where nothing in them is secret. ``final``: no more
        will come."""
        numbered, in_order = self._ways
        spans = [numbered.spans(list(enumerate(values)), final=final)]
        loose = sorted(numbered.loose)
        if loose:  # in the others nothing could go on in the item after it
            spans.append(in_order.spans([(number, values[number]) for number in loose], final=final))
        made = _changed(values, spans)
        self._redactor.was_joined(made)
        return made


def flowing(redactor: _Redactor, tree: Tree) -> Tree:
    """A payload in which no secret goes on from one item of a list in the next; the very same where none does. What in
    one item stands for itself is for whoever looks at each text."""
    spans = _Texts(redactor, in_order=True, lists=True).spans([(0, tree)], final=True)
    return _changed([tree], [spans])[0] if spans else tree


class _Texts:
    """The texts of a stream, in one way to tell which pieces go on with each other. ``in_order``: an item of a list
    goes on with the item before it; only texts in such lists are looked at. ``lists``: of a payload, not of a
    stream: only texts of more than one piece are looked at, and items of a list may be texts of their own."""

    def __init__(self, redactor: _Redactor, *, in_order: bool, lists: bool = False) -> None:
        self._redactor = redactor
        self._in_order = in_order
        self._lists = lists
        self._texts: dict[Path, _Text] = {}
        self.loose: set[int] = set()
        """Chunks of those looked at last that have an item of a list without a number of its own."""

    def spans(self, values: Sequence[tuple[int, Tree]], *, final: bool) -> dict[tuple[int, Path], list[Cut]]:
        """What is to be replaced in each piece of chunks with their numbers."""
        for text in self._texts.values():
            text.pieces.clear()
        self.loose.clear()
        for number, value in values:
            self._collect(number, value, (), (), _LEVELS, not self._in_order)
        found: dict[tuple[int, Path], list[Cut]] = {}
        for text in self._texts.values():
            if text.apart and self._lists:
                if len(text.pieces) > 1:
                    self._look_across(text, found)
            elif len(text.pieces) > (1 if self._lists else 0):
                self._look(text, found, final=final)
        return found

    def _collect(self, number: int, tree: Any, place: Path, key: Path, levels: int, wanted: bool) -> None:
        """Add the texts of a chunk. ``place``: where it stands; ``key``: which text of the stream it goes on
        with; ``wanted``: whether a text here is looked at."""
        if type(tree) is str:
            if tree and wanted:
                self._add(number, place, key, tree.encode("utf-8", "surrogatepass"), key[-1:] != ("tokens",))
        elif not levels:
            return
        elif is_map(tree):
            self._collect_map(number, tree, place, key, levels, wanted)
        elif is_list(tree):
            for index, item in enumerate(tree):
                if is_map(item):
                    message = "role" in item
                    own = message or not _NUMBERS.isdisjoint(item)
                elif type(item) is str or is_list(item):
                    message = own = False
                else:
                    continue
                if not own:
                    self.loose.add(number)
                at = (*key, index) if message or not (own or self._in_order) else key
                self._collect(number, item, (*place, index), at, levels - 1, wanted or not own)

    def _collect_map(
        self, number: int, tree: dict[str, Any], place: Path, key: Path, levels: int, wanted: bool
    ) -> None:
        if len(tree) == 1 and (tag := next(iter(tree))) in BYTES and type(tree[tag]) is str:
            if wanted:
                self._add(number, (*place, tag), key, base64.b64decode(tree[tag]), True)
            return
        marks = () if _NUMBERS.isdisjoint(tree) and type(tree.get("delta")) is not str else _marks(tree)
        below = (*key, *marks) if marks else key
        for name, item in tree.items():
            if type(item) is str:
                if item and wanted and name not in _NO_TEXT and not (name == "id" and "object" in tree):
                    data = item.encode("utf-8", "surrogatepass")
                    at = (*below, _ALIKE.get(name, name))
                    held = self._texts.get(at)
                    if held is None:
                        held = self._texts[at] = _Text(apart=not is_piece(name, tree))
                    held.pieces.append((number, (*place, name), data))
            elif (type(item) is dict or type(item) is list) and item and name not in _NO_TEXT:
                at = (*below, _ALIKE.get(name, name))
                self._collect(number, item, (*place, name), at, levels - 1, wanted)

    def _add(self, number: int, place: Path, key: Path, data: bytes, apart: bool) -> None:
        held = self._texts.get(key)
        if held is None:
            held = self._texts[key] = _Text(apart=apart)
        held.pieces.append((number, place, data))

    def _look(self, text: _Text, found: dict[tuple[int, Path], list[Cut]], *, final: bool) -> None:
        whole = text.tail + b"".join([data for _, _, data in text.pieces])
        written = len(text.tail)
        spans = self._redactor.stream_spans(whole, whole[written - text.hidden : written], final=final)
        shown = written - text.hidden
        for index, (start, stop, new) in enumerate(spans):
            if start < shown < stop and stop > written:
                self._redactor.led(whole[start:stop], whole[start:shown])
                spans[index] = (
                    start,
                    stop,
                    new[max(0, new.find(_MARK)) :],
                )  # what led to it is there already
        if text.hidden and not any(start <= shown and stop > shown for start, stop, _ in spans):
            self._redactor.kept(whole[shown:written])
        at = written
        for number, place, data in text.pieces:
            cuts = _cuts(at, at + len(data), spans, written, text.hidden)
            if cuts:
                found[number, place] = cuts
            at += len(data)
        hidden = len(whole) - spans[-1][0] if spans and spans[-1][1] == len(whole) else 0
        text.tail = whole[-max(_TAIL, hidden) :]
        text.hidden = hidden

    def _look_across(self, text: _Text, found: dict[tuple[int, Path], list[Cut]]) -> None:
        """What goes over from one piece to the next. A piece whose end is a secret as it stands (a list of keys) is a
        text of its own, and so is what follows, unless that is the rest of a longer one."""
        data = [piece for _, _, piece in text.pieces]
        ends = list(itertools.accumulate(map(len, data)))
        whole = b"".join(data)
        for start, stop, known in self._redactor.found_in(whole):
            first, last = bisect.bisect_right(ends, start), bisect.bisect_left(ends, stop)
            at = start - (ends[first] - len(data[first]))
            alone = self._redactor.found_in(data[first])
            if first == last and any(begin < at + stop - start and at < end for begin, end, _ in alone):
                continue
            ends_there = bool(alone) and alone[-1][0] <= at and alone[-1][1] == len(data[first])
            new = b"" if ends_there else self._redactor.hidden(whole[start:stop], known)
            for index in range(first, last + 1):
                end = min(stop - ends[index], 0) + len(data[index])
                if not ends_there:
                    cuts = [(at, end, new, True) if index == first else (0, end, b"", True)]
                else:
                    rest = [] if index == first else self._redactor.rest_span(data[index], 0, end)
                    cuts = [(*one, False) for one in rest]
                if cuts:
                    number, place, _ = text.pieces[index]
                    found[number, place] = _united(found.get((number, place), []), cuts)


def _marks(tree: dict[str, Any]) -> Path:
    """The numbers that a chunk gives its part; of an event whose delta is a text, its type too: audio and what is said
    in it come by turns, under the same numbers."""
    marks = tuple([tree[name] for name in _NUMBERED if type(tree.get(name)) is int])
    if type(tree.get("delta")) is str:
        if not marks and type(tree.get("item_id")) is str:
            marks = (tree["item_id"],)
        marks = (*marks, tree.get("type"))
    return marks


def _cuts(at: int, end: int, spans: list[Span], written: int, hidden: int) -> list[Cut]:
    """What of ``spans`` is in a piece, which begins at ``at`` in its text, by places in the piece. The placeholder of
    each stands in the piece where it begins; of one that began in what was written before, in the first piece,
    unless it was written then (the last ``hidden`` bytes of it)."""
    found: list[Cut] = []
    for start, stop, new in spans:
        if stop <= at or start >= end:
            continue
        here = start >= at or (at == written and start < written - hidden)
        found.append(
            (max(start, at) - at, min(stop, end) - at, new if here else b"", start < at or stop > end)
        )
    return found


def _changed(values: list[Tree], ways: Sequence[dict[tuple[int, Path], list[Cut]]]) -> list[Tree]:
    """``values`` with what was found in each way; the very same where that is nothing."""
    spans: dict[tuple[int, Path], list[Cut]] = {}
    for way in ways:
        for piece, cuts in way.items():
            spans[piece] = _united(spans[piece], cuts) if piece in spans else cuts
    if not spans:
        return values
    changes: dict[int, dict[Path, Callable[[bytes], bytes]]] = {}
    for (number, place), cuts in spans.items():
        changes.setdefault(number, {})[place] = _cutter(cuts)
    made = list(values)
    for number, places in changes.items():
        made[number] = put(made[number], places)
    return made


def _united(first: list[Cut], then: list[Cut]) -> list[Cut]:
    """Cuts of both: of two that overlap one, as far as both go, for the one that goes over more pieces."""
    both: list[Cut] = []
    for start, stop, new, part in sorted([*first, *then], key=lambda cut: cut[:2]):
        if both and start < both[-1][1]:
            begin, end, text, before = both[-1]
            both[-1] = (begin, max(end, stop), new if part > before else text, part or before)
        else:
            both.append((start, stop, new, part))
    return both


def _cutter(cuts: list[Cut]) -> Callable[[bytes], bytes]:
    def cut(data: bytes) -> bytes:
        parts: list[bytes] = []
        at = 0
        for start, stop, new, _ in cuts:
            parts += (data[at:start], new)
            at = stop
        return b"".join((*parts, data[at:]))

    return cut
