"""What stands in a trace for a part of a request that it does not hold: ``not-kept-NAME``."""

from __future__ import annotations

import re

__all__ = ["unkept", "unkept_in"]

_MARK = re.compile(r"not-kept-([\w.-]*[\w])")
_SPACE = re.compile(r"[^\w.-]+")


def unkept(name: str) -> str:
    """The text that stands for the header, cookie or field ``name``. The one place that knows its form."""
    return f"not-kept-{_SPACE.sub('-', name).strip('-.') or 'value'}"


def unkept_in(text: str) -> list[str]:
    """The names of what is not kept in a text, each once."""
    return list(dict.fromkeys(match[1] for match in _MARK.finditer(text)))
