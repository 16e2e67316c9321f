"""The state of a walk: the variables of one function, and what all walks of a target share."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from agentloom.cli.checks.catalogue import RULES
from agentloom.cli.checks.findings import Finding, Level
from agentloom.cli.checks.flow.kinds import Attributes
from agentloom.cli.checks.flow.program import File, Function, Program
from agentloom.cli.checks.flow.values import ORDER, UNKNOWN, Mark, Value

__all__ = ["Frame", "Mode", "Shared", "text"]

Mode = Literal["run", "import"]
_LONG = 48


def text(node: ast.AST) -> str:
    """The source of an expression, short enough for a message."""
    whole = " ".join(ast.unparse(node).split())
    return whole if len(whole) <= _LONG else whole[: _LONG - 3] + "..."


@dataclass(eq=False)
class Shared:
    """What all walks of a target share.

    ``found``: by rule and place, so that each place is named once; ``ways``: how often a function was walked;
    ``performs``: whether a function makes host calls; ``read``: the names that code of the run reads, ``asked``: the
    attributes, once asked for; ``of_classes``: values of attributes that classes have from import, by class and name.
    """

    program: Program
    attributes: Attributes
    found: dict[tuple[str, str, int, int], Finding] = field(
        default_factory=dict[tuple[str, str, int, int], Finding]
    )
    globals: dict[File, dict[str, Value]] = field(default_factory=dict[File, dict[str, Value]])
    memo: dict[object, Value] = field(default_factory=dict[object, Value])
    ways: dict[Function, int] = field(default_factory=dict[Function, int])
    performs: dict[Function, bool] = field(default_factory=dict[Function, bool])
    read: frozenset[str] | None = None
    asked: frozenset[str] | None = None
    of_classes: dict[tuple[str, str], Value] = field(default_factory=dict[tuple[str, str], Value])
    walking: set[Function] = field(default_factory=set[Function])


class Frame:
    """One function, or a module's level, while it is walked."""

    def __init__(
        self, shared: Shared, file: File, function: Function | None, mode: Mode, depth: int = 0
    ) -> None:
        self.shared = shared
        self.program = shared.program
        self.file = file
        self.names = file.names
        self.function = function
        self.mode: Mode = mode
        self.depth = depth
        self.env: dict[str, Value] = {}
        self.loops: list[Mark] = []
        self.returns: list[Value] = []
        self.allowed = 0
        self.host = False
        """Whether a host call was met: the function performs some."""

    @property
    def in_run(self) -> bool:
        """Whether the code runs inside of a run."""
        return self.mode == "run"

    @property
    def is_script(self) -> bool:
        """Whether the target is a script: its output is what it prints, its state begins anew in each process."""
        return not self.program.is_agent and self.file.level == "run"

    def mark(self, rule: str, node: ast.AST, subject: str, said: str, level: Level | None = None) -> Mark:
        """A mark whose origin is ``node``."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", -1) + 1
        return Mark(rule, self.file.source.shown, line, column, self._function(), subject, said, level)

    def emit(self, marks: Iterable[Mark], where: str = "") -> None:
        """Report marks that reach ``where`` (words), or that need no sink."""
        for mark in sorted(marks, key=lambda one: (one.line, one.column, one.rule)):
            if mark.weak:
                continue
            rule = RULES[mark.rule]
            here = self.file.source.shown
            reached = where if mark.file == here else where.replace(" line ", f" {here}:")
            said = f"{mark.said}, {reached}" if where else mark.said
            place = (mark.file, mark.line, mark.column)
            finding = Finding(
                mark.rule, mark.level or rule.level, *place, mark.subject, said, rule.reason, rule.fix, mark.function
            )  # fmt: skip
            self.shared.found.setdefault((mark.rule, *place), finding)

    def report(self, rule: str, node: ast.AST, said: str, level: Level | None = None) -> None:
        """A finding that is one wherever its value goes."""
        self.emit([self.mark(rule, node, text(node), said, level)])

    def lookup(self, name: str) -> Value | None:
        """A variable of this function, or of the module it is in; None for a name that is neither."""
        if name in self.env:
            return self.env[name]
        found = self.shared.globals.get(self.file, {}).get(name)
        stands = self.names.stands(name) if found is None else None
        if stands is not None:
            module, _, attribute = stands.rpartition(".")
            other = self.program.file_of(module) if module else None
            found = self.shared.globals.get(other, {}).get(attribute) if other is not None else None
        return found

    def local(self, name: str) -> bool:
        """Whether the name is a variable of this function."""
        return self.function is not None and name in self.env

    def add_order(self, path: str, marks: Iterable[Mark]) -> None:
        """The variable at ``path`` takes these marks on."""
        if path:
            self.env[path] = (self.lookup(path) or UNKNOWN).marked(*marks)

    def sorted_in_place(self, path: str) -> None:
        """The variable at ``path`` has no order of its making any more."""
        if path in self.env:
            self.env[path] = self.env[path].without(ORDER)

    def _function(self) -> str:
        return self.function.name if self.function is not None else "<module>"

    def evaluate(self, node: ast.expr | None) -> Value:
        """The value of an expression; what it does on the way is judged."""
        raise NotImplementedError

    def walk_function(self, function: Function, given: dict[str, Value], mode: Mode) -> Value:
        """Walk another function with these parameters; its result."""
        raise NotImplementedError
