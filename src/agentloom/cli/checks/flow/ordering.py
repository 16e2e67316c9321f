"""What takes the order of a collection, what drops it, and what becomes of a value as text."""

from __future__ import annotations

import ast
from dataclasses import replace

from agentloom.cli.checks.flow.frame import Frame, text
from agentloom.cli.checks.flow.values import ORDER, Kind, Mark, Value, of_elements

__all__ = ["DROPS", "Ordering"]

DROPS = frozenset(["len", "any", "all", "bool", "isinstance", "issubclass", "type", "callable", "math.fsum"])
"""Functions whose result does not depend on the order of their argument."""
_STABLE = frozenset(["int", "float"])
"""Kinds whose hash is the same in every process."""


def is_loose(kind: Kind) -> bool:
    """Whether iteration over the kind has another order in another process."""
    return kind.name == "set" and (kind.elem is None or kind.elem.name not in _STABLE)


class Ordering(Frame):
    """A frame that knows of order and of text."""

    def taken(self, value: Value, node: ast.AST, of: ast.AST, how: str) -> frozenset[Mark]:
        """The marks of an order that is taken from ``value`` (the expression ``of``) at ``node``."""
        kept = frozenset(mark for mark in value.marks if mark.is_order)
        if is_loose(value.kind):
            said = f"{how} takes the order of the set {text(of)}"
            return kept | {self.mark("set-order", node, text(of), said)}
        return kept

    def in_order(self, value: Value, node: ast.AST, of: ast.AST, how: str, name: str = "list") -> Value:
        """``value`` turned into something with an order: a list of its elements."""
        marks = value.without(ORDER).marks | self.taken(value, node, of, how)
        elem = value.kind.elem if value.kind.name != "dict" else Kind("str")
        return Value(Kind(name, elem), marks)

    def element(self, value: Value, node: ast.AST, of: ast.AST, how: str) -> Value:
        """One element that depends on the order: ``next(iter(x))``, ``x.pop()``."""
        taken = self.taken(value, node, of, how)
        return Value(value.kind.elem or Kind(), value.without(ORDER).marks | taken)

    def shown(self, value: Value, node: ast.AST, of: ast.AST, *, how: str = "str") -> Value:
        """``value`` as text; ``how``: ``str`` or ``repr``. Sets show their order, plain objects their address."""
        marks = value.marks | self.taken(value, node, of, f"the text of {text(of)}")
        kind, depth = value.kind, 0
        while kind.name in ("list", "dict", "set", "iter") and kind.elem is not None and depth < 4:
            kind, how, depth = kind.elem, "repr", depth + 1
            if is_loose(kind):
                marks |= {self.mark("set-order", node, text(of), f"the text of {text(of)} holds sets")}
        shows = kind.name == "object" and self.program.shows_address(
            kind.cls, how="repr" if how == "repr" else "str"
        )
        if kind.name == "function" or shows:
            what = "a function" if kind.name == "function" else f"{kind.cls}, which has no __repr__"
            marks |= {
                self.mark("address", node, text(of), f"the text of {text(of)} is that of {what}: an address")
            }
        return Value(Kind("str"), frozenset(replace(mark, inner=False) for mark in marks))

    def iterated(self, value: Value, node: ast.expr, how: str) -> tuple[Value, frozenset[Mark]]:
        """What a loop over ``value`` gives: an element, and the order that the loop is in."""
        marks = self.taken(value, node, node, how)
        kind = Kind("str") if value.kind.name == "dict" else value.kind.elem
        element = of_elements(Value(value.kind, value.marks | marks))
        return (Value(kind or element.kind, element.marks), marks)

    def kept_in_order(self, target: Value, value: Value) -> frozenset[Mark]:
        """The marks that a container takes on when ``value`` is put into it now: those of the loops around, too."""
        strong = frozenset(replace(mark, weak=False) for mark in value.marks if mark.weak)
        if target.kind.name == "set":
            return value.without(ORDER).inside()
        return Value(value.kind, value.strong()).inside() | strong | frozenset(self.loops)

    def tied(self, call: ast.Call, value: Value, name: str, of: ast.expr) -> Value:
        """``min``, ``max`` or ``sorted`` of ``of``, with a key: what is equal by it comes in the order of ``of``."""
        key = next((keyword.value for keyword in call.keywords if keyword.arg == "key"), None)
        if key is None or (name == "sorted" and not _coarse(key)):
            return value.without(ORDER)
        return Value(value.kind, value.without(ORDER).marks | self.taken(value, call, of, f"{name}(key=...)"))


def _coarse(key: ast.expr) -> bool:
    """Whether many elements have the same key: a length or a count."""
    if isinstance(key, ast.Lambda):
        key = key.body.operand if isinstance(key.body, ast.UnaryOp) else key.body
        key = key.func if isinstance(key, ast.Call) else key
    return (isinstance(key, ast.Name) and key.id == "len") or (
        isinstance(key, ast.Attribute) and key.attr == "count"
    )
