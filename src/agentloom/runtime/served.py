"""What is different between two lists of tools that a server served."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from agentloom.format.values import Tree

__all__ = ["LISTING", "Served", "compare_tools", "tools_in"]

LISTING = "mcp.tools/list"
"""The name of the calls that ask a server for its tools."""

Served = Sequence[Mapping[str, Any]]


def tools_in(answer: Tree | list[Tree], depth: int = 6) -> list[Mapping[str, Any]] | None:
    """The tools in what is recorded of an answer to such a call, or in its chunks; None where there are none."""
    if depth and isinstance(answer, dict):
        tools = answer.get("tools")
        if isinstance(tools, list):
            return [tool for tool in tools if isinstance(tool, dict)]
        answer = list(answer.values())
    if depth and isinstance(answer, list):
        for item in answer:
            found = tools_in(item, depth - 1)
            if found is not None:
                return found
    return None


def compare_tools(before: Served, after: Served) -> list[str]:
    """What is different in ``after``, in words, one for each tool: added, removed, renamed, or which of its fields
    changed, with both values. The order of tools and of keys is no difference. Empty: the same tools.

    Both are lists of tools as a server sends them (``name``, ``description``, ``inputSchema``, ...).
    """
    old, new = _by_name(before), _by_name(after)
    removed, added = [name for name in old if name not in new], [name for name in new if name not in old]
    said: list[str] = []
    for name in list(removed):
        same = [other for other in added if _form(old[name], "name") == _form(new[other], "name")]
        if same:
            removed.remove(name)
            added.remove(same[0])
            said.append(f"tool {name} was renamed: it is {same[0]} now")
    said += [f"tool {name} was removed" for name in removed]
    said += [f"tool {name} was added" for name in added]
    for name in old:
        if name in new:
            said += _changed(name, old[name], new[name])
    return said


def _by_name(tools: Served) -> dict[str, Mapping[str, Any]]:
    return {str(tool.get("name")): tool for tool in tools}


def _form(value: Any, *without: str) -> str:
    if isinstance(value, Mapping):
        fields = cast("Mapping[str, Any]", value)
        value = {name: one for name, one in fields.items() if name not in without}
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _changed(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    if _form(old) == _form(new):
        return []
    said: list[str] = []
    for path, was, now in _differences(old, new, ""):
        said.append(f"tool {name} changed: {path} was {was}, is {now}")
    return said


def _differences(old: Any, new: Any, path: str) -> list[tuple[str, str, str]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        left, right = cast("Mapping[str, Any]", old), cast("Mapping[str, Any]", new)
        found: list[tuple[str, str, str]] = []
        for name in dict.fromkeys((*left, *right)):
            below = f"{path}.{name}" if path else name
            if name not in left:
                found.append((below, "absent", _shown(right[name])))
            elif name not in right:
                found.append((below, _shown(left[name]), "absent"))
            else:
                found += _differences(left[name], right[name], below)
        return found
    return [] if _form(old) == _form(new) else [(path, _shown(old), _shown(new))]


_LONG = 200


def _shown(value: Any) -> str:
    text = _form(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}... ({len(text)} characters)"
