"""Where secrets are in a text: one pass over it for everything that could begin one, and a closer look where
it does."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agentloom.format.divisions import Divisions
from agentloom.format.placeholders import START
from agentloom.runtime.redaction_begun import beginning
from agentloom.runtime.redaction_found import UNSEARCHED, Change, Found, Known, Replace, merged
from agentloom.runtime.redaction_layers import (
    TooMuch,
    base64_blocks,
    hex_blocks,
    is_folded,
    local_layers,
    recode_gzip,
)
from agentloom.runtime.redaction_look import BEFORE, REACH, Stretches, Work
from agentloom.runtime.redaction_plan import CODED, ESCAPED, LETTER, MARK, WIDE, ZIPPED, Coded, Plan, plan
from agentloom.runtime.redaction_shapes import Runs, seen
from agentloom.runtime.redaction_spellings import Spellings
from agentloom.runtime.redaction_suspect import Look

__all__ = ["PIECE", "Finder"]

_DEPTH = 5  # codings inside each other
PIECE = 1 << 20
"""Bytes in which places are looked for at once."""
_LARGE = 1 << 16  # bytes from which on a text is decoded near the places alone where something may begin


@dataclass(slots=True)
class _Places:
    """Where in a text something may begin."""

    near: list[int] = field(default_factory=list[int])
    """Shapes, names, escapes."""
    aligned: dict[int, int] = field(default_factory=dict[int, int])
    """Base64: after how many characters of a block."""
    digits: list[int] = field(default_factory=list[int])
    wide: list[int] = field(default_factory=list[int])

    def add(self, what: object, start: int) -> None:
        """Note a place where something coded may begin."""
        if type(what) is Coded:
            self.aligned[start] = what.more
        elif what is ZIPPED:
            self.aligned[start] = 0
        elif what is CODED:
            self.digits.append(start)
        elif what is WIDE:
            self.wide.append(start)
            self.near.append(start)
        elif what is ESCAPED or what is LETTER:
            self.near.append(start)

    def windows(self, size: int) -> list[tuple[int, int]]:
        """The parts of a text of ``size`` bytes that are near such a place."""
        found: list[tuple[int, int]] = []
        for place in sorted(self.near):
            begin, end = max(0, place - BEFORE), min(size, place + REACH)
            if found and begin <= found[-1][1]:
                found[-1] = (found[-1][0], max(end, found[-1][1]))
            else:
                found.append((begin, end))
        return found

    def has_wide(self, begin: int, end: int) -> bool:
        """Whether text in UTF-16 may be in a part."""
        return any(begin <= place < end for place in self.wide)


class Finder:
    """Finds the secrets of a run. ``values`` are texts that are secret; ``names`` fields whose values a user declared
    secret; ``more`` finds further ones in a text (patterns and functions of users), and makes each text be
    looked at."""

    def __init__(
        self,
        values: Mapping[bytes, Known],
        *,
        names: Sequence[bytes] = (),
        more: Callable[[bytes], Iterable[Found]] | None = None,
    ) -> None:
        self.more = more
        self.marked: set[int] = set()
        self._plan = plan(tuple(sorted(values.items(), key=_first)), tuple(names), whole=True)
        self.find = self._plan.automaton.find_matches_as_indexes
        self.quick = more is None
        """Where ``find(data, True)`` finds nothing, there is nothing suspicious."""
        self._learned: dict[bytes, Known] = {}
        self._extra: Plan | None = None
        self._stale = False

    def add(
        self,
        values: Mapping[bytes, Known],
        names: Sequence[bytes],
        more: Callable[[bytes], Iterable[Found]] | None,
    ) -> None:
        """From now on find these too; ``names`` and ``more`` are all that there are."""
        whole = {**self._plan.values, **values}
        self._plan = plan(tuple(sorted(whole.items(), key=_first)), tuple(names), whole=True)
        self.find = self._plan.automaton.find_matches_as_indexes
        self.more = more
        self.quick = more is None and not self._learned

    @property
    def divisions(self) -> Divisions | None:
        """Payloads that were searched for all that is looked for now, as they are divided. None: it is not that of
        other runs too."""
        return self._plan.divisions if self.quick else None

    def knows(self, value: bytes) -> bool:
        """Whether this value is looked for."""
        return value in self._learned or value in self._plan.values

    @property
    def learned(self) -> int:
        """How many values were learned."""
        return len(self._learned)

    def known(self, value: bytes) -> Known | None:
        """What a value that is looked for is."""
        return self._learned.get(value) or self._plan.values.get(value)

    def learn(self, values: Mapping[bytes, Known]) -> None:
        """Look for these too from now on."""
        self._learned.update(values)
        self.quick = False
        self._stale = True

    def _also(self) -> Plan | None:
        """What was learned, as an automaton: made when it is asked for, for a run may learn much at once."""
        if self._stale:
            self._stale = False
            self._extra = plan(tuple(sorted(self._learned.items(), key=_first)), (), whole=False)
        return self._extra

    # -- a first look --------------------------------------------------------------------------------------------

    def suspects(self, data: bytes, *, pieces: tuple[object, ...] = ()) -> bool:
        """Whether ``data`` (the JSON of a payload, or its bytes) must be looked at closely. Never misses what
        ``changes`` finds in the texts of that payload; most payloads cost this one pass. ``pieces``: which lists
        that may hold pieces of one text must be."""
        return self.more is not None or self._suspects(data, _DEPTH, Work(len(data)), pieces=pieces)

    def _suspects(self, data: bytes, depth: int, work: Work, *, pieces: tuple[object, ...] = ()) -> bool:
        """``depth``: so many codings inside each other. What is deeper, or more ``work``, is suspect."""

        def inner(plain: bytes) -> bool:
            return not depth or not work.take(len(plain)) or self._suspects(plain, depth - 1, work)

        for one in (self._plan, self._also()):
            if one is None:
                continue
            look = Look(one, Stretches(data, inner), pieces)
            find = one.automaton.find_matches_as_indexes
            if len(data) <= PIECE:
                if (hits := find(data, True)) and look.any(hits, 0):
                    return True
                continue
            for start in range(0, len(data), PIECE):
                hits = find(data[start : start + PIECE + one.longest], True)
                if hits and look.any(hits, start):
                    return True
        return False

    # -- a close look --------------------------------------------------------------------------------------------

    def changes(
        self, data: bytes, replace: Replace, depth: int = _DEPTH, work: Work | None = None
    ) -> list[Change]:
        """What must be replaced in a text, in order, none overlapping another."""
        work = Work(len(data)) if work is None else work
        hits = self.find(data, True)
        also = self._also()
        if also is not None:
            hits = hits + [
                (-1 - index, start, end)
                for index, start, end in also.automaton.find_matches_as_indexes(data, True)
            ]
        if not hits and self.more is None:
            return []
        found, places = self._direct(data, hits)
        if self.more is not None:
            found += self.more(data)
        made: list[Change] = []
        if depth:
            self._below(data, replace, depth, places, made, work)
        spans = merged(found, made)
        return [
            one
            if isinstance(one, Change)
            else Change(one.start, one.end, _written(data, one, replace), (one.known,))
            for one in spans
        ]

    def _direct(self, data: bytes, hits: list[tuple[int, int, int]]) -> tuple[list[Found], _Places]:
        found: list[Found] = []
        places = _Places()
        runs = Runs(data)
        done: dict[int, int] = {}  # of each format, where its last match ends
        for index, start, _ in hits:
            if index >= 0 and start < runs.skip and self._plan.ends_with_run[index]:
                continue
            what = self._plan.meaning[index] if index >= 0 else self._extra.meaning[-1 - index]  # type: ignore[union-attr]
            if type(what) is list:
                places.near.append(start)
                for one in cast("list[Any]", what):  # type: ignore[redundant-cast]
                    if done.get(id(one), 0) > start or runs.hopeless(one, start):
                        continue
                    secret = seen(data, one, start)
                    if secret is not None:
                        found.append(secret)
                        done[id(one)] = secret.end
            elif type(what) is Spellings:
                one = what.at(data, start)
                if one is not None:
                    found.append(Found(start, start + len(one.text), one.known, True, one))
            elif what is MARK:
                self._mark(data, start)
            else:
                places.add(what, start)
        return found, places

    def _mark(self, data: bytes, start: int) -> None:
        digits = data[start + len(START) : start + len(START) + 12].partition(b"_")[0]
        if digits.isdigit():
            self.marked.add(int(digits))

    def _below(
        self, data: bytes, replace: Replace, depth: int, places: _Places, made: list[Change], work: Work
    ) -> None:
        every = len(data) <= _LARGE
        held: list[Known] = []  # what is in the block that was changed last

        def noted(secret: bytes, known: Known) -> bytes:
            held.append(known)
            return replace(secret, known)

        def change(inner: bytes) -> bytes:
            held.clear()
            return self.applied(inner, noted, depth - 1, work) if work.take(len(inner)) else inner

        escaped = any(mark in data for mark in (b"\\", b"%", b"\x00"))
        parts = [] if not escaped else [(0, len(data))] if every else places.windows(len(data))
        for begin, end in parts:
            for layer in local_layers(data[begin:end], wide=every or places.has_wide(begin, end)):
                if not work.take(len(layer.data)):
                    continue
                for one in self.changes(layer.data, replace, depth - 1, work):
                    start, stop = (begin + place for place in layer.span(one.start, one.end))
                    coded = not layer.single or b"\x00" in data[start:stop]  # else it is no UTF-16 there
                    made.append(Change(start, stop, layer.code(one.text) if coded else one.text, one.known))
        if places.aligned:
            made += [
                Change(*one, tuple(held)) for one in base64_blocks(data, places.aligned, change, every=every)
            ]
        if places.digits:
            made += [
                Change(*one, tuple(held)) for one in hex_blocks(data, change, places.digits, every=every)
            ]

    def _refolded(self, data: bytes, replace: Replace, depth: int, work: Work) -> bytes:
        """``data``, which may be gzip, with its content looked at: all of it, or a placeholder stands for it."""

        def change(inner: bytes) -> bytes:
            work.folded -= len(inner)
            if work.folded < 0:
                raise TooMuch
            return self.applied(inner, replace, depth, work)

        try:
            return recode_gzip(data, change)
        except TooMuch:
            return replace(hashlib.sha256(data).hexdigest().encode(), UNSEARCHED)

    def beginning(self, data: bytes) -> int | None:
        """Where, at the end of ``data``, a secret may have begun that goes on in what follows."""
        return beginning(data, (*self._plan.values, *self._learned))

    def applied(self, data: bytes, replace: Replace, depth: int = _DEPTH, work: Work | None = None) -> bytes:
        """``data`` with what must be replaced; the very same where that is nothing."""
        work = Work(len(data)) if work is None else work
        if depth and is_folded(data):
            folded = self._refolded(data, replace, depth - 1, work)
            if folded is not data:
                return folded
        changes = self.changes(data, replace, depth, work)
        if not changes:
            return data
        parts: list[bytes] = []
        at = 0
        for one in changes:
            parts += (data[at : one.start], one.text)
            at = one.end
        parts.append(data[at:])
        return b"".join(parts)


def _written(data: bytes, one: Found, replace: Replace) -> bytes:
    """What stands in the place of what was found."""
    if one.spelling is None:
        return replace(data[one.start : one.end], one.known)
    return one.spelling.write(replace(one.spelling.value, one.known))


def _first(item: tuple[bytes, Known]) -> bytes:
    return item[0]
