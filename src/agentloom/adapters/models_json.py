"""JSON that may have another shape than its protocol says: read as what was expected, or as empty."""

from __future__ import annotations

from typing import Any, cast

__all__ = ["as_list", "as_mapping"]


def as_mapping(value: object) -> dict[str, Any]:
    """``value`` itself when it is a mapping; else a new empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """``value`` itself when it is a list; else a new empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []  # type: ignore[redundant-cast]
