"""What JSON in UTF-8 cannot carry: which part of a value it is, and why.

Looked for only when sending failed before anything went out: a request that can be sent costs nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from agentloom.errors import ValueRefused
from agentloom.format.words import kind_of

__all__ = ["Unsendable", "first_unsendable", "half_pair", "refuse_half_pairs"]


@dataclass(frozen=True, slots=True)
class Unsendable:
    """A part of a value: its ``path`` (``messages[2].content``), why it cannot be sent, and what to do."""

    path: str
    why: str
    hint: str

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


def first_unsendable(value: object, path: str = "") -> Unsendable | None:
    """The first part of ``value`` that JSON in UTF-8 cannot carry; None where all of it can be sent."""
    return next(_parts(value, path), None)


def half_pair(text: str) -> int | None:
    """The place of the first half of a surrogate pair in ``text``, which UTF-8 does not have; None without one."""
    if text.isascii():
        return None
    return next((at for at, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)


def refuse_half_pairs(path: str, name: str) -> None:
    """``ValueRefused`` where ``name`` has half of a surrogate pair: what a call is listed under is plain text."""
    if not name.isascii() and (found := first_unsendable(name)):
        raise ValueRefused(path, "str", found.why, hint=found.hint)


def _parts(value: object, path: str) -> Iterator[Unsendable]:
    if value is None or isinstance(value, bool | int):
        return
    if isinstance(value, str):
        at = half_pair(value)
        if at is not None:
            why = f"character {at + 1} is half of a surrogate pair (\\u{ord(value[at]):04x}), which UTF-8 does not have"
            yield Unsendable(path, why, 'text.encode("utf-8", "replace").decode() puts "?" in its place')
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield Unsendable(path, f"{value} is no number of JSON", "take the number out")
    elif isinstance(value, Mapping):
        for name, inner in cast("Mapping[object, object]", value).items():
            for found in _parts(name, "") if isinstance(name, str) else ():
                yield Unsendable(f"{path or 'the request'}, key {name!r}", found.why, found.hint)
            yield from _parts(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(cast("Sequence[object]", value)):
            yield from _parts(inner, f"{path}[{number}]")
    else:
        yield Unsendable(path, f"{kind_of(value)} is no value of JSON", "write it as text")
