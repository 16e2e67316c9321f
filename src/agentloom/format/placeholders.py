"""What stands in a trace for a secret: ``__redacted_1__``, numbered by first appearance in the run.

Letters, digits and underscores alone: it comes unchanged through JSON, URLs, forms, headers, shells and most parsers,
so that code which puts a placeholder together with other text on replay makes what was recorded (docs/adr/0015).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["PLACEHOLDER", "START", "numbers_in", "placeholder"]

START = "__redacted_"
PLACEHOLDER = re.compile(r"__redacted_([1-9][0-9]{0,8})__")
_IN_BYTES = re.compile(PLACEHOLDER.pattern.encode())


def placeholder(number: int) -> str:
    """The text that stands for secret ``number`` (from 1) of a run. The one place that knows its form."""
    return f"{START}{number}__"


def numbers_in(text: str | bytes) -> Iterator[int]:
    """The numbers of the placeholders in a text, or in the JSON of a payload."""
    found = _IN_BYTES.finditer(text) if isinstance(text, bytes) else PLACEHOLDER.finditer(text)
    return (int(match[1]) for match in found)
