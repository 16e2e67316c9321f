"""What changed in the code: recorded module sources against current ones, by definition.

Two sources are compared as syntax trees: moved lines, comments, blank lines, quoting and formatting are no change.
A changed docstring is a change of its own kind (``docstring``), ranked last: it does nothing by itself, but a
framework may turn it into a tool's description. A module whose text no longer parses is compared as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Literal

from agentloom.format.values import Tree
from agentloom.replay.text import clip

__all__ = ["CodeChange", "ModuleSource", "code_changes"]

What = Literal["changed", "added", "removed"]
Kind = Literal["function", "class", "constant", "import", "statement", "module", "docstring"]
_Def = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """One module of the agent: its text, and the file that the report names (as short as it is clear)."""

    text: str
    file: str


@dataclass(frozen=True, slots=True)
class CodeChange:
    """One definition that differs. ``removed`` and ``added`` are ``(line number, text)``; lines are 1-based."""

    module: str
    file: str
    kind: Kind
    name: str
    what: What
    line: int | None
    line_recorded: int | None
    removed: tuple[tuple[int, str], ...] = ()
    added: tuple[tuple[int, str], ...] = ()
    literals_recorded: frozenset[str] = field(default=frozenset(), repr=False)
    literals: frozenset[str] = field(default=frozenset(), repr=False)
    names: frozenset[str] = field(default=frozenset(), repr=False)
    span: tuple[int, int] = (0, 0)

    @property
    def title(self) -> str:
        """``build_prompt()``, ``SYSTEM``, ``class Router`` as a sentence uses it."""
        if self.kind in ("function", "docstring") and "()" not in self.name:
            name = f"{self.name}()"
            return f"docstring of {name}" if self.kind == "docstring" else name
        if self.kind == "import":
            return "imports"
        return f"class {self.name}" if self.kind == "class" else self.name

    def to_json(self) -> dict[str, Tree]:
        """Plain JSON; at most 40 lines of each side."""
        return {
            "module": self.module,
            "file": self.file,
            "kind": self.kind,
            "name": self.name,
            "what": self.what,
            "line": self.line,
            "line_recorded": self.line_recorded,
            "removed": [[number, clip(text, 400)] for number, text in self.removed[:40]],
            "added": [[number, clip(text, 400)] for number, text in self.added[:40]],
        }


@dataclass(slots=True)
class _Item:
    kind: Kind
    name: str
    node: ast.stmt
    shape: str
    docstring: str | None = None


def code_changes(
    recorded: Mapping[str, ModuleSource], current: Mapping[str, ModuleSource | None]
) -> list[CodeChange]:
    """Changed, added and removed definitions of the recorded modules, in module and line order.

    ``current`` maps a module to its source now, or to None where it is gone. Modules that only ``current`` has are
    reported as added; equal texts cost one comparison.
    """
    out: list[CodeChange] = []
    for module, old in recorded.items():
        new = current.get(module)
        if new is None:
            out.append(CodeChange(module, old.file, "module", module, "removed", None, 1))
        elif new.text != old.text:
            out += _module_changes(module, old, new)
    for module, added in current.items():
        if module not in recorded and added is not None:
            out.append(CodeChange(module, added.file, "module", module, "added", 1, None))
    return out


def _module_changes(module: str, old: ModuleSource, new: ModuleSource) -> list[CodeChange]:
    try:
        old_tree, new_tree = ast.parse(old.text), ast.parse(new.text)
    except (SyntaxError, ValueError, RecursionError):
        removed, added = _line_diff(old.text.splitlines(), 1, new.text.splitlines(), 1)
        first = added[0][0] if added else None
        return [CodeChange(module, new.file, "module", module, "changed", first, None, removed, added)]
    return list(_Compare(module, old, new).bodies("", old_tree.body, new_tree.body))


class _Compare:
    def __init__(self, module: str, old: ModuleSource, new: ModuleSource) -> None:
        self.module = module
        self.old, self.new = old, new
        self.old_lines, self.new_lines = old.text.splitlines(), new.text.splitlines()

    def bodies(self, prefix: str, old: list[ast.stmt], new: list[ast.stmt]) -> Iterator[CodeChange]:
        before, after = _items(prefix, old), _items(prefix, new)
        yield from self.loose(_statements(prefix, old), _statements(prefix, new))
        for key, item in after.items():
            if key not in before:
                yield self.change(item.kind, item.name, None, item)
            elif before[key].shape != item.shape or before[key].docstring != item.docstring:
                yield from self.changed(before[key], item)
        for key, item in before.items():
            if key not in after:
                yield self.change(item.kind, item.name, item, None)

    def loose(self, before: list[_Item], after: list[_Item]) -> Iterator[CodeChange]:
        """Bare statements have no name: those that are the same are matched, what is left between them is paired."""
        then, now = [item.shape for item in before], [item.shape for item in after]
        for tag, i, j, k, m in SequenceMatcher(None, then, now, autojunk=False).get_opcodes():
            if tag == "equal":
                continue
            for number in range(max(j - i, m - k)):
                old = before[i + number] if i + number < j else None
                new = after[k + number] if k + number < m else None
                item = new or old
                if item is not None:
                    yield self.change("statement", item.name, old, new)

    def changed(self, before: _Item, after: _Item) -> Iterator[CodeChange]:
        same_shape = before.shape == after.shape
        if isinstance(before.node, ast.ClassDef) and isinstance(after.node, ast.ClassDef) and not same_shape:
            inner = list(self.bodies(after.name + ".", before.node.body, after.node.body))
            if _class_head(before.node) == _class_head(after.node) and inner:
                yield from inner
                return
        yield self.change("docstring" if same_shape else after.kind, after.name, before, after)

    def change(self, kind: Kind, name: str, before: _Item | None, after: _Item | None) -> CodeChange:
        old_span = _span(before.node) if before else (0, 0)
        new_span = _span(after.node) if after else (0, 0)
        removed, added = _line_diff(
            self.old_lines[max(0, old_span[0] - 1) : old_span[1]],
            old_span[0],
            self.new_lines[max(0, new_span[0] - 1) : new_span[1]],
            new_span[0],
        )
        if kind != "docstring":
            quiet_old, quiet_new = _docstring_lines(before), _docstring_lines(after)
            removed = tuple(row for row in removed if row[0] not in quiet_old)
            added = tuple(row for row in added if row[0] not in quiet_new)
        old_literals = _literals(before.node) if before else frozenset[str]()
        new_literals = _literals(after.node) if after else frozenset[str]()
        line_now = added[0][0] if added else (_near(removed, old_span, new_span) if after else None)
        line_old = removed[0][0] if removed else (old_span[0] or None)
        return CodeChange(
            self.module, self.new.file if after else self.old.file, kind, name,
            "changed" if before and after else "added" if after else "removed",
            line_now, line_old, removed, added,
            old_literals - new_literals, new_literals - old_literals,
            _names(after.node if after else before.node if before else ast.Pass()), new_span,
        )  # fmt: skip


def _items(prefix: str, body: list[ast.stmt]) -> dict[str, _Item]:
    """What a body defines, assigns and imports, by a key that survives moves."""
    out: dict[str, _Item] = {}
    for position, node in enumerate(body):
        if isinstance(node, _Def):
            kind: Kind = "class" if isinstance(node, ast.ClassDef) else "function"
            item = _Item(kind, prefix + node.name, node, _shape(node), _docstrings(node))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            item = _Item("constant", prefix + _targets(node), node, ast.dump(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            item = _Item("import", f"import {_imported(node)}", node, ast.dump(node))
        elif position == 0 and _is_docstring(node):
            item = _Item("docstring", prefix.rstrip(".") or "module", node, "", ast.dump(node))
        else:
            continue
        key, number = f"{item.kind}:{item.name}", 1
        while key in out:  # a name bound twice (overloads, conditional values) keeps both, in order
            number += 1
            key = f"{item.kind}:{item.name}#{number}"
        out[key] = item
    return out


def _statements(prefix: str, body: list[ast.stmt]) -> list[_Item]:
    """The bare statements of a body in order, each called by its first line."""
    named = (_Def, ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)
    return [
        _Item("statement", prefix + clip(ast.unparse(node).partition("\n")[0], 40), node, ast.dump(node))
        for position, node in enumerate(body)
        if not isinstance(node, named) and not (position == 0 and _is_docstring(node))
    ]


def _shape(node: _Def) -> str:
    """The definition's syntax without positions and docstrings."""
    found = [
        (inner, inner.body[0])
        for inner in ast.walk(node)
        if isinstance(inner, _Def) and inner.body and _is_docstring(inner.body[0])
    ]
    for inner, _ in found:
        inner.body = inner.body[1:]
    shape = ast.dump(node)
    for inner, first in found:
        inner.body = [first, *inner.body]
    return shape


