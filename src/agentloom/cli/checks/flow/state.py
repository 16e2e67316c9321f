"""State that outlives a run: module variables, default arguments, class attributes, counters, caches."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from agentloom.cli.checks.flow.frame import Frame, Shared, text
from agentloom.cli.checks.flow.names import defaults_of, last, written
from agentloom.cli.checks.flow.program import Class, Function

__all__ = ["CHANGES", "State", "cache_of", "is_mutable", "read_in_run", "reads"]

CHANGES = frozenset(
    """append extend insert appendleft extendleft update setdefault add pop popitem remove discard clear popleft
    __setitem__ sort reverse""".split()
)
"""Methods that change what they are called on."""
_MAKERS = frozenset(["list", "dict", "set", "defaultdict", "deque", "Counter", "OrderedDict", "WeakSet", "bytearray",
                     "TTLCache", "LRUCache", "LFUCache", "Cache"])  # fmt: skip
_CACHES = frozenset(
    """functools.lru_cache functools.cache functools.cached_property cachetools.cached cachetools.cachedmethod
    cachetools.func.ttl_cache cachetools.func.lru_cache async_lru.alru_cache aiocache.cached joblib.Memory.cache
    diskcache.Cache.memoize""".split()
)


def is_mutable(node: ast.expr | None) -> bool:
    """Whether an expression makes a list, a mapping, a set or another container."""
    if isinstance(node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp):
        return True
    return isinstance(node, ast.Call) and written(node.func) in _MAKERS


def _set_in(body: Iterable[ast.stmt], name: str) -> Iterator[ast.expr | None]:
    """What the assignments of a body, not of what is in it, set ``name`` to."""
    for node in body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield node.value


def read_in_run(shared: Shared) -> frozenset[str]:
    """The names that functions of the run read."""
    if shared.read is None:
        runs = (function for function in shared.program.functions if function.role == "run")
        shared.read = frozenset(name for function in runs for name in reads(function.node))
    return shared.read


class State(Frame):
    """A frame that judges changes of what outlives the run. A script begins anew in each process: it has none."""

    @property
    def lasting(self) -> bool:
        """Whether state of the module can be seen by another run."""
        return self.in_run and self.program.is_agent

    def changed(self, node: ast.AST, path: str, how: str) -> None:
        """The container at ``path`` is changed by ``how`` (a method, or ``=``)."""
        head, _, rest = path.partition(".")
        if not self.lasting or not head or (how not in CHANGES and how != "="):
            return
        if not rest and self._is_default(head):
            said = f"{head}, a default argument of {self._within()}(), is changed here"
            self.report("mutable-default", self._default(head) or node, said)
        elif self.is_module_level(head) and not rest and self._is_read(head):
            self._module_state(node, head)
        elif head in ("self", "cls") and rest and "." not in rest:
            self._class_state(node, rest)

    def rebound(self, node: ast.AST, name: str) -> None:
        """A name declared ``global`` is assigned."""
        if self.lasting and name in self.declared_global() and self._is_read(name):
            rule = "counter" if isinstance(node, ast.AugAssign) else "global-state"
            self.report(rule, node, f"{name}, a variable of the module, is assigned in {self._within()}()")

    def counted(self, node: ast.AugAssign) -> None:
        """``Ticket.count += 1``: an attribute of a class is counted up."""
        target = node.target
        if not (self.lasting and isinstance(target, ast.Attribute)):
            return
        owner = target.value
        by_type = isinstance(owner, ast.Call) and written(owner.func) == "type"
        by_class = isinstance(owner, ast.Attribute) and owner.attr == "__class__"
        by_name = isinstance(owner, ast.Name) and (
            owner.id == "cls" or self.program.cls(owner.id) is not None
        )
        if by_type or by_class or by_name:
            self.report(
                "counter", node, f"{text(target)}, an attribute of the class, is counted up in the run"
            )

    def drawn(self, node: ast.Call, argument: ast.expr) -> None:
        """``next(ids)``: of a counter that the module or a class made."""
        name = written(argument)
        if not self.lasting or self.local(name):
            return
        maker = self.made_at(name)
        if isinstance(maker, ast.Call) and self.names.full(maker.func) == "itertools.count":
            self.report(
                "counter", node, f"{text(node)} goes on from where the last run of the process left it"
            )

    # -- what is where -----------------------------------------------------------------------------------------------

    def _module_state(self, node: ast.AST, name: str) -> None:
        if self.is_memo(name):
            said = f"{name} keeps results of {self._within()}() from run to run"
            self.report("cache", node, said)
        else:
            self.report(
                "global-state", node, f"{name}, a variable of the module, is changed in {self._within()}()"
            )

    def _class_state(self, node: ast.AST, attribute: str) -> None:
        cls = self.function.cls if self.function is not None else None
        if cls is None or not cls.plain_bases or _set_by_methods(cls, attribute):
            return
        for value in _set_in(cls.node.body, attribute):
            if is_mutable(value) and self.is_memo(attribute):
                self.report(
                    "cache",
                    node,
                    f"{attribute} of {cls.name} keeps results of {self._within()}() from run to run",
                )
            elif is_mutable(value):
                self.report(
                    "global-state",
                    node,
                    f"{attribute} belongs to the class {cls.name}: all instances share it",
                )

    def is_memo(self, name: str) -> bool:
        """Whether the function looks its results up in ``name`` (also an attribute) before it makes host calls."""
        if self.function is None:
            return False
        read = any(
            (isinstance(one, ast.Compare) and any(written(side) == name for side in one.comparators))
            or (isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)
                and one.func.attr in ("get", "setdefault") and written(one.func.value) == name)
            or (isinstance(one, ast.Try) and any(_looks_up(name, stmt) for stmt in one.body))
            for one in ast.walk(self.function.node)
        )  # fmt: skip
        return read and self.calls_host(self.function)

    def calls_host(self, function: Function) -> bool:
        """Whether the function makes host calls; of one that is being walked, as far as that got."""
        return self.host if function is self.function else self.shared.performs.get(function, False)

    def _is_default(self, name: str) -> bool:
        return self._default(name) is not None and not self._assigned(name)

    def _default(self, name: str) -> ast.expr | None:
        if self.function is None:
            return None
        return next(
            (
                value
                for param, value in defaults_of(self.function.node.args)
                if param == name and is_mutable(value)
            ),
            None,
        )

    def _assigned(self, name: str) -> bool:
        """Whether the function gives the name another value of its own."""
        body = self.function.node.body if self.function is not None else []
        return any(
            isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
            for one in body
            for node in ast.walk(one)
        )

    def is_module_level(self, name: str) -> bool:
        if self.function is None or name in {param.arg for param in self.function.params} or name == "self":
            return False
        if self._assigned(name) and name not in self.declared_global():
            return False
        return is_mutable(self.made_at(name))

    def made_at(self, name: str) -> ast.expr | None:
        """What the module, or a class in it, or the module that the name is imported from, sets ``name`` to."""
        tree = self.file.source.tree
        stands = self.names.stands(name)
        if stands is not None:
            other = self.program.file_of(stands.rpartition(".")[0])
            if other is None:
                return None
            tree, name = other.source.tree, last(stands)
        bodies = [tree.body, *(one.body for one in tree.body if isinstance(one, ast.ClassDef))]
        return next((value for body in bodies for value in _set_in(body, name)), None)

    def _is_read(self, name: str) -> bool:
        """Whether code that runs in a run reads the variable: one that is only written changes nothing."""
        return name in read_in_run(self.shared)

    def declared_global(self) -> set[str]:
        body = self.function.node if self.function is not None else None
        declared = (
            (node for node in ast.walk(body) if isinstance(node, ast.Global)) if body is not None else ()
        )
        return {name for node in declared for name in node.names}

    def _within(self) -> str:
        return self.function.name if self.function is not None else "<module>"


def reads(body: ast.AST) -> set[str]:
    """The names that code reads, but for those that it only changes (``LOG.append(x)``, ``LOG[k] = v``)."""
    changed: set[ast.AST] = set()
    for node in ast.walk(body):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
        ):
            if node.value.func.attr in CHANGES:
                changed.add(node.value.func.value)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            changed.add(node.value)
    return {
        node.id
        for node in ast.walk(body)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in changed
    }


def _looks_up(name: str, node: ast.AST) -> bool:
    return any(
        isinstance(one, ast.Subscript) and isinstance(one.ctx, ast.Load) and written(one.value) == name
        for one in ast.walk(node)
    )


def _set_by_methods(cls: Class, attribute: str) -> bool:
    return any(
        isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name) and node.value.id == "self"
        for method in cls.methods.values()
        for node in ast.walk(method.node)
    )  # fmt: skip


def cache_of(function: Function) -> tuple[ast.expr, bool] | None:
    """The decorator that caches, and whether it stands in front of a tool; None where nothing caches."""
    decorators = function.node.decorator_list
    names = [function.file.names.full(one.func if isinstance(one, ast.Call) else one) for one in decorators]
    for number, name in enumerate(names):
        if name in _CACHES or last(name) in ("lru_cache", "alru_cache", "ttl_cache"):
            tools = [
                place for place, one in enumerate(names) if last(one).endswith("tool") or last(one) == "tool"
            ]
            return decorators[number], not tools or number < tools[0]
    return None
