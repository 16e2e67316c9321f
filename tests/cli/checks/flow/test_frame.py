"""The state of a walk."""

from __future__ import annotations

import ast

from agentloom.cli.checks.flow.frame import Frame, Shared, text
from agentloom.cli.checks.flow.kinds import Attributes
from agentloom.cli.checks.flow.program import Program
from agentloom.cli.checks.flow.values import Kind, Value
from tests.cli.checks.flow.agents import source


def test_expressions_in_messages_are_short() -> None:
    assert text(ast.parse("f( a,\n b )", mode="eval")) == "f(a, b)"
    assert len(text(ast.parse("x" * 90, mode="eval"))) == 48


def test_a_place_is_reported_once_and_weak_marks_not_at_all() -> None:
    program = Program([source("x = 1")])
    shared = Shared(program, Attributes(program))
    frame = Frame(shared, program.files[0], None, "run")
    mark = frame.mark("hash", program.files[0].source.tree.body[0], "x", "said")
    frame.emit([mark, mark], "once")
    frame.emit([mark], "twice")
    (found,) = shared.found.values()
    assert (found.said, found.line, found.column, found.function) == ("said, once", 1, 1, "<module>")


def test_variables_of_other_modules() -> None:
    program = Program([source("from other import X"), source("X = 1", "other.py")])
    shared = Shared(program, Attributes(program))
    shared.globals[program.files[1]] = {"X": Value(Kind("set"))}
    frame = Frame(shared, program.files[0], None, "run")
    assert frame.lookup("X") == Value(Kind("set"))
    assert frame.lookup("Y") is None
