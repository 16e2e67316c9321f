"""Calls that put a collection together, or take of it what comes first: ``functools.reduce``, ``heapq``."""

from __future__ import annotations

import ast

from agentloom.cli.checks.flow.names import last
from agentloom.cli.checks.flow.ordering import Ordering
from agentloom.cli.checks.flow.values import ORDER, Kind, Value, join

__all__ = ["Folds"]

_ANY_ORDER = frozenset(
    """operator.or_ operator.and_ operator.xor operator.mul operator.ior operator.iand math.gcd math.lcm max min
    set.union frozenset.union set.intersection frozenset.intersection""".split()
)
"""Functions that give the same in whatever order they are given it."""
_SAME = (ast.BitOr, ast.BitAnd, ast.BitXor, ast.Mult)
_POPS = frozenset(["heapq.heappop", "heapq.heappushpop", "heapq.heapreplace"])
_LARGEST = frozenset(["heapq.nlargest", "heapq.nsmallest"])


class Folds(Ordering):
    """A frame that evaluates such calls."""

    def folded(self, node: ast.Call, full: str, values: list[Value]) -> Value | None:
        """The value of the call; None for another one. ``values``: of its arguments, in their order."""
        if full == "functools.reduce" and len(node.args) > 1:
            return self._reduced(node, values)
        if full in _LARGEST and len(node.args) > 1:
            taken = self.tied(node, values[1], last(full), node.args[1])
            return Value(Kind("list", values[1].kind.elem), taken.marks)
        if full in _POPS and node.args:  # the least, wherever it lies
            return Value(values[0].kind.elem or Kind(), join(*values).without(ORDER).marks)
        return None

    def _reduced(self, node: ast.Call, values: list[Value]) -> Value:
        marks = join(*values).without(ORDER).marks
        start = values[2].kind.name if len(node.args) > 2 else "?"
        if not self._any_order(node.args[0], start):
            marks |= self.taken(values[1], node, node.args[1], "reduce(...)")
        return Value(Kind(start), marks)

    def _any_order(self, function: ast.expr, start: str) -> bool:
        if isinstance(function, ast.Lambda):
            body = function.body
            if isinstance(body, ast.BinOp):
                return isinstance(body.op, _SAME) or (isinstance(body.op, ast.Add) and start == "int")
            return isinstance(body, ast.Call) and self.names.full(body.func) in _ANY_ORDER
        full = self.names.full(function)
        return full in _ANY_ORDER or (full == "operator.add" and start == "int")
