"""The values of expressions."""

from __future__ import annotations

import ast
from dataclasses import replace

from agentloom.cli.checks.flow.calls import Calls
from agentloom.cli.checks.flow.frame import text
from agentloom.cli.checks.flow.names import path_of
from agentloom.cli.checks.flow.origins import ATTRIBUTES, ENVIRONMENT, is_credential, origin_of
from agentloom.cli.checks.flow.values import ORDER, UNKNOWN, Kind, Mark, Value, join

__all__ = ["Expressions"]

_SET_OPERATORS = (ast.BitAnd, ast.BitOr, ast.Sub, ast.BitXor)


class Expressions(Calls):
    """A frame that evaluates expressions."""

    def evaluate(self, node: ast.expr | None) -> Value:
        """See ``Frame.evaluate``."""
        if node is None:
            return UNKNOWN
        handler = getattr(self, f"on_{type(node).__name__.lower()}", None)
        if handler is not None:
            found: Value = handler(node)
            return found
        return join(
            *(self.evaluate(child) for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)),
            UNKNOWN,
        )

    def on_constant(self, node: ast.Constant) -> Value:
        for kind, names in ((bool, "int"), (int, "int"), (float, "float"), (str, "str")):
            if isinstance(node.value, kind):
                return Value(Kind(names))
        return UNKNOWN

    def on_name(self, node: ast.Name) -> Value:
        full = self.names.full(node)
        self.judge_name(node, full)
        found = self.lookup(node.id)
        if found is not None:
            return self._loaded(node, found)
        if node.id == "__file__":
            mark = self.mark("folder", node, "__file__", "__file__: a path of this machine")
            return Value(Kind("str"), frozenset([mark]))
        if self.program.function(self.file, full) is not None and not self.local(node.id):
            return Value(Kind("function"))
        return self._by_name(node, full)

    def _by_name(self, node: ast.expr, full: str) -> Value:
        """An attribute of a module. A name imported from ``time`` is bound at import, past the guard."""
        early = not self.in_run or (isinstance(node, ast.Name) and full.startswith("time."))
        rule = origin_of(full, in_run=not early) if full in ATTRIBUTES else None
        if rule is None:
            return UNKNOWN
        when = "of this process" if not early else "of the process that imports it"
        return Value(UNKNOWN.kind, frozenset([self.mark(rule, node, text(node), f"{text(node)} is {when}")]))

    def _loaded(self, node: ast.expr, value: Value) -> Value:
        """A variable that is read: what was computed at import is found where a run uses it."""
        if self.in_run and not self.local(path_of(node).partition(".")[0]):
            early = [mark for mark in value.marks if mark.rule == "import-time"]
            self.emit(early, f"and is used in a run in line {node.lineno}")
            return value.without(frozenset(["import-time"]))
        return value

    def on_attribute(self, node: ast.Attribute) -> Value:
        full = self.names.full(node)
        self.judge_name(node, full)
        path = path_of(node)
        if path and path in self.env:
            return self.env[path]
        if full in ATTRIBUTES:
            return self._by_name(node, full)
        owner = self.evaluate(node.value)
        if owner.kind.name == "path" and node.attr in ("name", "stem", "suffix"):
            return Value(Kind("str"), owner.without(frozenset(["folder"])).marks)
        cls = owner.kind.cls if owner.kind.name == "object" else ""
        if (
            not cls
            and isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls")
            and self.function is not None
        ):
            cls = self.function.cls.node.name if self.function.cls is not None else ""
        if not cls and isinstance(node.value, ast.Name) and self.program.cls(node.value.id) is not None:
            cls = node.value.id
        if cls and self.in_run:
            held = self.shared.of_classes.get((cls, node.attr), UNKNOWN)
            early = [mark for mark in held.marks if mark.rule == "import-time"]
            self.emit(early, f"and is used in a run in line {node.lineno}")
        kind = self.shared.attributes.kind(cls, node.attr) if cls else Kind()
        return Value(kind if kind != Kind() or owner.kind.name != "path" else Kind("path"), owner.marks)

    def on_call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id == "next" and node.args:
            self.drawn(node, node.args[0])
        self.drawn_from(node)
        return self.call(node)

    def on_await(self, node: ast.Await) -> Value:
        return self.evaluate(node.value)

    def on_set(self, node: ast.Set) -> Value:
        values = [self.evaluate(one) for one in node.elts]
        kinds = {value.kind for value in values}
        return Value(Kind("set", kinds.pop() if len(kinds) == 1 else None), join(*values).inside())

    def on_list(self, node: ast.List | ast.Tuple) -> Value:
        self.judge_container(node, node.elts)
        values = [self._argument(one) for one in node.elts]
        kinds = {value.kind for value in values}
        telling = [kind for kind in kinds if kind.name in ("set", "object")]
        elem = kinds.pop() if len(kinds) == 1 else telling[0] if telling else None
        # What a star unpacks is no element: its order is the list's own.
        marks = (
            one.marks if isinstance(node.elts[at], ast.Starred) else one.inside()
            for at, one in enumerate(values)
        )
        return Value(Kind("list", elem), frozenset[Mark]().union(*marks))

    on_tuple = on_list

    def on_dict(self, node: ast.Dict) -> Value:
        self.judge_container(node, node.values)
        keys = [self.evaluate(key) for key in node.keys if key is not None]
        values = [self.evaluate(value) for value in node.values]
        kinds = {value.kind for value in values}
        unpacked = [value for key, value in zip(node.keys, values, strict=True) if key is None]
        held = [value for key, value in zip(node.keys, values, strict=True) if key is not None]
        marks = frozenset[Mark]().union(
            *(one.inside() for one in (*keys, *held)), *(one.marks for one in unpacked)
        )
        return Value(Kind("dict", kinds.pop() if len(kinds) == 1 else None), marks)

    def on_joinedstr(self, node: ast.JoinedStr) -> Value:
        return Value(
            Kind("str"), frozenset[Mark]().union(*(self.evaluate(part).marks for part in node.values))
        )

    def on_formattedvalue(self, node: ast.FormattedValue) -> Value:
        how = "repr" if node.conversion == ord("r") else "str"
        value = self.shown(self.evaluate(node.value), node.value, node.value, how=how)
        form = node.format_spec
        parts = form.values if isinstance(form, ast.JoinedStr) else []
        if any(
            isinstance(part, ast.Constant) and str(part.value).endswith("n") and "%" not in str(part.value)
            for part in parts
        ):
            said = f"{text(node.value)} is formatted by the locale of the process"
            value = value.marked(self.mark("locale", node.value, text(node.value), said))
        return value

    def on_binop(self, node: ast.BinOp) -> Value:
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        both = {left.kind.name, right.kind.name}
        if isinstance(node.op, _SET_OPERATORS) and ("set" in both or "keys" in both) and "dict" not in both:
            elem = left.kind.elem if left.kind.elem == right.kind.elem else None
            return Value(Kind("set", elem), join(left, right).without(ORDER).marks)
        if isinstance(node.op, ast.Mod) and left.kind.name == "str":
            return Value(Kind("str"), left.marks | self._filled(node.right, right))
        if isinstance(node.op, ast.Div) and both <= {"int", "float"}:
            return Value(Kind("float"), join(left, right).marks)
        if isinstance(node.op, ast.Div) and "path" in both:
            return Value(Kind("path"), join(left, right).marks)
        value = join(left, right)
        return Value(Kind("float"), value.marks) if both == {"int", "float"} else value

    def _filled(self, node: ast.expr, value: Value) -> frozenset[Mark]:
        """The marks of what ``%`` fills a text with."""
        if not isinstance(node, ast.Tuple):
            return self.shown(value, node, node).marks
        return frozenset[Mark]().union(
            *(self.shown(self.evaluate(part), part, part).marks for part in node.elts)
        )

    def on_compare(self, node: ast.Compare) -> Value:
        for part in (node.left, *node.comparators):
            self.evaluate(part)
        return Value(Kind("int"))

    def on_boolop(self, node: ast.BoolOp) -> Value:
        return join(*(self.evaluate(one) for one in node.values))

    def on_unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        return Value(Kind("int")) if isinstance(node.op, ast.Not) else value

    def on_ifexp(self, node: ast.IfExp) -> Value:
        self.evaluate(node.test)
        return join(self.evaluate(node.body), self.evaluate(node.orelse))

    def on_namedexpr(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.env[node.target.id] = value
        return value

    def on_subscript(self, node: ast.Subscript) -> Value:
        owner = self.evaluate(node.value)
        self.evaluate(node.slice)
        if (
            not self.in_run
            and ENVIRONMENT.fullmatch(self.names.full(node.value))
            and not is_credential(node.slice)
        ):
            said = f"{text(node)} is read at import"
            return Value(Kind("str"), frozenset([self.mark("environment", node, text(node), said)]))
        if isinstance(node.slice, ast.Slice) or owner.kind.name == "str":
            return owner
        marks = owner.without(ORDER).marks if owner.kind.name == "dict" else owner.marks
        return Value(owner.kind.elem or Kind(), frozenset(replace(mark, inner=False) for mark in marks))

    def on_lambda(self, node: ast.Lambda) -> Value:
        before = {arg.arg: self.env.get(arg.arg) for arg in node.args.args}
        self.env.update(dict.fromkeys(before, UNKNOWN))
        self.evaluate(node.body)
        for name, value in before.items():
            if value is None:
                self.env.pop(name, None)
            else:
                self.env[name] = value
        return Value(Kind("function"))

    # -- comprehensions ------------------------------------------------------------------------------------------------

    def on_listcomp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Value:
        marks, depth = self._generators(node.generators)
        element = self.evaluate(node.elt)
        del self.loops[len(self.loops) - depth :]
        if isinstance(node, ast.SetComp):
            return Value(Kind("set", element.kind), Value(element.kind, element.strong()).inside())
        return Value(Kind("list", element.kind), Value(element.kind, element.strong()).inside() | marks)

    on_generatorexp = on_setcomp = on_listcomp

    def on_dictcomp(self, node: ast.DictComp) -> Value:
        marks, depth = self._generators(node.generators)
        held = self.evaluate(node.value)
        value, kind = join(self.evaluate(node.key), held), held.kind
        del self.loops[len(self.loops) - depth :]
        return Value(Kind("dict", kind), Value(kind, value.strong()).inside() | marks)

    def _generators(self, generators: list[ast.comprehension]) -> tuple[frozenset[Mark], int]:
        found: set[Mark] = set()
        depth = 0
        for one in generators:
            value = self.evaluate(one.iter)
            element, marks = self.iterated(value, one.iter, f"for {text(one.target)} in {text(one.iter)}")
            self.bind(one.target, element)
            self.loops += marks
            depth += len(marks)
            found |= marks
            for test in one.ifs:
                self.evaluate(test)
        return frozenset(found), depth

    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign ``value`` to a target of an assignment, a loop or a ``with``."""
        raise NotImplementedError
