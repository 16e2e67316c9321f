"""Payloads that the runs of a process begin with, such as the agent's sources: how one is divided is found out once.

What a writer makes of a payload depends on the payload alone as long as it holds nothing else, but for the ids of the
blobs, each of which has a salt of its own. So the pieces are kept with gaps where the ids of other pieces stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Division", "Divisions", "division"]

_HEAD = len(b'{"blob":"%b","salt":"%b","form":"json","data":' % (b"0" * 64, b"0" * 32))
_FORM = b'","form":"json","data":'
_KEPT = 16


@dataclass(frozen=True, slots=True)
class Division:
    """The pieces of one payload in the order that they are written in, the last of which is its root: of each its
    content, its data around the ids of earlier pieces, and which these are; and the parts that may be referred to:
    content, piece, and keys from there."""

    pieces: tuple[tuple[bytes, tuple[bytes, ...], tuple[int, ...]], ...]
    parts: tuple[tuple[bytes, int, tuple[str | int, ...]], ...]

    def write(self, write: Callable[[bytes, bytes], str]) -> list[str]:
        """Write every piece: ``write`` takes data and content, and gives the id."""
        ids: list[str] = []
        for known, around, others in self.pieces:
            data = around[0]
            for other, after in zip(others, around[1:], strict=True):
                data = b"%b%b%b" % (data, ids[other].encode(), after)
            ids.append(write(data, known))
        return ids


class Divisions:
    """The divisions of the payloads that were searched for the same secrets, by their JSON: the first of them."""

    def __init__(self) -> None:
        self._held: dict[bytes, Division] = {}

    def get(self, text: bytes) -> Division | None:
        """How the payload with that JSON is divided, if it is known."""
        return self._held.get(text)

    def keep(self, text: bytes, made: Division | None) -> None:
        """``made`` is how it is divided."""
        if made is not None and len(self._held) < _KEPT:
            self._held[text] = made


def division(
    lines: list[tuple[str, bytes]], whole: Mapping[bytes, str], parts: Mapping[bytes, tuple[str | int, ...]]
) -> Division | None:
    """The division of a payload that was the first of a run: its blob lines, contents and parts. None for one in more
    forms than JSON, or with a part that is more than one blob."""
    if len(lines) != len(whole):
        return None
    numbers: dict[bytes, int] = {}
    pieces: list[tuple[bytes, tuple[bytes, ...], tuple[int, ...]]] = []
    for (blob, line), (known, name) in zip(lines, whole.items(), strict=True):
        if blob != name or not line[:_HEAD].endswith(_FORM):
            return None
        data = line[_HEAD:-2]
        around: tuple[bytes, ...] = (data,)
        others: tuple[int, ...] = ()
        if numbers:
            found = re.split(b"(%b)" % b"|".join(numbers), data)
            around, others = tuple(found[::2]), tuple(numbers[one] for one in found[1::2])
        pieces.append((known, around, others))
        numbers[blob.encode()] = len(numbers)
    places = ((known, place[0], place[1:]) for known, place in parts.items())
    return Division(
        tuple(pieces), tuple((known, numbers[str(blob).encode()], keys) for known, blob, keys in places)
    )