def _docstrings(node: _Def) -> str:
    texts = [
        ast.get_docstring(inner, clean=True) or "" for inner in ast.walk(node) if isinstance(inner, _Def)
    ]
    return "\0".join(texts)


def _docstring_lines(item: _Item | None) -> set[int]:
    out: set[int] = set()
    for inner in ast.walk(item.node) if item else ():
        if isinstance(inner, _Def) and inner.body and _is_docstring(inner.body[0]):
            first = inner.body[0]
            out.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return out


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _class_head(node: ast.ClassDef) -> str:
    parts = [*node.bases, *(keyword.value for keyword in node.keywords), *node.decorator_list]
    return ";".join(ast.dump(part) for part in parts)


def _targets(node: ast.Assign | ast.AnnAssign) -> str:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return ", ".join(ast.unparse(target) for target in targets)


def _imported(node: ast.Import | ast.ImportFrom) -> str:
    names = ", ".join(alias.name for alias in node.names)
    return names if isinstance(node, ast.Import) else f"{'.' * node.level}{node.module or ''} {names}"


def _span(node: ast.stmt) -> tuple[int, int]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    return first, node.end_lineno or node.lineno


def _near(removed: tuple[tuple[int, str], ...], old: tuple[int, int], new: tuple[int, int]) -> int:
    """Where removed lines would stand now: same distance from the definition's first line."""
    distance = removed[0][0] - old[0] if removed else 0
    return min(new[0] + distance, new[1])


