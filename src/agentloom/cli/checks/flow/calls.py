"""What a call gives: of built-in functions, methods, the target's own functions and classes, and everything else."""

from __future__ import annotations

import ast
from dataclasses import replace

from agentloom.cli.checks.flow.direct import Direct
from agentloom.cli.checks.flow.folds import Folds
from agentloom.cli.checks.flow.frame import text
from agentloom.cli.checks.flow.kept import GENERATORS
from agentloom.cli.checks.flow.methods import Methods
from agentloom.cli.checks.flow.names import last, path_of
from agentloom.cli.checks.flow.ordering import DROPS
from agentloom.cli.checks.flow.origins import AT_IMPORT, ENVIRONMENT, is_credential, origin_of
from agentloom.cli.checks.flow.program import Function
from agentloom.cli.checks.flow.sinks import Sinks
from agentloom.cli.checks.flow.values import ORDER, SHY, UNKNOWN, Kind, Mark, Value, join

__all__ = ["Calls"]

_LISTS = frozenset(
    """list tuple enumerate iter zip reversed filter map collections.deque itertools.chain itertools.islice
    itertools.chain.from_iterable itertools.product itertools.permutations itertools.combinations itertools.cycle
    itertools.groupby itertools.accumulate itertools.pairwise itertools.batched itertools.zip_longest
    heapq.merge""".split()
)
_TEXTS = frozenset(
    """textwrap.dedent textwrap.fill textwrap.indent textwrap.shorten os.path.join os.path.dirname os.path.normpath
    os.path.abspath os.path.realpath os.path.expanduser os.path.expandvars os.fspath json.dumps pprint.pformat format
    html.escape ascii""".split()
)
_PATHS = frozenset(["pathlib.Path", "pathlib.PurePath", "Path"])
Given = list[tuple[str | None, Value]]


