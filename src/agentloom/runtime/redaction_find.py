"""Where secrets are in a text: one pass over it for everything that could begin one, and a closer look where
it does."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, quote_plus

import ahocorasick_rs

from agentloom.format.placeholders import START
from agentloom.runtime.redaction_formats import CONTEXTS, FORMATS, Context, Format, is_open_value
from agentloom.runtime.redaction_layers import base64_blocks, gunzip, hex_blocks, local_layers, recode_gzip
from agentloom.runtime.redaction_look import BEFORE, REACH, Stretches, Work

__all__ = ["PIECE", "Change", "Finder", "Found", "Known", "Replace"]

_DEPTH = 5  # codings inside each other
PIECE = 1 << 20
"""Bytes in which places are looked for at once."""
_LARGE = 1 << 16  # bytes from which on a text is decoded near the places alone where something may begin


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is secret: what it is called in reports (``environment``), and of which name."""

    kind: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text: where it stands, what it is; ``whole``: it is a value that is known."""

    start: int
    end: int
    known: Known
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """What stands in the place of a part of a text."""

    start: int
    end: int
    text: bytes


Replace = Callable[[bytes, Known], bytes]
"""Gives what stands for a secret."""


@dataclass(slots=True)
class _Plan:
    """What the patterns of one automaton mean."""

    automaton: Any
    meaning: list[Any]
    values: Mapping[bytes, Known] = field(default_factory=dict[bytes, Known])
    longest: int = 0


_CODED = object()  # a secret begins here in hexadecimal, if it is one
_WIDE = object()  # or in UTF-16
_FOLDED = object()  # gzip, at the beginning of the text
_ESCAPED = object()  # escapes of letters that need none
_BINARY = object()  # a tag with base64
_ZIPPED = object()  # gzip in base64
_MARK = object()  # looks like a placeholder
_NAMED = object()  # a field that a user declared secret


@dataclass(frozen=True, slots=True)
class _Coded:
    """A known value in base64, so many characters after a multiple of four."""

    more: int


@dataclass(frozen=True, slots=True)
class _Near:
    """A telling name of so many bytes."""

    context: Context
    length: int


# What is looked for in base64, hexadecimal and UTF-16 without having been met: beginnings that are long enough
# to tell there.
_STARTS = tuple(
    b"""sk-proj- sk-ant- sk-or-v1- sk-svcacct- AKIA ASIA ghp_ gho_ ghs_ github_pat_ glpat- xoxb- xoxp- AIza gsk_
    sk_live_ rk_live_ eyJhbGci eyJ0eXAi eyJraWQi -----BEGIN""".split()
)


@functools.lru_cache(maxsize=1)
def _fixed() -> tuple[tuple[bytes, Any], ...]:
    """The patterns that are the same in every run, and what each means."""
    found: dict[bytes, Any] = {}
    for shape in FORMATS:
        for start in shape.starts:
            found.setdefault(start, []).append(shape)
    for context in CONTEXTS:
        for start, length in context.starts:
            found.setdefault(start, []).append(_Near(context, length))
    for start in _STARTS:
        for coded, more in _cores(start, least=4):
            found.setdefault(coded, _Coded(more))
        found.setdefault(start.hex().encode(), _CODED)
        found.setdefault(start.hex().upper().encode(), _CODED)
        found.setdefault(b"\x00".join(bytes([byte]) for byte in start), _WIDE)
    found.setdefault(b"c2st", _Coded(0))
    for folded in (b"H4sI", b"eJw", b"eJx", b"eJy", b"eJz"):
        found.setdefault(folded, _ZIPPED)
    for folded in (b"\x1f\x8b\x08", b"\x78\x01", b"\x78\x9c", b"\x78\xda"):
        found.setdefault(folded, _FOLDED)
    found.setdefault(b"\\u00", _ESCAPED)
    found.setdefault(b"\\x", _ESCAPED)
    for tag in (b'"$bytes":"', b'"$bytearray":"', b'"$str":"'):
        found.setdefault(tag, _BINARY)
    found.setdefault(START.encode(), _MARK)
    return tuple(found.items())  # fmt: skip


def _cores(value: bytes, *, least: int = 8) -> list[tuple[bytes, int]]:
    """The base64 of ``value`` wherever it may begin in a block, without the characters that its neighbours share, in
    both alphabets; and after how many characters of a block each begins."""
    found: list[tuple[bytes, int]] = []
    for before in range(3):
        coded = base64.b64encode(b"\x00" * before + value)
        skip = (0, 2, 3)[before]
        over = (before + len(value)) % 3
        core = coded[skip : len(coded) - ((0, 3, 2)[over] if over else 0)]
        if len(core) >= least:
            found += [(one, skip % 4) for one in {core, core.replace(b"+", b"-").replace(b"/", b"_")}]
    return found


def _forms(value: bytes) -> Iterable[tuple[bytes, Any]]:
    """How a known value may stand in a text, besides as it is."""
    text = value.decode("utf-8", "surrogateescape")
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    for form in (
        inner,
        json.dumps(inner, ensure_ascii=False)[1:-1],
        json.dumps(text)[1:-1],
        quote(text, safe="", errors="surrogateescape"),
        quote(text, errors="surrogateescape"),
        quote_plus(text, errors="surrogateescape"),
    ):
        coded = form.encode("utf-8", "surrogateescape")
        if coded != value:
            yield coded, None
            yield coded.replace(b"%2F", b"%2f").replace(b"%3A", b"%3a"), None
    for core, more in _cores(value):
        yield core, _Coded(more)
    yield value.hex().encode(), _CODED
    yield value.hex().upper().encode(), _CODED
    yield b"\x00".join(bytes([byte]) for byte in value), _WIDE


@functools.lru_cache(maxsize=32)
def _plan(values: tuple[tuple[bytes, Known], ...], names: tuple[bytes, ...], *, whole: bool) -> _Plan:
    """``whole``: with everything that is the same in every run; else for these values alone."""
    table: dict[bytes, Any] = dict(_fixed()) if whole else {}
    for name in names:
        table.setdefault(b'"%b":' % name, _NAMED)
    for value, known in values:
        for form, meaning in _forms(value):
            table.setdefault(form, known if meaning is None else meaning)
    table.update(values)
    implementation = ahocorasick_rs.Implementation.DFA if whole else None
    return _Plan(
        ahocorasick_rs.BytesAhoCorasick(list(table), implementation=implementation),
        list(table.values()),
        dict(values),
        max(map(len, table), default=0),
    )


def _first(item: tuple[bytes, Known]) -> bytes:
    return item[0]


class _Runs:
    """Runs of letters, digits, ``-`` and ``_``: in a long one nothing can be a key but what begins near its end.
    Without this each beginning in a long run would be followed as far as a key may go."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._end = -1

    def too_long(self, one: Format | _Near, start: int) -> bool:
        """Whether the run from ``start`` on is longer than ``one`` may be. Places come about in order."""
        if type(one) is not Format or not one.within:
            return False
        if start >= self._end or start < self._from:
            self._from = start
            self._end = cast("re.Match[bytes]", _TOKEN.match(self._data, start)).end()
        return self._end - start > one.within

    _from = 0


