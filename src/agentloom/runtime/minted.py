"""Ids that a framework or a provider mints afresh in every process: paired by first appearance, not compared."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

__all__ = ["align_ids"]

_ID_FIELDS = frozenset(["id", "tool_call_id", "tool_use_id", "call_id"])
# Ids as providers and frameworks mint them: a short prefix and a random part, or a UUID.
_MINTED = re.compile(
    r"^(?:(?:call|toolu|tool|msg|run|chatcmpl|fc|rs|resp|srvtoolu|lc_run|pyd_ai)[-_]+[A-Za-z0-9_-]{6,}"
    r"|(?:[a-z_]+-+)?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$"
)


def align_ids(minted: Iterable[str], now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """The fields ``now`` with each minted id replaced by the one that stood at its first appearance in ``then``.

    Only in the fields ``minted``, where a profile says that ids are; an id that now pairs with another result still
    does.
    """
    aligned = dict(now)
    for name in minted:
        if name in now and name in then:
            ids_now: dict[str, str] = {}
            ids_then: dict[str, str] = {}
            _rename(now[name], ids_now)
            _rename(then[name], ids_then)
            fresh = [one for one in ids_now if one not in ids_then]
            left = [one for one in ids_then if one not in ids_now]
            aligned[name] = _rename(now[name], dict(zip(fresh, left, strict=False)))
    return aligned


def _rename(tree: Any, names: dict[str, str]) -> Any:
    """``tree`` with minted ids by their names in ``names``; one that has none keeps its own, which is put there. Parts
    in which nothing is renamed are shared with the tree given."""
    if isinstance(tree, dict):
        fields = cast("dict[str, Any]", tree)
        renamed = {name: _renamed(name, value, names) for name, value in fields.items()}
        return renamed if any(renamed[name] is not value for name, value in fields.items()) else fields
    if isinstance(tree, list):
        items = cast("list[Any]", tree)  # type: ignore[redundant-cast]
        made = [_rename(item, names) for item in items]
        return made if any(new is not old for new, old in zip(made, items, strict=True)) else items
    return tree


def _renamed(name: str, value: Any, names: dict[str, str]) -> Any:
    if name in _ID_FIELDS and isinstance(value, str) and _MINTED.match(value):
        return names.setdefault(value, value)
    return _rename(value, names)
