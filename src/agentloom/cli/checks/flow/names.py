"""Dotted names: what an expression refers to, through the imports of its file."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

__all__ = ["Names", "base_of", "defaults_of", "dotted", "last", "package_of", "path_of", "written"]


def dotted(node: ast.expr) -> str:
    """``a.b.c`` as written; ``?.c`` for an attribute of something that is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value) or '?'}.{node.attr}"
    return ""


def path_of(node: ast.expr) -> str:
    """The dotted name of a variable or of an attribute of one (``self.messages``); "" for anything else."""
    name = dotted(node)
    return "" if name.startswith("?") else name


def last(name: str) -> str:
    """The part of a dotted name after the last dot."""
    return name.rpartition(".")[2]


def written(node: ast.expr) -> str:
    """The last part of a name as it is written; "" for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def defaults_of(args: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """Parameters with a default, and the default."""
    positional = [*args.posonlyargs, *args.args]
    for param, default in zip(positional[len(positional) - len(args.defaults) :], args.defaults, strict=True):
        yield param.arg, default
    for param, value in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if value is not None:
            yield param.arg, value


def package_of(path: str) -> str:
    """The dotted name of the package that the file at ``path`` is in; "" for none."""
    parts: list[str] = []
    folder = os.path.dirname(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return ".".join(parts)


def base_of(node: ast.ImportFrom, package: str) -> str:
    """The module that is imported from, in a file of ``package``."""
    if not node.level:
        return node.module or ""
    parts = package.split(".") if package else []
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


class Names:
    """The imports of a file: local names and what they stand for, wherever in the file they are imported."""

    def __init__(self, tree: ast.Module, package: str = "") -> None:
        self._stands: dict[str, str] = {}
        self.imported: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.imported.add(alias.name)
                    name = alias.asname or alias.name.partition(".")[0]
                    self._stands[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom):
                base = base_of(node, package)
                self.imported |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
                self._stands.update(
                    {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
                )

    def full(self, node: ast.expr) -> str:
        """The dotted name of ``node`` with the import behind its first part put in; "" for what is no name."""
        name = dotted(node)
        head, dot, rest = name.partition(".")
        return self._stands.get(head, head) + dot + rest if name else ""

    def stands(self, name: str) -> str | None:
        """What was imported under ``name``, or None."""
        return self._stands.get(name)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._stands.items())