class Calls(Methods, Direct, Folds, Sinks):
    """A frame that evaluates calls."""

    def call(self, node: ast.Call) -> Value:
        """The value of a call; sinks, effects and changes of state are judged on the way."""
        full = self._full(node.func)
        receiver = self.evaluate(node.func.value) if isinstance(node.func, ast.Attribute) else UNKNOWN
        if not isinstance(node.func, ast.Name | ast.Attribute):
            self.evaluate(node.func)
        given: Given = [(None, self._argument(arg)) for arg in node.args]
        given += [(keyword.arg, self.evaluate(keyword.value)) for keyword in node.keywords]
        values = [value for _, value in given]
        self.judge_call(node, full, receiver, values)
        self.at_prompt(node, given)
        if full == "functools.partial":
            self.judge_container(node, node.args)
        if full in ("print", "sys.stdout.write", "pprint.pprint"):
            nodes = [*node.args, *(keyword.value for keyword in node.keywords)]
            pairs = zip(given, nodes, strict=True)
            shown = [(word, value if word else self.shown(value, node, arg)) for (word, value), arg in pairs]
            self.at_print(node, shown)
            return UNKNOWN
        if self.is_host(node, full):
            self.at_host(node, full, given)
            return UNKNOWN
        return self._result(node, full, receiver, given)

    def _full(self, node: ast.expr) -> str:
        """The dotted name that is called; "" where the first part is a variable of this function."""
        full = self.names.full(node)
        head = full.partition(".")[0]
        return full if not (self.local(head) and isinstance(node, ast.Name)) else ""

    def _argument(self, node: ast.expr) -> Value:
        if isinstance(node, ast.Starred):
            return self.in_order(self.evaluate(node.value), node, node.value, f"*{text(node.value)}")
        return self.evaluate(node)

    def _result(self, node: ast.Call, full: str, receiver: Value, given: Given) -> Value:
        marked = self._origin(node, full)
        if marked is not None:
            return marked
        built = self._built_in(node, full, given)
        if built is None:
            built = self.folded(node, full, [value for _, value in given])
        if built is not None:
            return built
        function = self.callee(node, full, receiver)
        if function is not None:
            return self._own(node, function, receiver, given)
        if isinstance(node.func, ast.Attribute):
            value = self.method(node, receiver, given)
            if value is not None:
                return value
        return self._unknown(node, full, receiver, given)

    def _built_in(self, node: ast.Call, full: str, given: Given) -> Value | None:
        values = [value for _, value in given]
        first = values[0] if values else UNKNOWN
        if full in ("set", "frozenset", "weakref.WeakSet"):
            return Value(Kind("set", first.kind.elem), first.without(ORDER).marks)
        if full in DROPS:
            return Value(
                Kind("int"), join(*values).without(ORDER).marks if full != "len" else frozenset[Mark]()
            )
        if full in ("sorted", "min", "max") and node.args:
            value = self.tied(node, first, full, node.args[0])
            return Value(Kind("list", first.kind.elem), value.marks) if full == "sorted" else value.of("?")
        if full == "sum" and node.args:
            return self._sum(node, first)
        if full in _LISTS:
            skipped = 1 if full in ("map", "filter") else 0
            pairs = list(zip(node.args, values, strict=False))[skipped:]
            taken = [self.in_order(value, node, arg, f"{last(full)}(...)") for arg, value in pairs]
            value = join(*taken) if taken else Value(Kind("list"))
            return Value(Kind("list", value.kind.elem), value.marks)
        if full == "dict.fromkeys" and node.args:
            return self.in_order(first, node, node.args[0], "dict.fromkeys(...)", "dict")
        if full == "next" and node.args:
            return self.element(first, node, node.args[0], "next(...)")
        if full in ("str", "repr", "ascii", "format") and node.args:
            return self.shown(first, node, node.args[0], how="repr" if full == "repr" else "str")
        if full == "json.dumps" and node.args:
            return self._dumps(node, first, given)
        if full in _TEXTS:
            return Value(Kind("str"), join(*values).marks)
        if full in ("int", "float", "round"):
            return Value(Kind("float" if full == "float" else "int"), join(*values, UNKNOWN).marks)
        if full in _PATHS:
            return Value(Kind("path"), join(*values).marks)
        if full == "object":
            return Value(Kind("object", cls="object"))
        if full in ("collections.defaultdict", "dict", "collections.Counter", "collections.OrderedDict"):
            return self._mapping(node, full, first, values)
        return None

    def _mapping(self, node: ast.Call, full: str, first: Value, values: list[Value]) -> Value:
        marks = join(*values).marks
        elem = Kind("set") if node.args and self.names.full(node.args[0]) in ("set", "frozenset") else None
        if node.args and first.kind.name == "set":
            marks = self.in_order(first, node, node.args[0], f"{last(full)}(...)").marks
        return Value(Kind("dict", elem), marks)

    def _sum(self, node: ast.Call, value: Value) -> Value:
        order = {mark for mark in value.marks if mark.is_order}
        marks = value.without(ORDER).marks
        floats = value.kind.elem is not None and value.kind.elem.name == "float"
        if floats and (order or value.kind.name == "set"):
            said = f"{text(node)} adds floats in the order of a set"
            marks |= {self.mark("float-sum", node, text(node.args[0]), said)}
        return Value(Kind("float" if floats else "?"), marks)

    def _dumps(self, node: ast.Call, value: Value, given: Given) -> Value:
        words = {keyword.arg: keyword.value for keyword in node.keywords}
        if (
            isinstance(keys := words.get("sort_keys"), ast.Constant)
            and keys.value
            and value.kind.name == "dict"
        ):
            value = value.without(ORDER)
        default = words.get("default")
        name = self.names.full(default) if default is not None else ""
        marks = join(*(one for _, one in given)).marks
        marks = value.marks if value.kind.name == "dict" else marks
        if name in ("list", "tuple"):
            said = f"{text(node)} writes sets in their own order"
            marks |= {self.mark("set-order", node, text(node.args[0]), said)}
        elif name in ("str", "repr"):
            shown = self.shown(Value(Kind("list", value.kind)), node, node.args[0])
            said = f"{text(node)} writes anything as {name}()"
            marks |= shown.marks or {self.mark("json-default", node, text(node.args[0]), said)}
        return Value(Kind("str"), frozenset(replace(mark, inner=False) for mark in marks))

    def _origin(self, node: ast.Call, full: str) -> Value | None:
        if not self.in_run:
            unseeded = full in GENERATORS and not node.args and not node.keywords
            if AT_IMPORT.fullmatch(full) or unseeded:
                said = f"{text(node)} is evaluated at import"
                return Value(UNKNOWN.kind, frozenset([self.mark("import-time", node, text(node), said)]))
            if ENVIRONMENT.fullmatch(full) and node.args and not is_credential(node.args[0]):
                said = f"{text(node)} is read at import"
                return Value(Kind("str"), frozenset([self.mark("environment", node, text(node), said)]))
        rule = origin_of(full, in_run=self.in_run)
        if rule is None and full in ("pathlib.Path.cwd", "pathlib.Path.home"):
            return Value(Kind("path"))
        if rule is None:
            return None
        if rule == "unseen-random" and self.seeded(full):
            return UNKNOWN
        kind = (
            Kind("path") if full.startswith("pathlib.") else Kind("list") if rule in ORDER else UNKNOWN.kind
        )
        if rule in ORDER and self.allowed:
            return Value(kind)
        return Value(kind, frozenset([self.mark(rule, node, text(node), f"{text(node)}: {_WHAT[rule]}")]))

    def _own(self, node: ast.Call, function: Function, receiver: Value, given: Given) -> Value:
        """A function of the target: walked with these arguments."""
        params = [param.arg for param in function.params]
        bound: dict[str, Value] = {}
        if function.cls is not None and params and isinstance(node.func, ast.Attribute):
            bound[params.pop(0)] = receiver
        elif function.cls is not None and params:
            params.pop(0)
        positional = iter(params)
        for word, value in given:
            name = word if word is not None else next(positional, None)
            if name in params:
                bound[str(name)] = value
        result = self.walk_function(function, bound, self.mode)
        if self.shared.performs.get(function):
            self.host = True
            self.emit(
                self.loops if self.in_run else (),
                f"and {text(node.func)}(...) makes host calls in that order",
            )
        if last(function.name) == "__init__" and function.cls is not None:
            marks = join(*(value for _, value in given)).marks
            carried = frozenset(mark for mark in marks if mark.rule not in SHY)
            return Value(Kind("object", cls=function.cls.node.name), carried)
        return result

    def _unknown(self, node: ast.Call, full: str, receiver: Value, given: Given) -> Value:
        """Something of a library: what goes in comes out, but for what only texts carry on."""
        values = [value for _, value in given]
        name = last(full)
        cls = self.program.cls(name) if isinstance(node.func, ast.Name) else None
        marks = join(*values, receiver).marks if values else receiver.marks
        kept = frozenset(mark for mark in marks if mark.rule not in SHY)
        if cls is not None:
            return Value(Kind("object", cls=name), kept)
        return Value(
            UNKNOWN.kind, kept if not path_of(node.func).startswith("agentloom") else frozenset[Mark]()
        )


_WHAT = {
    "folder": "a path of this machine",
    "machine": "a fact about this machine or process",
    "time-zone": "the time zone of the process",
    "locale": "by the locale of the process",
    "traceback": "the text of a traceback",
    "listing-order": "in the order of the file system",
    "environment": "a variable of the process",
    "arguments": "the arguments of the process",
    "unseen-random": "drawn past the guard",
    "unseen-clock": "read past the guard",
}
