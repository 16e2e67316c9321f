"""Whether two payloads agree but for the numbers of secrets."""

from __future__ import annotations

from typing import cast

import orjson

from agentloom.format.canonical import canonical
from agentloom.format.guards import is_list, is_map
from agentloom.format.placeholders import START
from agentloom.format.values import Tree
from agentloom.runtime.redaction import Redactor

__all__ = ["agree", "ordered"]


def agree(redactor: Redactor, then: Tree, now: Tree) -> bool:
    """Whether two trees are equal but for numbers of secrets, or some of their texts are: a report names what else
    differs, and not these."""
    if redactor.agree(then, now):
        return True
    agreed = False
    todo = [(then, now)]
    while todo:
        one, other = todo.pop()
        if type(one) is str and type(other) is str:
            agreed = (START in one and one != other and redactor.agree(one, other)) or agreed
        elif is_map(one) and is_map(other):
            todo += [(one[name], other[name]) for name in one if name in other]
        elif is_list(one) and is_list(other):
            todo += zip(one, other, strict=False)
    return agreed


def ordered(tree: Tree) -> Tree:
    """``tree`` in canonical form: the order of fields is not compared."""
    return cast(Tree, orjson.loads(canonical(tree)))