_TOKEN = re.compile(rb"[A-Za-z0-9_-]*")


@dataclass(slots=True)
class _Look:
    """A first look at one text."""

    plan: _Plan
    stretches: Stretches

    def any(self, hits: list[tuple[int, int, int]], base: int) -> bool:
        """Whether a hit is more than chance. ``base``: where the text in which they were found begins."""
        data, meaning = self.stretches.data, self.plan.meaning
        runs = _Runs(data)
        for index, at, stop in hits:
            what = meaning[index]
            start = base + at
            if type(what) is list:
                for one in cast("list[Any]", what):  # type: ignore[redundant-cast]
                    if not runs.too_long(one, start) and Finder.seen(data, one, start) is not None:
                        return True
            elif what is not _MARK and self._coded(what, start, base + stop):
                return True
        return False

    def _coded(self, what: object, start: int, end: int) -> bool:
        stretches = self.stretches
        if what is _ESCAPED:
            return stretches.data[end : end + 1] in _PRINTED and stretches.escapes(start)
        if type(what) is _Coded:
            return stretches.base64(start, what.more)
        if what is _CODED:
            return stretches.hexadecimal(start)
        if what is _WIDE:
            return stretches.wide(start)
        if what is _ZIPPED:
            return stretches.zipped(start)
        if what is _FOLDED:
            folded = None if start else gunzip(stretches.data)
            return folded is not None and stretches.suspects(folded)
        return what is not _BINARY or self._tag(end)

    def _tag(self, start: int) -> bool:
        data = self.stretches.data
        try:
            plain = base64.b64decode(data[start : data.index(b'"', start)])
        except ValueError:
            return True
        return self.stretches.suspects(plain)


