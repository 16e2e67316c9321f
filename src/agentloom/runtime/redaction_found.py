"""What was found in a text, what stands in its place, and how both are put in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentloom.runtime.redaction_spellings import Spelling

__all__ = ["BEGINNING", "NAMED", "REST", "UNSEARCHED", "Change", "Found", "Known", "Replace", "merged"]

NAMED = "named secret"
BEGINNING = "beginning of a secret"
REST = "rest of a secret"
_FEW = 4


@dataclass(frozen=True, slots=True)
class Known:
    """A value that is secret: what it is called in reports (``environment``), and of which name."""

    kind: str
    name: str | None = None


UNSEARCHED = Known("gzip of more than 64 MiB")
"""What cannot be searched is kept out as a whole."""


@dataclass(frozen=True, slots=True)
class Found:
    """A secret in a text: where it stands, what it is; ``whole``: it is a value that is known, in this ``spelling``."""

    start: int
    end: int
    known: Known
    whole: bool = False
    spelling: Spelling | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """What stands in the place of a part of a text, and for which secrets."""

    start: int
    end: int
    text: bytes
    known: tuple[Known, ...]


Replace = Callable[[bytes, Known], bytes]
"""Gives what stands for a secret."""


def merged(found: list[Found], made: list[Change]) -> list[Found | Change]:
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
        elif (one.start, one.end) == (last.start, last.end) and _says_more(one, last):
            spans[-1] = one
    kept: list[Found | Change] = []
    both: list[Found | Change] = [*spans, *made]
    for item in sorted(both, key=_outer_first):
        while kept and isinstance(kept[-1], Change) and isinstance(item, Found) and item.start < kept[-1].end:
            kept.pop()
        if not kept or item.start >= kept[-1].end:
            kept.append(item)
    return kept


def _says_more(one: Found, last: Found) -> bool:
    """Of the same place: a name says more than none, and of two shapes the one with the longer beginning, which comes
    later."""
    if one.known.name or last.known.name:
        return not last.known.name
    return not last.whole and one.known.kind != NAMED


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
