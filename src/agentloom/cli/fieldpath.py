"""Addresses of fields in a recorded value: ``messages[0].content``, ``args["odd key"]``."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, cast

from agentloom.errors import TargetError

if TYPE_CHECKING:
    from agentloom.format.values import Tree

__all__ = ["parse", "pick"]

_STEP = re.compile(r"""\.?([^.\[\]"]+)|\[(-?\d+)\]|\[("(?:[^"\\]|\\.)*")\]""")


def parse(path: str) -> list[str | int]:
    """The steps of ``path``: names and indexes. Raises ``TargetError`` with the place that makes no sense."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None:
            raise TargetError(
                f"{path!r} is no field: cannot read it from {path[at:]!r} on",
                hint='write it as messages[0].content, or args["odd key"]',
                field=path,
                position=at,
            )
        name, index, quoted = match.groups()
        if name is not None:
            steps.append(name)
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(cast(str, json.loads(quoted)))
        at = match.end()
    return steps


def pick(tree: Tree, path: str) -> Tree:
    """The value at ``path`` in ``tree``; an empty path is the whole. Tagged containers are walked through.

    Raises ``TargetError`` that names the deepest part that is there and what it holds.
    """
    done = ""
    for step in parse(path):
        inner = _inside(tree)
        if isinstance(step, int) and isinstance(inner, list) and -len(inner) <= step < len(inner):
            tree, done = inner[step], f"{done}[{step}]"
        elif isinstance(step, str) and isinstance(inner, dict) and step in inner:
            tree, done = inner[step], f"{done}.{step}" if done else step
        else:
            raise TargetError(
                f"no field {path!r}: {done or 'the value'} has no {step!r}",
                hint=_holds(done or "it", inner),
                field=path,
                found=done,
            )
    return tree


def _inside(tree: Tree) -> Tree:
    """What a tagged container holds: a tuple's items, an object's data, a mapping's pairs with text keys."""
    if isinstance(tree, dict) and len(tree) == 1:
        tag, value = next(iter(tree.items()))
        if tag in ("$tuple", "$set", "$frozenset"):
            return value
        if tag == "$obj" and isinstance(value, dict):
            return _inside(value.get("data"))
        if tag == "$error":
            return value
        if tag == "$map" and isinstance(value, list):
            pairs = [pair for pair in value if isinstance(pair, list) and len(pair) == 2]
            return {pair[0]: pair[1] for pair in pairs if isinstance(pair[0], str)}
    return tree


def _holds(what: str, tree: Tree) -> str:
    if isinstance(tree, dict):
        names = ", ".join(list(tree)[:12])
        return f"{what} has: {names}" if names else f"{what} is empty"
    if isinstance(tree, list):
        return f"{what} is a list of {len(tree)}"
    return f"{what} is {type(tree).__name__}, not a container"
