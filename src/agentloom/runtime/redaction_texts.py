"""JSON in texts: a document, lines of JSON, or server-sent events, as values; and put together again as they were laid
out."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import orjson

from agentloom.format.guards import is_container, is_list, is_map

__all__ = ["values_in"]

_LAYOUTS: tuple[dict[str, Any], ...] = (
    {"ensure_ascii": False, "separators": (",", ":")},
    {"separators": (",", ":")},
    {"ensure_ascii": False},
    {},
    {"ensure_ascii": False, "indent": 2},
    {"indent": 2},
    {"ensure_ascii": False, "indent": 4},
)
_LINE = re.compile(r"^((?:data:)?[ \t]*)([{\[].*[}\]])([ \t\r]*)$", re.MULTILINE)
_DEEPEST = 100  # levels
_MOST = 16 << 20  # characters that are taken apart


def values_in(text: str) -> tuple[list[Any], Callable[[list[Any]], str]] | None:
    """The values that a text is made of, and what makes a text of such values again: where one is the very same
    object, its part of the text is the same. None for another text."""
    if len(text) > _MOST:
        return None
    bare = text.strip()
    if bare[:1] in ("{", "[") and bare[-1:] in ("}", "]"):
        whole = _loaded(bare)
        if whole is not None:
            start = text.index(bare)
            return [
                whole
            ], lambda new: text[:start] + _dumped(new[0], whole, bare) + text[start + len(bare) :]
    lines = [(match, value) for match in _LINE.finditer(text) if (value := _loaded(match[2])) is not None]
    if len(lines) < 2:
        return None
    return [value for _, value in lines], lambda new: _lines(text, lines, new)


def _lines(text: str, lines: list[tuple[re.Match[str], Any]], new: list[Any]) -> str:
    parts: list[str] = []
    at = 0
    for (match, value), changed in zip(lines, new, strict=True):
        parts += (text[at : match.start(2)], _dumped(changed, value, match[2]))
        at = match.end(2)
    return "".join((*parts, text[at:]))


def _loaded(text: str) -> Any:
    """The value; None for what is no JSON, and for what is nested beyond all measure."""
    try:
        value: Any = orjson.loads(text)
    except (ValueError, RecursionError):
        return None
    return None if text.count("[") + text.count("{") > _DEEPEST and _deeper(value, _DEEPEST) else value


def _deeper(value: Any, levels: int) -> bool:
    here: list[Any] = [value]
    for _ in range(levels):
        below: list[Any] = []
        for item in here:
            if is_map(item):
                below += item.values()
            elif is_list(item):
                below += item
        if not below:
            return False
        here = below
    return any(map(is_container, here))


def _dumped(value: Any, before: Any, text: str) -> str:
    """A value in the layout that ``before`` has in ``text``; in compact form where that is none of the usual ones."""
    if value is before:
        return text
    layout = next((one for one in _LAYOUTS if json.dumps(before, **one) == text), _LAYOUTS[0])
    return json.dumps(value, **layout)
