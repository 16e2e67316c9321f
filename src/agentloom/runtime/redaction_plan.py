"""What is looked for in one pass over a text: all that could begin a secret, in every coding."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus

import ahocorasick_rs

from agentloom.format.placeholders import START
from agentloom.runtime.redaction_formats import CONTEXTS, FORMATS, Context, Format
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_tokens import BYTES, PIECES

__all__ = [
    "BINARY",
    "CODED",
    "ESCAPED",
    "FIELD",
    "FOLDED",
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


CODED = object()
"""A secret begins here in hexadecimal, if it is one."""
WIDE = object()
"""Or in UTF-16."""
FOLDED = object()
"""Gzip, at the beginning of the text."""
ESCAPED = object()
"""Escapes of letters that need none."""
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


_REPEATS = 4096  # see ``_repeats``: up to here the fastest automaton is made in a few milliseconds


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
        for coded, more in _cores(start, least=4):
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


def _in_json(form: str, more: int) -> Iterable[str]:
    """A form, and what it is within so many ``more`` texts of JSON: a payload is one, around those of a program."""
    yield form
    for _ in range(more):
        form = json.dumps(form, ensure_ascii=False)[1:-1]
        yield form


def _forms(value: bytes) -> Iterable[tuple[bytes, Any]]:
    """How a known value may stand in a text, besides as it is."""
    text = value.decode("utf-8", "surrogateescape")
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    for form in (
        *_in_json(inner, 1),
        *_in_json(json.dumps(text)[1:-1], 3),
        quote(text, safe="", errors="surrogateescape"),
        quote(text, errors="surrogateescape"),
        quote_plus(text, errors="surrogateescape"),
    ):
        coded = form.encode("utf-8", "surrogateescape")
        if coded != value:
            yield coded, None
            yield coded.replace(b"%2F", b"%2f").replace(b"%3A", b"%3a"), None
    for core, more in _cores(value):
        yield core, Coded(more)
    yield value.hex().encode(), CODED
    yield value.hex().upper().encode(), CODED
    yield b"\x00".join(bytes([byte]) for byte in value), WIDE


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
    for value, known in values:
        for form, meaning in _forms(value):
            table.setdefault(form, known if meaning is None else meaning)
    table.update(values)
    return Plan(
        ahocorasick_rs.BytesAhoCorasick(list(table), implementation=_implementation(values, whole=whole)),
        list(table.values()),
        dict(values),
        max(map(len, table), default=0),
        [
            type(what) is list and all(type(one) is Format and bool(one.within) for one in what)
            for what in table.values()
        ],
    )


def _implementation(
    values: Iterable[tuple[bytes, Known]], *, whole: bool
) -> ahocorasick_rs.Implementation | None:
    """What the automaton is made of; each finds the same. The fastest writes down for each of its states where every
    byte leads, and asks for that one state after another that what was read ends with: of a value that repeats
    itself as many as it has bytes, which takes seconds from 1 000 bytes on."""
    if sum(_repeats(value) for value, _ in values) > _REPEATS:
        return ahocorasick_rs.Implementation.ContiguousNFA
    return ahocorasick_rs.Implementation.DFA if whole else None


def _repeats(value: bytes) -> int:
    """How many proper beginnings of ``value`` each of its beginnings ends with, in all: none where nothing comes again,
    half the square of its length where it is one byte over and over (Knuth, Morris and Pratt's failure function)."""
    longest, count = [0, 0], [0, 0]  # of each beginning: the longest such, and how many
    for size in range(2, len(value) + 1):
        byte, held = value[size - 1], longest[-1]
        while held and value[held] != byte:
            held = longest[held]
        held += value[held] == byte
        longest.append(held)
        count.append(count[held] + (held > 0))
    return sum(count)
