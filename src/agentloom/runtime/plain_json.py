"""JSON as a model writes it, read so that there is one way to read it.

RFC 8259 leaves it to the reader what a name twice in one object means, and has neither NaN nor infinity; readers differ
about both (section 4: "the behavior of software that receives such an object is unpredictable"). What one reader would
drop without a word is an error here.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

__all__ = ["Ambiguous", "read_json"]

_EXCERPT = 80  # characters of a name or a number that are quoted


class Ambiguous(ValueError):
    """A text that some readers take for JSON, each in its own way."""


def read_json(text: str) -> Any:
    """The value of ``text``. ``Ambiguous`` for NaN, infinity, a number that would become it, and a name twice in one
    object; ``json.JSONDecodeError`` for what is no JSON at all, ``RecursionError`` where it is nested too deep."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_distinct)


def _no_constant(word: str) -> Any:
    raise Ambiguous(f"it is not JSON: {word} is no value of JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise Ambiguous(f"the number {_cut(digits)} is too large")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        counted = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counted.items() if count > 1)
        raise Ambiguous(f"the key {json.dumps(_cut(twice), ensure_ascii=False)} is there twice in one object")
    return made


def _cut(text: str) -> str:
    return text if len(text) <= _EXCERPT else text[: _EXCERPT - 3] + "..."
