"""Small mappings of plain leaves, as most arguments of tools are: copied in less time than a serialiser takes."""

from __future__ import annotations

from collections.abc import Callable, ItemsView
from typing import Any

from agentloom.format.limits import INT_MAX, INT_MIN

__all__ = ["small_copy"]

_FIELDS = 8
_LEVELS = 3
_items: Callable[[Any], ItemsView[Any, Any]] = dict[Any, Any].items


def small_copy(value: Any, levels: int = _LEVELS) -> dict[str, Any] | None:
    """A copy of a small mapping whose leaves are ASCII texts, integers of 64 bits, booleans and None; None for all
    others.

    What comes back is both the tree of ``value`` and, for a tree, its value: nothing in it is or looks like a tag.
    """
    if type(value) is not dict:
        return None
    if len(value) > _FIELDS or not levels:  # pyright: ignore[reportUnknownArgumentType]
        return None
    copy: dict[str, Any] = {}
    for key, item in _items(value):
        if type(key) is not str or key[:1] == "$" or not key.isascii():
            return None
        kind: type[Any] = type(item)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            if not item.isascii():
                return None
        elif kind is int:
            if not INT_MIN <= item <= INT_MAX:
                return None
        elif kind is dict:
            inner = small_copy(item, levels - 1)
            if inner is None:
                return None
            copy[key] = inner
            continue
        elif kind is not bool and item is not None:
            return None
        copy[key] = item
    return copy
