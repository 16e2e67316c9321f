"""Attributes that outlive a run: of classes, functions and objects that a module makes; and generators of a module."""

from __future__ import annotations

import ast

from agentloom.cli.checks.flow.frame import Shared, text
from agentloom.cli.checks.flow.names import defaults_of, path_of, written
from agentloom.cli.checks.flow.program import Class, Program
from agentloom.cli.checks.flow.roles import FunctionNode
from agentloom.cli.checks.flow.state import CHANGES, State

__all__ = ["GENERATORS", "Kept", "lives_on"]

GENERATORS = frozenset(["random.Random", "numpy.random.default_rng", "numpy.random.RandomState"])
"""What makes a generator; without a seed it takes one of the system."""
_HOLDERS = frozenset(["threading.local", "types.SimpleNamespace"])
"""What makes an object that holds any attributes."""
_SETS_IT = frozenset(["seed", "setstate", "getstate", "bit_generator"])


class Kept(State):
    """A frame that judges changes of attributes of what outlives the run."""

    def changed(self, node: ast.AST, path: str, how: str) -> None:
        """See ``State.changed``; the container may be an attribute of a class, a function or an object."""
        super().changed(node, path, how)
        head, _, rest = path.partition(".")
        if self.lasting and rest and "." not in rest and (how in CHANGES or how == "=") and self._owns(head):
            if self.is_memo(rest):
                self.report("cache", node, f"{path} keeps results of {self._within()}() from run to run")
            elif self._is_asked(rest):
                self.report("global-state", node, f"{path} {self._which(head)}, and is changed in the run")

    def attribute_set(self, node: ast.AST, target: ast.Attribute) -> None:
        """``Session.last = value``, ``STATE.name = value``."""
        head = path_of(target.value)
        if self.lasting and self._owns(head) and self._is_asked(target.attr):
            rule = "counter" if isinstance(node, ast.AugAssign) else "global-state"
            self.report(rule, node, f"{text(target)} {self._which(head)}, and is set in the run")

    def drawn_from(self, node: ast.Call) -> None:
        """``DICE.choice(names)``: of a generator that the module made with a seed."""
        func = node.func
        if not (self.lasting and isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name)):
            return
        name = func.value.id
        maker = None if self.local(name) or func.attr in _SETS_IT else self.made_at(name)
        made = isinstance(maker, ast.Call) and self._makes(maker) in GENERATORS and bool(maker.args)
        if made and not _is_seeded(self.shared, name):
            said = f"{text(node)} goes on from where the last run of the process left {name}"
            self.report("counter", node, said)

    # -- what is where -----------------------------------------------------------------------------------------------

    def _makes(self, maker: ast.Call) -> str:
        return self.names.full(maker.func)

    def _owns(self, head: str) -> bool:
        """Whether the name stands for something of the module that has attributes of its own."""
        if not head or "." in head or head in ("self", "cls") or self.local(head):
            return False
        if self.program.cls(head) is not None or self.file.top(head) is not None:
            return True
        maker = self.made_at(head)
        return isinstance(maker, ast.Call) and (
            self._makes(maker) in _HOLDERS or self.program.cls(written(maker.func)) is not None
        )

    def _which(self, head: str) -> str:
        if self.program.cls(head) is not None:
            return "belongs to the class"
        return (
            "belongs to the function"
            if self.file.top(head) is not None
            else f"belongs to {head} of the module"
        )

    def _is_asked(self, attribute: str) -> bool:
        """Whether code that runs in a run reads an attribute of that name."""
        shared = self.shared
        if shared.asked is None:
            runs = [function.node for function in shared.program.functions if function.role == "run"]
            shared.asked = frozenset(name for node in runs for name in _asked(node))
        return attribute in shared.asked


def _asked(body: ast.AST) -> set[str]:
    found = {
        one.attr for one in ast.walk(body) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Load)
    }
    for one in ast.walk(body):
        if (
            isinstance(one, ast.Call)
            and isinstance(one.func, ast.Name)
            and one.func.id in ("getattr", "hasattr")
        ):
            found |= {str(arg.value) for arg in one.args[1:2] if isinstance(arg, ast.Constant)}
    return found


def _is_seeded(shared: Shared, name: str) -> bool:
    """Whether a run sets the generator back."""
    return any(
        isinstance(one, ast.Attribute) and one.attr in ("seed", "setstate") and written(one.value) == name
        for function in shared.program.functions
        if function.role == "run"
        for one in ast.walk(function.node)
    )


def lives_on(program: Program, cls: Class) -> bool:
    """Whether code at the level of a module or a class makes an instance of the class."""
    for file in program.files:
        waiting: list[ast.AST] = [*file.source.tree.body]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Call) and written(node.func) == cls.node.name:
                return True
            if isinstance(node, FunctionNode):
                waiting += [default for _, default in defaults_of(node.args)]
            elif not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)):
                waiting += ast.iter_child_nodes(node)
    return False
