"""Type guards for JSON containers: exact types, because a subclass is never part of a tree."""

from __future__ import annotations

from types import MemberDescriptorType
from typing import Any, TypeGuard
from weakref import WeakKeyDictionary

__all__ = ["class_of", "is_container", "is_list", "is_map", "slots_of", "tag_of"]


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


_slots: WeakKeyDictionary[type[Any], tuple[str, ...]] = WeakKeyDictionary()


def slots_of(cls: type[Any]) -> tuple[str, ...]:
    """The attributes that the Python classes behind ``cls`` keep in slots."""
    known = _slots.get(cls)
    if known is None:
        known = _slots[cls] = tuple(_find_slots(cls))
    return known


def _find_slots(cls: type[Any]) -> list[str]:
    names: list[str] = []
    for base in cls.__mro__:
        slots: Any = vars(base).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{base.__name__.lstrip('_')}{name}" if name[:2] == "__" != name[-2:] else name
            if isinstance(vars(base).get(mangled), MemberDescriptorType):
                names.append(mangled)
    return names


def class_of(value: object) -> type[Any]:
    """The exact class of ``value``."""
    return type(value)
