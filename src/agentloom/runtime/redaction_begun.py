"""Where, at the end of a text, a secret may have begun that goes on in what follows."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentloom.runtime.redaction_formats import FORMATS

__all__ = ["beginning"]


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


def beginning(data: bytes, values: Iterable[bytes]) -> int | None:
    """The place, or None. ``values``: texts that are secret, beside those of known shapes."""
    places: list[int] = []
    for value in values:
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
