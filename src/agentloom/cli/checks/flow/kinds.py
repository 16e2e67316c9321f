"""The kind of a value by an annotation, and the kinds of attributes by what classes say of them."""

from __future__ import annotations

import ast

from agentloom.cli.checks.flow.names import Names, last
from agentloom.cli.checks.flow.program import Class, File, Program
from agentloom.cli.checks.flow.values import Kind

__all__ = ["Attributes", "annotated"]

_SETS = frozenset(["set", "Set", "frozenset", "FrozenSet", "AbstractSet", "MutableSet", "WeakSet"])
_LISTS = frozenset(
    """list List Sequence Iterable Collection tuple Tuple deque MutableSequence Iterator""".split()
)
_DICTS = frozenset(["dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "OrderedDict", "Counter"])
_SCALARS = {"str": "str", "int": "int", "bool": "int", "float": "float", "bytes": "str"}
_DEFAULT_SETS = frozenset(["set", "frozenset", "WeakSet"])


def annotated(node: ast.expr | None, names: Names, program: Program) -> Kind:
    """What an annotation says; an unknown kind for none, and for what it does not settle."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return Kind()
    if isinstance(node, ast.BinOp):  # X | None
        sides = [annotated(side, names, program) for side in (node.left, node.right) if not _none(side)]
        return sides[0] if len(sides) == 1 else Kind()
    if isinstance(node, ast.Subscript):
        return _generic(node, names, program)
    if node is None:
        return Kind()
    name = last(names.full(node))
    if name in _SETS:
        return Kind("set")
    if name in _LISTS:
        return Kind("list")
    if name in _DICTS:
        return Kind("dict")
    if name in ("Path", "PurePath"):
        return Kind("path")
    if name in _SCALARS:
        return Kind(_SCALARS[name])
    return Kind("object", cls=name) if program.cls(name) is not None else Kind()


def _none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _generic(node: ast.Subscript, names: Names, program: Program) -> Kind:
    name = last(names.full(node.value))
    inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if name in ("Optional", "Annotated", "Final", "ClassVar", "Required", "NotRequired"):
        return annotated(inner[0], names, program)
    if name in _SETS:
        return Kind("set", annotated(inner[0], names, program))
    if name in _LISTS:
        return Kind("list", annotated(inner[0], names, program))
    if name in _DICTS:
        return Kind("dict", annotated(inner[-1], names, program))
    return Kind()


class Attributes:
    """Kinds of attributes of the classes of a target: from annotations, and from what methods first give them."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._kinds: dict[tuple[str, str], Kind] = {}
        for file in program.files:
            for name, cls in file.classes.items():
                self._of(name, cls, file)

    def kind(self, cls: str, name: str) -> Kind:
        """The kind of the attribute ``name`` of an instance of ``cls``."""
        return self._kinds.get((cls, name), Kind())

    def _of(self, name: str, cls: Class, file: File) -> None:
        target: ast.expr
        for node in ast.walk(cls.node):
            if isinstance(node, ast.AnnAssign):
                target, kind = node.target, annotated(node.annotation, file.names, self._program)
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, kind = node.targets[0], _made(node.value, file, self._program)
            else:
                continue
            mine = (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id == "self"
            )
            attribute = target.attr if mine and isinstance(target, ast.Attribute) else None
            if isinstance(target, ast.Name) and node in cls.node.body:
                attribute = target.id
            if attribute and kind != Kind():
                self._kinds.setdefault((name, attribute), kind)


def _made(node: ast.expr, file: File, program: Program) -> Kind:
    """The kind of what a simple expression makes."""
    if isinstance(node, ast.Set | ast.SetComp):
        return Kind("set")
    if isinstance(node, ast.Call):
        name = last(file.names.full(node.func))
        if name in _DEFAULT_SETS:
            return Kind("set")
        if name == "defaultdict" and node.args and last(file.names.full(node.args[0])) in _DEFAULT_SETS:
            return Kind("dict", Kind("set"))
        return Kind("object", cls=name) if program.cls(name) else Kind()
    return Kind()
