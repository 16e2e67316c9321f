"""Type guards for JSON containers: exact types, because a subclass is never part of a tree."""

from __future__ import annotations

from typing import Any, TypeGuard

__all__ = ["class_of", "is_container", "is_list", "is_map", "tag_of"]


def is_list(item: object) -> TypeGuard[list[Any]]:
    """Whether ``item`` is exactly a list."""
    return type(item) is list


def is_map(item: object) -> TypeGuard[dict[str, Any]]:
    """Whether ``item`` is exactly a dict (of a tree: its keys are strings)."""
    return type(item) is dict


def is_container(item: object) -> bool:
    """Whether ``item`` is exactly a list or a dict."""
    return type(item) is dict or type(item) is list


def tag_of(item: object) -> tuple[str, Any] | None:
    """Tag and payload of a tagged object: exactly one key, which begins with ``$``."""
    if is_map(item) and len(item) == 1:
        tag, payload = next(iter(item.items()))
        if tag[:1] == "$":
            return tag, payload
    return None


def class_of(value: object) -> type[Any]:
    """The exact class of ``value``."""
    return type(value)
