"""What tools leave behind in variables of a program: no tool runs on replay, so the variables stay as they were."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from agentloom.cli.checks.flow.frame import Shared
from agentloom.cli.checks.flow.program import Function
from agentloom.cli.checks.flow.roles import FunctionNode
from agentloom.cli.checks.flow.state import CHANGES, State, read_in_run, reads

__all__ = ["left_by_tools"]


def left_by_tools(shared: Shared) -> None:
    """Report each change of a module's variable in a tool that code of the run reads."""
    program = shared.program
    read = set(read_in_run(shared))
    for file in program.files:
        if file.level == "run":
            for one in file.source.tree.body:
                read |= reads(one) if not isinstance(one, FunctionNode) else set()
    for function in program.functions:
        if function.role == "host":
            frame = State(shared, function.file, function, "run")
            for node, name in _changes(frame, function):
                if name in read:
                    said = f"{name}, a variable of the module, is changed in the tool {function.name}()"
                    frame.report("tool-state", node, f"{said} and read in the run")


def _changes(frame: State, function: Function) -> Iterator[tuple[ast.AST, str]]:
    declared = frame.declared_global()
    for node in ast.walk(function.node):
        name = _changed(node)
        if name and (name in declared or frame.is_module_level(name)):
            yield node, name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in declared:
            yield node, node.id


def _changed(node: ast.AST) -> str:
    """The variable whose contents a node changes; "" for none."""
    owner: ast.expr | None = None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        owner = node.func.value
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
        owner = node.value
    return owner.id if isinstance(owner, ast.Name) else ""