def _literals(node: ast.AST) -> frozenset[str]:
    """Constants in the code as the texts that could appear in a value: strings as they are, numbers as ``repr``."""
    out: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant):
            value = inner.value
            if isinstance(value, str):
                out.add(value)
            elif isinstance(value, int | float) and not isinstance(value, bool):
                out.add(repr(value))
    return frozenset(out)


def _names(node: ast.AST) -> frozenset[str]:
    """Names and attributes that a definition refers to."""
    out: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            out.add(inner.id)
        elif isinstance(inner, ast.Attribute):
            out.add(inner.attr)
    return frozenset(out)


def _line_diff(
    old: list[str], old_first: int, new: list[str], new_first: int
) -> tuple[tuple[tuple[int, str], ...], tuple[tuple[int, str], ...]]:
    """Changed lines with their numbers, comments and blank lines left out; indentation is kept out of the text."""
    if len(old) > 3000 or len(new) > 3000:
        old, new = old[:3000], new[:3000]
    a, b = [line.strip() for line in old], [line.strip() for line in new]
    removed: list[tuple[int, str]] = []
    added: list[tuple[int, str]] = []
    for tag, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        removed += [(old_first + n, a[n]) for n in range(i, j) if a[n] and not a[n].startswith("#")]
        added += [(new_first + n, b[n]) for n in range(k, m) if b[n] and not b[n].startswith("#")]
    return tuple(removed), tuple(added)
