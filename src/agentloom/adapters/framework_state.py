"""What a tool changes in the objects that a framework shares between tools and agent (``deps``, ``context``).

A replay does not run the tool, so the changes are kept with its result and made again. Only fields that have an exact
form in a trace are looked at; the others (clients, locks) are what they are in both modes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agentloom.errors import ValueRefused
from agentloom.format.canonical import dump
from agentloom.format.values import Tree, decode, encode
from agentloom.runtime.registry import TYPES

__all__ = ["Before", "put_back"]

_MOST = 1 << 20
"""Bytes of a field above which it is not compared."""


class Before:
    """The fields of shared objects before a tool runs."""

    def __init__(self, shared: Mapping[str, object]) -> None:
        self._shared = {name: one for name, one in shared.items() if _fields(one) is not None}
        self._seen = {name: _trees(one) for name, one in self._shared.items()}

    def changes(self) -> dict[str, Any]:
        """What is different now: by object, ``{"set": {field: value}, "gone": [field, ...]}``."""
        found: dict[str, Any] = {}
        for name, one in self._shared.items():
            before, now = self._seen[name], _trees(one)
            new = {
                field: decode(tree, TYPES)
                for field, (text, tree) in now.items()
                if field not in before or before[field][0] != text
            }
            there = _fields(one) or {}
            gone = [field for field in before if field not in there]
            if new or gone:
                found[name] = {"set": new, "gone": gone}
        return found


def put_back(shared: Mapping[str, object], changed: Mapping[str, Any]) -> None:
    """Make recorded changes again."""
    for name, change in changed.items():
        one: Any = shared.get(name)
        for field, value in change["set"].items():
            if isinstance(one, dict):
                one[field] = value
            else:
                object.__setattr__(one, field, value)
        for field in change["gone"]:
            if isinstance(one, dict):
                cast("dict[str, Any]", one).pop(field, None)
            else:
                one.__dict__.pop(field, None)


def _fields(one: object) -> dict[str, Any] | None:
    if isinstance(one, dict):
        whole = cast("dict[object, Any]", one)
        return {key: item for key, item in whole.items() if isinstance(key, str)}
    if isinstance(one, type) or callable(one):
        return None
    own = getattr(one, "__dict__", None)
    return cast("dict[str, Any]", own) if isinstance(own, dict) else None


def _trees(one: object) -> dict[str, tuple[bytes, Tree]]:
    trees: dict[str, tuple[bytes, Tree]] = {}
    for name, value in (_fields(one) or {}).items():
        try:
            tree = encode(value, TYPES)
        except ValueRefused:
            continue
        text = dump(tree)
        if len(text) <= _MOST:
            trees[name] = text, tree
    return trees