_PRINTED = (b"2", b"3", b"4", b"5", b"6", b"7")  # first digits of what may be in a secret


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
        if type(what) is _Coded:
            self.aligned[start] = what.more
        elif what is _ZIPPED:
            self.aligned[start] = 0
        elif what is _CODED:
            self.digits.append(start)
        elif what is _WIDE:
            self.wide.append(start)
            self.near.append(start)
        elif what is _ESCAPED:
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
        self._plan = _plan(tuple(sorted(values.items(), key=_first)), tuple(names), whole=True)
        self.find = self._plan.automaton.find_matches_as_indexes
        self.quick = more is None
        """Where ``find(data, True)`` finds nothing, there is nothing suspicious."""
        self._learned: dict[bytes, Known] = {}
        self._extra: _Plan | None = None

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
        self._extra = _plan(tuple(sorted(self._learned.items(), key=_first)), (), whole=False)

    # -- a first look --------------------------------------------------------------------------------------------

    def suspects(self, data: bytes) -> bool:
        """Whether ``data`` (the JSON of a payload, or its bytes) must be looked at closely. Never misses what
        ``changes`` finds in the texts of that payload; most payloads cost this one pass."""
        return self.more is not None or self._suspects(data, _DEPTH, Work(len(data)))

    def _suspects(self, data: bytes, depth: int, work: Work) -> bool:
        """``depth``: so many codings inside each other. What is deeper, or more ``work``, is suspect."""

        def inner(plain: bytes) -> bool:
            return not depth or not work.take(len(plain)) or self._suspects(plain, depth - 1, work)

        for plan in (self._plan, self._extra):
            if plan is None:
                continue
            look = _Look(plan, Stretches(data, inner))
            find = plan.automaton.find_matches_as_indexes
            if len(data) <= PIECE:
                if (hits := find(data, True)) and look.any(hits, 0):
                    return True
                continue
            for start in range(0, len(data), PIECE):
                hits = find(data[start : start + PIECE + plan.longest], True)
                if hits and look.any(hits, start):
                    return True
        return False

    @staticmethod
    def seen(data: bytes, one: Format | _Near, start: int) -> Found | None:
        """What is secret where something of a known shape, or a telling name, begins."""
        if type(one) is Format:
            match = one.pattern.match(data, start)
            if match is None:
                return None
            if "value" not in one.pattern.groupindex:
                return Found(*match.span(one.group), Known(one.kind))
            part = "user" if match["value"] is None else "value"
            return None if is_open_url(match[part]) else Found(*match.span(part), Known(one.kind))
        near = cast(_Near, one)
        match = near.context.pattern.match(data, start + near.length)
        if match is None or is_open_value(match["value"]) or not _telling(data, start, match, near.context):
            return None
        return Found(*match.span("value"), Known(NAMED))

    # -- a close look --------------------------------------------------------------------------------------------

    def changes(
        self, data: bytes, replace: Replace, depth: int = _DEPTH, work: Work | None = None
    ) -> list[Change]:
        """What must be replaced in a text, in order, none overlapping another."""
        work = Work(len(data)) if work is None else work
        hits = self.find(data, True)
        if self._extra is not None:
            hits = hits + [
                (-1 - index, start, end)
                for index, start, end in self._extra.automaton.find_matches_as_indexes(data, True)
            ]
        if not hits and self.more is None:
            return []
        found, places = self._direct(data, hits)
        if self.more is not None:
            found += self.more(data)
        made: list[Change] = []
        if depth:
            self._below(data, replace, depth, places, made, work)
        spans = _merged(found, made)
        return [
            one
            if isinstance(one, Change)
            else Change(one.start, one.end, replace(data[one.start : one.end], one.known))
            for one in spans
        ]

    def _direct(self, data: bytes, hits: list[tuple[int, int, int]]) -> tuple[list[Found], _Places]:
        found: list[Found] = []
        places = _Places()
        runs = _Runs(data)
        done: dict[int, int] = {}  # of each format, where its last match ends
        for index, start, end in hits:
            what = self._plan.meaning[index] if index >= 0 else self._extra.meaning[-1 - index]  # type: ignore[union-attr]
            if type(what) is list:
                places.near.append(start)
                for one in cast("list[Any]", what):  # type: ignore[redundant-cast]
                    if done.get(id(one), 0) > start or runs.too_long(one, start):
                        continue
                    seen = self.seen(data, one, start)
                    if seen is not None:
                        found.append(seen)
                        done[id(one)] = seen.end
            elif type(what) is Known:
                found.append(Found(start, end, what, True))
            elif what is _MARK:
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

        def change(inner: bytes) -> bytes:
            return self.applied(inner, replace, depth - 1, work) if work.take(len(inner)) else inner

        escaped = any(mark in data for mark in (b"\\", b"%", b"\x00"))
        parts = [] if not escaped else [(0, len(data))] if every else places.windows(len(data))
        for begin, end in parts:
            for layer in local_layers(data[begin:end], wide=every or places.has_wide(begin, end)):
                if not work.take(len(layer.data)):
                    continue
                for one in self.changes(layer.data, replace, depth - 1, work):
                    start, stop = layer.span(one.start, one.end)
                    made.append(Change(begin + start, begin + stop, layer.code(one.text)))
        if places.aligned:
            made += [Change(*one) for one in base64_blocks(data, places.aligned, change, every=every)]
        if places.digits:
            made += [Change(*one) for one in hex_blocks(data, change, places.digits, every=every)]

    def beginning(self, data: bytes) -> int | None:
        """Where, at the end of ``data``, a secret may have begun that goes on in what follows."""
        places: list[int] = []
        for value in (*self._plan.values, *self._learned):
            at = data.rfind(value[:4], max(0, len(data) - len(value)))
            while at >= 0:
                if value.startswith(data[at:]):
                    places.append(at)
                at = data.rfind(value[:4], max(0, len(data) - len(value)), at)
        tail = max(0, len(data) - _BEGUN_BYTES)
        match = _BEGUN.search(data, tail)
        if match is not None:
            places.append(match.start("password") if match["password"] is not None else match.start())
        return min(places, default=None)

    def applied(self, data: bytes, replace: Replace, depth: int = _DEPTH, work: Work | None = None) -> bytes:
        """``data`` with what must be replaced; the very same where that is nothing."""
        work = Work(len(data)) if work is None else work
        if depth and data[:2] in (b"\x1f\x8b", b"\x78\x01", b"\x78\x9c", b"\x78\xda"):
            folded = recode_gzip(
                data,
                lambda inner: (
                    self.applied(inner, replace, depth - 1, work) if work.take(len(inner)) else inner
                ),
            )
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


