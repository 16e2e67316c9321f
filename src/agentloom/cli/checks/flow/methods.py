"""Methods: of sets, mappings, texts, paths and lists; and those that change what they are called on."""

from __future__ import annotations

import ast
from dataclasses import replace

from agentloom.cli.checks.flow.kept import Kept
from agentloom.cli.checks.flow.names import last, path_of
from agentloom.cli.checks.flow.ordering import Ordering
from agentloom.cli.checks.flow.program import Function
from agentloom.cli.checks.flow.sinks import Sinks
from agentloom.cli.checks.flow.values import ORDER, UNKNOWN, Kind, Value, join

__all__ = ["Methods"]

_SETS = frozenset(["union", "intersection", "difference", "symmetric_difference", "copy"])
_PUT = frozenset(
    ["append", "extend", "insert", "appendleft", "extendleft", "update", "setdefault", "write", "add"]
)
_TEXT = frozenset(
    """strip lstrip rstrip lower upper title capitalize replace format format_map removeprefix removesuffix encode
    decode splitlines split rsplit partition rpartition ljust rjust center zfill casefold swapcase expandtabs translate
    isoformat strftime hex as_posix as_uri absolute resolve expanduser with_name with_suffix joinpath __str__
    __repr__""".split()
)
_READ = frozenset(["read", "read_text", "read_bytes", "readline", "readlines", "json", "relative_to"])
_LISTED = frozenset(["iterdir", "glob", "rglob"])


class Methods(Ordering, Sinks, Kept):
    """A frame that evaluates methods."""

    def method(self, node: ast.Call, receiver: Value, given: list[tuple[str | None, Value]]) -> Value | None:
        """The value of a method call; None where the method is none that is known."""
        if not isinstance(node.func, ast.Attribute):
            return None
        name, values = node.func.attr, [value for _, value in given]
        path = path_of(node.func.value)
        if name in _PUT:
            self._put(node, name, path, receiver, values)
            return UNKNOWN if name != "setdefault" else Value(receiver.kind.elem or Kind())
        if name == "sort":
            self.sorted_in_place(path)
            return UNKNOWN
        if name == "join" and node.args:
            taken = self.in_order(values[0], node, node.args[0], "join(...)")
            marks = receiver.marks | taken.marks
            marks = frozenset(replace(mark, inner=False) for mark in marks)
            if self._elements_show_address(values[0]):
                marks |= self.shown(values[0], node, node.args[0]).marks
            return Value(Kind("str"), marks)
        found = self._of_kind(node, name, receiver, values)
        if found is not None:
            return found
        if name in _READ:
            return UNKNOWN
        if name in _TEXT:
            kind = receiver.kind if receiver.kind.name == "path" else Kind("str")
            return Value(kind, join(receiver, *self._formatted(node, name, values)).marks)
        return None

    def _formatted(self, node: ast.Call, name: str, values: list[Value]) -> list[Value]:
        if name != "format":
            return values
        nodes = [*node.args, *(keyword.value for keyword in node.keywords)]
        return [self.shown(value, node, arg) for value, arg in zip(values, nodes, strict=True)]

    @staticmethod
    def _elements_show_address(value: Value) -> bool:
        return False if value.kind.elem is None else value.kind.elem.name == "object"

    def _of_kind(self, node: ast.Call, name: str, receiver: Value, values: list[Value]) -> Value | None:
        kind = receiver.kind
        if kind.name in ("set", "keys") and name in _SETS:
            return Value(Kind("set", kind.elem), join(receiver, *values).without(ORDER).marks)
        if kind.name == "set" and name == "pop" and isinstance(node.func, ast.Attribute):
            return self.element(receiver, node, node.func.value, "pop()")
        if name == "keys" and kind.name in ("dict", "?") and not node.args:
            return Value(Kind("keys"), receiver.marks)
        if name in ("values", "items") and kind.name == "dict":
            return Value(Kind("list", kind.elem if name == "values" else None), receiver.marks)
        if name == "get" and kind.name == "dict":
            marks = receiver.without(ORDER).marks
            return Value(kind.elem or Kind(), frozenset(replace(mark, inner=False) for mark in marks))
        if name in _LISTED and kind.name == "path" and not self.allowed:
            said = f"{ast.unparse(node)}: in the order of the file system"
            return Value(
                Kind("list", Kind("path")),
                frozenset([self.mark("listing-order", node, ast.unparse(node), said)]),
            )
        return None

    def _put(self, node: ast.Call, name: str, path: str, receiver: Value, values: list[Value]) -> None:
        """A container takes values on, in the order of the loops around."""
        self.changed(node, path, name)
        if name == "extend" and node.args:
            values = [self.in_order(values[0], node, node.args[0], "extend(...)")]
        if name == "add" and receiver.kind.name != "set":
            return
        marks = [mark for value in values for mark in self.kept_in_order(receiver, value)]
        if receiver.kind.name != "set" and not values:
            marks = []
        if path:
            self.add_order(path, marks)
            if (
                receiver.kind.name in ("list", "?")
                and receiver.kind.elem is None
                and name == "append"
                and values
            ):
                before = self.env.get(path, UNKNOWN)
                self.env[path] = Value(
                    Kind("list", values[0].kind) if receiver.kind.name == "list" else before.kind,
                    before.marks,
                )
        self.at_messages(path, node, values)

    def callee(self, node: ast.Call, full: str, receiver: Value) -> Function | None:
        """The function of the target that is called, where that is clear; a class stands for its ``__init__``."""
        func = node.func
        if isinstance(func, ast.Attribute):
            cls = self.program.cls(receiver.kind.cls) if receiver.kind.name == "object" else None
            if cls is None and isinstance(func.value, ast.Name) and func.value.id in ("self", "cls"):
                cls = self.function.cls if self.function is not None else None
            if cls is not None:
                return cls.methods.get(func.attr)
        if isinstance(func, ast.Name) and self.function is not None:
            nested = [one for one in self.file.functions if one.name == f"{self.function.name}.{func.id}"]
            if nested:
                return nested[0]
        if not full:
            return None
        found = self.program.function(self.file, full)
        if found is not None:
            return found
        made = self.program.cls(last(full)) if isinstance(func, ast.Name) else None
        return made.methods.get("__init__") if made is not None else None
