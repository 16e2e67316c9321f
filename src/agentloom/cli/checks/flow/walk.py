"""Statements, functions and modules: the walk over a target."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from agentloom.cli.checks.findings import Finding
from agentloom.cli.checks.flow.expressions import Expressions
from agentloom.cli.checks.flow.frame import Frame, Mode, Shared, text
from agentloom.cli.checks.flow.kept import lives_on
from agentloom.cli.checks.flow.kinds import Attributes, annotated
from agentloom.cli.checks.flow.left import left_by_tools
from agentloom.cli.checks.flow.names import defaults_of, last, path_of
from agentloom.cli.checks.flow.ordering import is_loose
from agentloom.cli.checks.flow.program import Function, Program
from agentloom.cli.checks.flow.roles import FunctionNode
from agentloom.cli.checks.flow.state import cache_of
from agentloom.cli.checks.flow.values import ORDER, UNKNOWN, Kind, Value, join

__all__ = ["analyse"]

_DEEP = 5
"""How many functions of the target are walked inside one another."""
_WAYS = 40
"""How often a function is walked with the arguments of a call; after that, with what its annotations say."""


def analyse(program: Program) -> list[Finding]:
    """The findings of all that runs inside of a run, in no order."""
    shared = Shared(program, Attributes(program))
    _analyse(shared)
    return list(shared.found.values())


def _analyse(shared: Shared) -> None:
    program = shared.program
    for _ in range(1 if len(program.files) == 1 else 2):  # the second time with what other modules hold
        for file in program.files:
            frame = Walk(shared, file, None, "run" if file.level == "run" else "import")
            frame.block(file.source.tree.body)
            shared.globals[file] = frame.env
    for _ in range(2):  # the second time knowing who makes host calls
        shared.memo.clear()
        shared.ways.clear()
        for function in program.functions:
            if function.role == "run":
                Walk(shared, function.file, None, "run").walk_function(function, {}, "run")
    for function in program.functions:
        _caches(shared, function)
    left_by_tools(shared)


def _caches(shared: Shared, function: Function) -> None:
    """A decorator that caches in front of a tool, or of a function that makes host calls."""
    found = cache_of(function)
    if found is None or not shared.program.is_agent:
        return
    node, in_front = found
    once = last(function.file.names.full(node)) == "cached_property"
    if once and (function.cls is None or not lives_on(shared.program, function.cls)):
        return  # it is kept as long as the object, which is one of the run
    if (function.tool and in_front) or (function.role == "run" and shared.performs.get(function)):
        what = "a tool" if function.tool else "host calls"
        frame = Frame(shared, function.file, function, "run")
        frame.report("cache", node, f"{text(node)} stands in front of {what}: {function.name}()")


class Walk(Expressions):
    """A frame that walks statements."""

    def walk_function(self, function: Function, given: dict[str, Value], mode: Mode) -> Value:
        """See ``Frame.walk_function``. What calls itself, or lies too deep, is unknown."""
        if function.role == "host" and mode == "run":
            return UNKNOWN
        ways = self.shared.ways[function] = self.shared.ways.get(function, 0) + 1
        if ways > _WAYS:
            given = {}
        key = (function, mode, frozenset(given.items()))
        if key in self.shared.memo:
            return self.shared.memo[key]
        if function in self.shared.walking or self.depth >= _DEEP:
            return UNKNOWN
        self.shared.walking.add(function)
        try:
            frame = Walk(self.shared, function.file, function, mode, self.depth + 1)
            result = frame.run(given)
        finally:
            self.shared.walking.discard(function)
        self.shared.performs[function] = frame.host or self.shared.performs.get(function, False)
        self.shared.memo[key] = result
        return result

    def run(self, given: dict[str, Value]) -> Value:
        """Walk this frame's function; what it returns or yields."""
        function = self.function
        if function is None:
            raise TypeError("a module has no parameters")
        for param in function.params:
            kind = annotated(param.annotation, self.names, self.program)
            value = given.get(param.arg, UNKNOWN)
            self.env[param.arg] = (
                value if value.kind != Kind() or kind == Kind() else Value(kind, value.marks)
            )
        for name, default in defaults_of(function.node.args):
            if name not in given:
                early = Walk(self.shared, self.file, None, "import").evaluate(default)
                found = [mark for mark in early.marks if mark.rule == "import-time"]
                self.emit(found if self.in_run else (), f"as a default of {function.name}()")
                if self.env[name].kind == Kind() and early.kind.name != "?":
                    self.env[name] = Value(early.kind, self.env[name].marks)
        if function.cls is not None and function.params and function.params[0].arg == "self":
            self.env.setdefault("self", UNKNOWN)
            if self.env["self"].kind == Kind():
                self.env["self"] = Value(Kind("object", cls=function.cls.node.name))
        self.allowed += sum(map(self._allows, function.node.decorator_list))
        self.block(function.node.body)
        return join(*self.returns) if self.returns else UNKNOWN

    def block(self, body: Iterable[ast.stmt]) -> None:
        """Walk statements in order."""
        for node in body:
            handler = getattr(self, f"at_{type(node).__name__.lower()}_", None)
            if handler is not None:
                handler(node)
            else:
                self._children(node)

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child)
            elif isinstance(child, ast.stmt):
                self.block([child])

    # -- definitions -------------------------------------------------------------------------------------------------

    def at_functiondef_(self, node: FunctionNode) -> None:
        """A function defined here is walked where it is called; what it captures is not followed."""
        self.env[node.name] = Value(Kind("function"))
        for default in (*node.args.defaults, *node.args.kw_defaults):
            self.evaluate(default)

    at_asyncfunctiondef_ = at_functiondef_

    def at_classdef_(self, node: ast.ClassDef) -> None:
        """The body of a class at the level of the module; methods are walked by themselves."""
        before = self.env
        self.env = dict(before)
        self.block(one for one in node.body if not isinstance(one, FunctionNode))
        for name, value in self.env.items():
            if value is not before.get(name):
                self.shared.of_classes[node.name, name] = value
        before.update(self.env)
        self.env = before

    # -- assignments -------------------------------------------------------------------------------------------------

    def at_assign_(self, node: ast.Assign) -> None:
        """``a = b = value``."""
        value = self.evaluate(node.value)
        for target in node.targets:
            if isinstance(target, ast.Attribute):
                self.attribute_set(node, target)
            self._assign(node, target, value, node.value)

    def at_annassign_(self, node: ast.AnnAssign) -> None:
        """``a: X = value``."""
        if node.value is None:
            return
        value, kind = self.evaluate(node.value), annotated(node.annotation, self.names, self.program)
        better = (
            Value(kind, value.marks)
            if value.kind.elem is None and kind.name in (value.kind.name, "set")
            else value
        )
        self._assign(
            node,
            node.target,
            better if value.kind != Kind() or kind == Kind() else Value(kind, value.marks),
            node.value,
        )

    def at_augassign_(self, node: ast.AugAssign) -> None:
        """``a += value``: texts and lists keep the order of the loops around, numbers do not, but for floats."""
        value = self.evaluate(node.value)
        path = path_of(node.target)
        target = self.evaluate(node.target)
        self.counted(node)
        if isinstance(node.target, ast.Attribute):
            self.attribute_set(node, node.target)
        if isinstance(node.target, ast.Name):
            self.rebound(node, node.target.id)
        if isinstance(node.target, ast.Subscript):
            self._into(node, node.target, value)
            return
        if isinstance(node.target, ast.Name):
            self.changed(node, path, "=" if target.kind.name in ("list", "dict", "set") else "")
        self.at_messages(path, node, [value])
        if target.kind.name == "float" and self.loops and isinstance(node.op, ast.Add | ast.Sub):
            said = f"{text(node)} adds floats in the order of a set"
            self.add_order(path, [self.mark("float-sum", node, text(node.target), said)])
        elif target.kind.name in ("str", "list") or value.kind.name in ("str", "list"):
            taken = (
                self.in_order(value, node.value, node.value, f"{text(node.target)} +=")
                if value.kind.name == "set"
                else value
            )
            self.add_order(path, self.kept_in_order(target, taken))
        elif target.kind.name == "set":
            self.add_order(path, value.without(ORDER).marks)
        else:
            self.add_order(path, value.strong())

    def _assign(self, node: ast.AST, target: ast.expr, value: Value, made: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.rebound(node, target.id)
        if isinstance(target, ast.Subscript):
            self._into(node, target, value)
        elif isinstance(target, ast.Tuple | ast.List) and is_loose(value.kind):
            self.bind(target, self.in_order(value, made, made, f"{text(target)} ="))
        else:
            self.bind(target, value)

    def _into(self, node: ast.AST, target: ast.Subscript, value: Value) -> None:
        """``a[k] = value``."""
        path = path_of(target.value)
        owner = self.evaluate(target.value)
        key = self.evaluate(target.slice)
        self.changed(node, path, "=")
        marks = self.kept_in_order(owner, Value(UNKNOWN.kind, value.marks | key.marks))
        self.add_order(path, marks)

    def bind(self, target: ast.expr, value: Value) -> None:
        """See ``Expressions.bind``."""
        if isinstance(target, ast.Tuple | ast.List):
            inner = Value(value.kind.elem or Kind(), value.marks)
            for one in target.elts:
                self.bind(one, inner)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, Value(Kind("list"), value.marks))
        elif path := path_of(target):
            self.env[path] = value

    # -- control -------------------------------------------------------------------------------------------------------

    def at_expr_(self, node: ast.Expr) -> None:
        """An expression by itself."""
        self.evaluate(node.value)

    def at_return_(self, node: ast.Return) -> None:
        """What an agent returns is its output; what is returned from a loop depends on the loop's order."""
        value = self.evaluate(node.value)
        if self.loops and any(mark.weak for mark in value.marks):
            value = value.marked(*self.kept_in_order(UNKNOWN, value))
        self.at_output(value, node)
        self.returns.append(value)

    def at_raise_(self, node: ast.Raise) -> None:
        """The text of an error."""
        value = self.evaluate(node.exc)
        if isinstance(node.exc, ast.Call):
            for arg in node.exc.args:
                value = join(value, self.shown(self.evaluate(arg), arg, arg))
        self.at_raise(value, node)

    def at_for_(self, node: ast.For | ast.AsyncFor) -> None:
        """A loop; over a set, all that it does is done in another order elsewhere."""
        value = self.evaluate(node.iter)
        element, marks = self.iterated(value, node.iter, f"for {text(node.target)} in {text(node.iter)}")
        self.loops += marks
        for _ in range(2):  # what the first round leaves, the second finds
            self.bind(node.target, element)
            self.block(node.body)
        del self.loops[len(self.loops) - len(marks) :]
        self.block(node.orelse)

    at_asyncfor_ = at_for_

    def at_while_(self, node: ast.While) -> None:
        """A loop by condition."""
        for _ in range(2):
            self.evaluate(node.test)
            self.block(node.body)
        self.block(node.orelse)

    def at_if_(self, node: ast.If) -> None:
        """Either way; what both leave is joined. The part for ``__main__`` of an agent's file is outside every run."""
        if self.function is None and not self.in_run and "__name__" in ast.unparse(node.test):
            return
        self.evaluate(node.test)
        before = dict(self.env)
        self.block(node.body)
        after, self.env = self.env, before
        self.block(node.orelse)
        self._merge(after)

    def _merge(self, other: dict[str, Value]) -> None:
        for name, value in other.items():
            mine = self.env.get(name)
            self.env[name] = value if mine is None or mine == value else join(mine, value)

    def at_with_(self, node: ast.With | ast.AsyncWith) -> None:
        """A scope; in one of ``allow`` effects are declared."""
        allowed = 0
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value)
            allowed += self._allows(item.context_expr)
        self.allowed += allowed
        self.block(node.body)
        self.allowed -= allowed

    at_asyncwith_ = at_with_

    def _allows(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self.names.full(node.func) == "agentloom.allow"

    def at_try_(self, node: ast.Try) -> None:
        """All parts in order."""
        host, self.host = self.host, False
        before = dict(self.env)
        self.block(node.body)
        called, self.host = self.host, self.host or host
        after = self.env
        for handler in node.handlers:
            if called and self.in_run and _catches_all(handler) and not _raises(handler):
                self.report("swallow", handler, "this handler also catches the end of the run")
            self.env = dict(before)
            if handler.name:
                self.env[handler.name] = UNKNOWN
            self.block(handler.body)
            handled, self.env = self.env, after
            self._merge(handled)
            after = self.env
        self.block(node.orelse)
        self.block(node.finalbody)

    at_trystar_ = at_try_

    def at_match_(self, node: ast.Match) -> None:
        """Every case."""
        self.evaluate(node.subject)
        for case in node.cases:
            self.block(case.body)

    def on_yield(self, node: ast.Yield) -> Value:
        """What a generator yields, in the order of the loops around."""
        value = self.evaluate(node.value)
        marks = self.kept_in_order(UNKNOWN, value)
        self.returns.append(Value(Kind("list", value.kind), marks))
        self.at_output(Value(value.kind, marks), node)
        return UNKNOWN

    def on_yieldfrom(self, node: ast.YieldFrom) -> Value:
        """What a generator hands on."""
        value = self.in_order(self.evaluate(node.value), node, node.value, "yield from")
        self.returns.append(value)
        self.at_output(value, node)
        return UNKNOWN


def _catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(last(ast.unparse(one)) == "BaseException" for one in types)


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for one in handler.body for node in ast.walk(one))