def _heads() -> list[bytes]:
    """What keys begin with, the longest first."""
    starts = {start for one in FORMATS for start in one.starts if start[:1].isalnum() and b"/" not in start}
    return [re.escape(start) for _, start in sorted((-len(start), start) for start in starts)]


_BEGUN_BYTES = 4096
# What may go on to be of a known shape, from its first telling characters to the end of the text.
_BEGUN = re.compile(
    rb"(?<![A-Za-z0-9_-])(?:(?:"
    + b"|".join(_heads())
    + rb")[A-Za-z0-9_.-]*|-----BEGIN(?:(?!-----END)[^\"])*(?:-----END[^\"-]*-{0,4})?|[a-z][a-z0-9+.-]*://[^\s/@:\"'<>]*:(?![0-9]+\Z)(?P<password>[^\s/@\"'<>]+))\Z"
)


def is_open_url(value: bytes) -> bool:
    """Whether the password of an address is none: a mask, a placeholder, a reference to a variable."""
    return (
        value[:1] in (b"$", b"{", b"<", b"*", b"%") or START.encode() in value or set(value) <= set(b"*xX.")
    )


_DOTTED = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)+")
_CODE = (b"(", b"[", b".")


def _telling(data: bytes, start: int, match: re.Match[bytes], context: Context) -> bool:
    """Whether what stands after a telling name is more than a piece of a program or a sentence: quoted, in a
    form, or of letters and digits."""
    value = match["value"]
    if match["quote"]:
        return True
    if context.forms:
        before = data.rfind(b"&", max(0, start - 40), start), data.rfind(b"?", max(0, start - 40), start)
        if data[match.end("value") : match.end("value") + 1] == b"&" or max(before) >= 0:
            return True
        if (
            len(value) < 12
            or data[match.end("value") : match.end("value") + 1] in _CODE
            or _DOTTED.fullmatch(value)
        ):
            return False
    return any(byte in b"0123456789" for byte in value) and any(chr(byte).isalpha() for byte in value)


