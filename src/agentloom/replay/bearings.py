"""How definitions of the program bear on one place: what it uses, what leads to it, what that uses.

Names are compared, nothing is resolved: a name that is bound twice counts for both. A heuristic for ranking.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from agentloom.replay.code import ModuleSource

__all__ = ["Bearings", "bearings"]

_FAR = 6
"""Steps after which a connection says nothing."""


@dataclass(frozen=True, slots=True)
class Bearings:
    """Names around a place, with their distance in steps.

    ``below``: what its function refers to, and what that refers to; ``above``: the functions that lead to it;
    ``beside``: what those refer to; ``leading``: the place's own function and those above it.
    """

    below: Mapping[str, int]
    above: Mapping[str, int]
    beside: Mapping[str, int]
    leading: frozenset[str]


def bearings(modules: Mapping[str, ModuleSource], file: str, line: int, function: str) -> Bearings:
    """What bears on ``file:line`` in ``function``, by the sources in ``modules``; a module that does not parse is
    left out."""
    uses: dict[str, set[str]] = {}
    functions: set[str] = set()
    start: set[str] = set()
    for source in modules.values():
        for node in _definitions(source.text):
            found = _names(node)
            names = _bound(node)
            for name in names:
                uses.setdefault(name, set()).update(found)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.update(names)
            inside = node.lineno <= line <= (node.end_lineno or node.lineno)
            if source.file == file and inside and not isinstance(node, ast.ClassDef):
                start |= found
    above = _callers(function, {name: uses[name] for name in functions})
    beside = {used for name in above for used in uses[name]}
    return Bearings(_distances(start, uses), above, _distances(beside, uses), frozenset((function, *above)))


def _definitions(text: str) -> Iterable[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign):
            yield node


def _names(node: ast.AST) -> set[str]:
    found = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return found | {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}


def _bound(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.name]


def _callers(function: str, uses: Mapping[str, set[str]]) -> dict[str, int]:
    """Functions that refer to ``function``, those that refer to them, and so on."""
    out: dict[str, int] = {}
    level, distance = {function}, 1
    while level and distance < _FAR:
        level = {name for name, used in uses.items() if used & level and name not in out and name != function}
        for name in level:
            out[name] = distance
        distance += 1
    return out


def _distances(start: set[str], uses: Mapping[str, set[str]]) -> dict[str, int]:
    out: dict[str, int] = {}
    level, distance = start, 0
    while level and distance < _FAR:
        for name in level:
            out.setdefault(name, distance)
        level = {used for name in level for used in uses.get(name, ()) if used not in out}
        distance += 1
    return out
