"""How much a tree takes in memory, and how deep it is: what keeps a small file from unfolding into an endless one."""

from __future__ import annotations

from typing import cast

from agentloom.format.canonical import Tree
from agentloom.format.guards import is_container, is_map

__all__ = ["height_of", "levels", "weight"]

_FEW = 40
_CONTAINER = 48  # bytes


def weight(text: bytes) -> int:
    """About what the tree of a JSON text takes in memory: its bytes, and something for each array and object."""
    return len(text) + _CONTAINER * (text.count(b"[") + text.count(b"{"))


def height_of(tree: Tree, text: bytes) -> int:
    """The levels of a tree, or a small number that is not less; ``text`` is its JSON."""
    most = text.count(b"[") + text.count(b"{")
    return most if most <= _FEW else levels(tree)


def levels(tree: Tree) -> int:
    """The levels of arrays and objects in a tree."""
    height, level = 0, [tree] if is_container(tree) else []
    while level:
        height += 1
        inner: list[Tree] = []
        for item in level:
            below = item.values() if is_map(item) else cast("list[Tree]", item)
            inner += [each for each in below if is_container(each)]
        level = inner
    return height
