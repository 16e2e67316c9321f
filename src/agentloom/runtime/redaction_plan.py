"""What is looked for in one pass over a text: all that could begin a secret, in every coding."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ahocorasick_rs

from agentloom.format.divisions import Divisions
from agentloom.format.placeholders import START
from agentloom.runtime.redaction_formats import CONTEXTS, FORMATS, Context, Format
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_spellings import HEAD, Spelling, Spellings, cores, foreign_letters, spelt
from agentloom.runtime.redaction_tokens import BYTES, PIECES

__all__ = [
    "BINARY",
    "CODED",
    "ESCAPED",
    "FIELD",
    "FOLDED",
    "LETTER",
    "MARK",
    "PIECED",
    "SPELT",
    "WIDE",
    "ZIPPED",
    "Coded",
    "Near",
    "Plan",
    "plan",
]


@dataclass(slots=True)
class Plan:
    """What the patterns of one automaton mean."""

    automaton: Any
    meaning: list[Any]
    values: Mapping[bytes, Known] = field(default_factory=dict[bytes, Known])
    longest: int = 0
    ends_with_run: list[bool] = field(default_factory=list[bool])
    """Of each pattern, whether it begins nothing but keys that end with their run of letters and digits."""
    divisions: Divisions = field(default_factory=Divisions)
    """Payloads in which nothing was found."""


CODED = object()
"""A secret begins here in hexadecimal, if it is one."""
WIDE = object()
"""Or in UTF-16."""
FOLDED = object()
"""Gzip, at the beginning of the text."""
ESCAPED = object()
"""Escapes of letters that need none."""
LETTER = object()
"""The number of a letter of a known value, as escapes have it."""
BINARY = object()
"""A tag with base64."""
ZIPPED = object()
"""Gzip in base64."""
MARK = object()
"""Looks like a placeholder."""
PIECED = object()
"""A list of pieces of a text."""
SPELT = object()
"""The same in JSON in a text."""
FIELD = object()
"""A field that a user declared secret."""


@dataclass(frozen=True, slots=True)
class Coded:
    """A known value in base64, so many characters after a multiple of four."""

    more: int


@dataclass(frozen=True, slots=True)
class Near:
    """A telling name of so many bytes."""

    context: Context
    length: int


# What is looked for in base64, hexadecimal and UTF-16 without having been met: beginnings that are long enough
# to tell there.
_STARTS = tuple(
    b"""sk-proj- sk-ant- sk-or-v1- sk-svcacct- AKIA ASIA ghp_ gho_ ghs_ github_pat_ glpat- xoxb- xoxp- AIza gsk_
    sk_live_ rk_live_ eyJhbGci eyJ0eXAi eyJraWQi -----BEGIN""".split()
)


_LARGE = 1 << 17
"""Bytes of patterns from which on a small automaton is made, not the fastest, which writes down where every byte leads
from each of its states."""


@functools.lru_cache(maxsize=1)
def _fixed() -> tuple[tuple[bytes, Any], ...]:
    """The patterns that are the same in every run, and what each means."""
    found: dict[bytes, Any] = {}
    for shape in FORMATS:
        for start in shape.starts:
            found.setdefault(start, []).append(shape)
    for context in CONTEXTS:
        for start, length in context.starts:
            found.setdefault(start, []).append(Near(context, length))
    for start in _STARTS:
        for coded, more in cores(start, least=4):
            found.setdefault(coded, Coded(more))
        found.setdefault(start.hex().encode(), CODED)
        found.setdefault(start.hex().upper().encode(), CODED)
        found.setdefault(b"\x00".join(bytes([byte]) for byte in start), WIDE)
    found.setdefault(b"c2st", Coded(0))
    for folded in (b"H4sI", b"eJw", b"eJx", b"eJy", b"eJz"):
        found.setdefault(folded, ZIPPED)
    for folded in (b"\x1f\x8b\x08", b"\x78\x01", b"\x78\x9c", b"\x78\xda"):
        found.setdefault(folded, FOLDED)
    found.setdefault(b"\\u00", ESCAPED)
    found.setdefault(b"\\x", ESCAPED)
    for tag in BYTES:
        found.setdefault(f'"{tag}":"'.encode(), BINARY)
    found.setdefault(START.encode(), MARK)
    for piece, meaning in _pieces():
        found.setdefault(piece, meaning)
    return tuple(found.items())  # fmt: skip


def _pieces() -> Iterable[tuple[bytes, Any]]:
    """What stands before the pieces of a text: in JSON, and in JSON in a text."""
    for name in PIECES:
        yield f'"{name}":'.encode(), PIECED
        yield f'\\"{name}\\":'.encode(), SPELT
        yield f'\\\\\\"{name}\\\\\\":'.encode(), SPELT
    for name in ("parts", "done"):  # streams of Gemini and Ollama, kept as a text
        yield f'\\"{name}\\":'.encode(), SPELT
    for gap in (b"", b" "):  # two blocks of text side by side
        yield b'"},%b{"type":%b"text",%b"text":' % (gap, gap, gap), PIECED
        yield b'"},%b{"text":' % gap, PIECED


def _codings(value: bytes) -> Iterable[tuple[bytes, Any]]:
    """How a known value begins in a coding of bytes; and, where letters of it are escaped, what stands there."""
    for core, more in cores(value):
        yield core, Coded(more)
    yield value.hex().encode(), CODED
    yield value.hex().upper().encode(), CODED
    yield b"\x00".join(bytes([byte]) for byte in value), WIDE
    for number in foreign_letters(value):
        yield number, LETTER


def _known(values: Sequence[tuple[bytes, Known]], table: dict[bytes, Any]) -> None:
    """Add to ``table`` what is looked for of known values."""
    heads: dict[bytes, dict[bytes, Spelling]] = {}
    for value, known in values:
        for one in spelt(value, known):
            alike = heads.setdefault(one.text[:HEAD], {})
            if one.text not in alike or one.text is value:  # what a value is itself it is first
                alike[one.text] = one
    for head, alike in heads.items():
        own = any(one.text is one.value for one in alike.values())
        if own or head not in table:
            table[head] = Spellings(sorted(alike.values(), key=_longest_first))
    for value, _ in values:
        for coded, meaning in _codings(value):
            table.setdefault(coded[:HEAD], meaning)


def _longest_first(one: Spelling) -> int:
    return -len(one.text)


@functools.lru_cache(maxsize=32)
def plan(values: tuple[tuple[bytes, Known], ...], names: tuple[bytes, ...], *, whole: bool) -> Plan:
    """``whole``: with everything that is the same in every run; else for these values alone."""
    table: dict[bytes, Any] = dict(_fixed()) if whole else {}
    for name in names:
        for end in (b":", b" :", b","):  # in a mapping, and in a pair
            for mark in (b'"', b'\\"'):
                form = mark + name + mark + end
                if table.get(form, PIECED) is PIECED:
                    table[form] = FIELD
    _known(values, table)
    large = sum(map(len, table)) > _LARGE
    kinds = ahocorasick_rs.Implementation
    return Plan(
        ahocorasick_rs.BytesAhoCorasick(
            list(table), implementation=kinds.ContiguousNFA if large else kinds.DFA if whole else None
        ),
        list(table.values()),
        dict(values),
        max(map(len, table), default=0),
        [
            type(what) is list and all(type(one) is Format and bool(one.within) for one in what)
            for what in table.values()
        ],
    )
