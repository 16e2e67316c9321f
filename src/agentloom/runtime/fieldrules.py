"""Rules for parts of a request: which place in it is load-bearing, which is noted, and which is never written.

A place is a path such as ``args.request_id``, ``metadata.trace`` or ``messages[].name``: names joined by dots, ``[]``
for every item of a list. What lies below a place has its rule, unless a longer path says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from agentloom.errors import ValueRefused
from agentloom.format.canonical import canonical
from agentloom.format.guards import is_list, is_map

__all__ = [
    "MISSING",
    "Node",
    "Role",
    "part",
    "steps_of",
    "tree_of_rules",
    "with_secrets_below",
    "without_secrets",
]

Role = Literal["key", "noted", "secret"]

MISSING: Any = object()
"""Nothing of a value is of the role that was asked for."""

_NAME = re.compile(r"[^.\[\]]+")
_ITEM = "[]"
# Names of headers are compared without case, as RFC 9110 has it.
_FOLDED = frozenset(["headers", "extra_headers"])


@dataclass(slots=True, eq=False)
class Node:
    """One place and what is below it. ``role`` and ``collapse`` None: as the place above."""

    role: Role | None = None
    collapse: bool | None = None
    below: dict[str, Node] = field(default_factory=dict[str, "Node"])
    folded: bool = False
    secretive: bool = False

    def at(self, name: str) -> Node | None:
        """The rule of a field, if it has one of its own."""
        return self.below.get(name.lower() if self.folded else name)


def steps_of(path: str) -> tuple[str, ...]:
    """The steps of a path: ``("messages", "[]", "name")``. Raises ``ValueError`` for what is no path."""
    if not isinstance(cast("object", path), str):
        raise TypeError(f"{path!r} is no path: a path is a text, such as 'messages[].name'")
    steps: list[str] = []
    for part_of in path.split("."):
        name = _NAME.match(part_of)
        rest = part_of[name.end() :] if name else part_of
        if name is None or rest.replace(_ITEM, ""):
            raise ValueError(
                f"{path!r} is no path of a field: write names joined by dots, `[]` for every item of a list"
            )
        steps += [name[0], *[_ITEM] * (len(rest) // 2)]
    return tuple(steps)


def tree_of_rules(roles: Iterable[tuple[str, Role]], collapsed: Iterable[str]) -> Node:
    """The rules as a tree of places."""
    root = Node()
    for path, role in roles:
        _place(root, path).role = role
    for path in collapsed:
        _place(root, path).collapse = True
    _mark(root)
    return root


def _place(root: Node, path: str) -> Node:
    node, folded = root, False
    for number, step in enumerate(steps_of(path)):
        name = step.lower() if folded else step
        node = node.below.setdefault(name, Node())
        node.folded = folded = number == 0 and step in _FOLDED
    return node


def _mark(node: Node) -> bool:
    below = [_mark(one) for one in node.below.values()]
    node.secretive = node.role == "secret" or any(below)
    return node.secretive


# -- trees ------------------------------------------------------------------------------------------------------------


def part(tree: Any, node: Node, role: Role, wanted: Role, collapse: bool = False) -> Any:
    """What of ``tree`` is of the role ``wanted``; the very same object where that is all of it, ``MISSING`` where it is
    nothing. ``role`` is that of the place around it; with ``collapse`` (or where the rule says so) texts of the key are
    taken without their spacing."""
    role = node.role or role
    collapse = collapse if node.collapse is None else node.collapse
    if not node.below:
        if role != wanted:
            return MISSING
        return collapsed(tree) if collapse and wanted == "key" else tree
    tag, inner = _opened(tree)
    if is_map(inner):
        kept: Any = _fields(inner, node, role, wanted, collapse)
    elif is_list(inner) and tag == "$map":
        kept = _pairs(inner, node, role, wanted, collapse)
    elif is_list(inner):
        kept = _items(inner, node, role, wanted, collapse)
    else:
        return part(tree, _PLAIN, role, wanted, collapse)
    if not kept and role != wanted:
        return MISSING
    return tree if kept is inner else _closed(tree, tag, kept)


def _fields(fields: dict[str, Any], node: Node, role: Role, wanted: Role, collapse: bool) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in fields.items():
        found = part(value, node.at(name) or _PLAIN, role, wanted, collapse)
        if found is not MISSING:
            kept[name] = found
    same = len(kept) == len(fields) and all(kept[name] is value for name, value in fields.items())
    return fields if same else kept


def _items(items: list[Any], node: Node, role: Role, wanted: Role, collapse: bool) -> list[Any]:
    below = node.at(_ITEM) or _PLAIN
    found = [part(item, below, role, wanted, collapse) for item in items]
    kept = [item for item in found if item is not MISSING]
    same = len(kept) == len(items) and all(new is old for new, old in zip(kept, items, strict=True))
    return items if same else kept


def _pairs(pairs: list[Any], node: Node, role: Role, wanted: Role, collapse: bool) -> list[Any]:
    kept: list[Any] = []
    for name, value in pairs:
        below = (node.at(name) if isinstance(name, str) else None) or _PLAIN
        found = part(value, below, role, wanted, collapse)
        if found is not MISSING:
            kept.append([name, found])
    return kept


_PLAIN = Node()


def _opened(tree: Any) -> tuple[str | None, Any]:
    """The container inside a tag, and the tag: an object's fields, the items of a tuple, the pairs of a mapping."""
    if not is_map(tree) or len(tree) != 1:
        return None, tree
    tag, payload = next(iter(tree.items()))
    if tag == "$obj":
        data: Any = payload["data"]
        return tag, data["fields"] if payload["how"] == "model" else data
    return (tag, payload) if tag in ("$tuple", "$map") else (None, tree)