def _merged(found: list[Found], made: list[Change]) -> list[Found | Change]:
    """Found and made in order. What lies in another is part of it; what overlaps another is one secret with it; a block
    that was coded anew gives way to what is secret as a whole.

    Two things give way to what lies in them, so that a replay, which has placeholders there, makes the same: a
    value that is secret for its name alone, and a run that known values fill.
    """
    inner: list[Found | Change] = [one for one in found if one.known.kind != NAMED]
    inner += made
    loose = [one for one in found if one.known.kind == NAMED and not _around(one, inner)]
    solid = [one for one in inner if isinstance(one, Found)]
    whole = sorted((one for one in solid if one.whole), key=_outer_first)
    spans: list[Found] = []
    for one in sorted([*solid, *loose], key=_outer_first):
        last = spans[-1] if spans else None
        if not one.whole and _filled(one, whole):
            continue
        if last is None or one.start >= last.end:
            spans.append(one)
        elif one.end > last.end:
            spans[-1] = Found(last.start, one.end, last.known)
        elif (one.start, one.end) == (last.start, last.end) and one.known.name and not last.known.name:
            spans[-1] = one
    kept: list[Found | Change] = []
    both: list[Found | Change] = [*spans, *made]
    for item in sorted(both, key=_outer_first):
        while kept and isinstance(kept[-1], Change) and isinstance(item, Found) and item.start < kept[-1].end:
            kept.pop()
        if not kept or item.start >= kept[-1].end:
            kept.append(item)
    return kept


def _outer_first(one: Found | Change) -> tuple[int, bool, int]:
    return one.start, isinstance(one, Change), -one.end


def _around(one: Found, others: list[Found | Change]) -> bool:
    return any(one.start <= other.start and other.end <= one.end for other in others)


def _filled(one: Found, others: list[Found]) -> bool:
    """Whether values that are known fill a run but for a few characters."""
    at, left = one.start, 0
    for other in others:
        if other.end > at and other.start < one.end:
            left += max(0, other.start - at)
            at = other.end
    return at > one.start and left + max(0, one.end - at) <= _FEW


_FEW = 4
NAMED = "named secret"