def _closed(tree: Any, tag: str | None, kept: Any) -> Any:
    if tag is None:
        return kept
    if tag != "$obj":
        return {tag: kept}
    body = tree["$obj"]
    data = {**body["data"], "fields": kept} if body["how"] == "model" else kept
    return {"$obj": {**body, "data": data}}


def collapsed(tree: Any) -> Any:
    """``tree`` with every run of white space in its texts as one space, and none at their ends."""
    if isinstance(tree, str):
        return " ".join(tree.split())
    if is_list(tree):
        return [collapsed(item) for item in tree]
    if is_map(tree):
        fields = {name: collapsed(value) for name, value in tree.items()}
        for tag in ("$set", "$frozenset"):
            members = fields.get(tag)
            if len(fields) == 1 and is_list(members):
                fields[tag] = sorted(members, key=canonical)
        return fields
    return tree


def _mapping(value: object) -> Mapping[Any, Any] | None:
    return cast("Mapping[Any, Any]", value) if isinstance(value, Mapping) else None  # type: ignore[redundant-cast]


# -- values before they are written -----------------------------------------------------------------------------------


def without_secrets(value: Any, node: Node, path: str) -> Any:
    """``value`` without what is secret in it, the very same object when that is nothing; ``MISSING`` when all of it is.

    Raises ``ValueRefused`` for an object out of which a field cannot be taken.
    """
    if node.role == "secret":
        return MISSING
    if not node.secretive or value is None or isinstance(value, (str, bytes, int, float)):
        return value
    mapping = _mapping(value)
    if mapping is not None:
        kept: dict[Any, Any] = {}
        for name, item in mapping.items():
            below = node.at(name) if isinstance(name, str) else None
            found = item if below is None else without_secrets(item, below, f"{path}.{name}")
            if found is not MISSING:
                kept[name] = found
        return kept
    below = node.at(_ITEM)
    if type(value) in (list, tuple) and below is not None:
        found = [without_secrets(item, below, f"{path}[{n}]") for n, item in enumerate(value)]
        return type(value)(item for item in found if item is not MISSING)
    if not any(one.secretive and hasattr(value, name) for name, one in node.below.items()):
        return value
    raise ValueRefused(
        path,
        type(value).__qualname__,
        "a field below it is secret and cannot be taken out of it",
        hint=f"make {path} as a whole secret, or pass a mapping",
    )


def with_secrets_below(value: Any, recorded: Any, node: Node) -> Any:
    """``recorded`` (what ``without_secrets`` left of ``value``, decoded) with the secrets put back where they were."""
    if node.role == "secret":
        return value
    if not node.secretive:
        return recorded
    mapping = _mapping(value)
    if mapping is not None and is_map(recorded):
        whole: dict[Any, Any] = {}
        for name, item in mapping.items():
            below = node.at(name) if isinstance(name, str) else None
            kept = recorded.get(name)  # what is not there is secret, as a whole
            whole[name] = kept if below is None else with_secrets_below(item, kept, below)
        return whole
    below = node.at(_ITEM)
    if type(value) in (list, tuple) and below is not None:
        kept_items = iter(recorded)
        whole_items = [
            item if below.role == "secret" else with_secrets_below(item, next(kept_items), below)
            for item in value
        ]
        return type(value)(whole_items)
    return recorded
