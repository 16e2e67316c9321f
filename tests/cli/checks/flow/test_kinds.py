"""Kinds by annotations and attributes."""

from __future__ import annotations

import ast

import pytest

from agentloom.cli.checks.flow.kinds import annotated
from agentloom.cli.checks.flow.names import Names
from agentloom.cli.checks.flow.program import Program
from agentloom.cli.checks.flow.values import Kind
from tests.cli.checks.flow.agents import names, source


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("set[str]", Kind("set", Kind("str"))),
        ("'frozenset[int]'", Kind("set", Kind("int"))),
        ("set[str] | None", Kind("set", Kind("str"))),
        ("Optional[dict[str, set[str]]]", Kind("dict", Kind("set", Kind("str")))),
        ("list[A]", Kind("list", Kind("object", cls="A"))),
        ("Path", Kind("path")),
        ("float", Kind("float")),
        ("int | str", Kind()),
        ("object", Kind()),
        ("Callable[[int], str]", Kind()),
        ("'not (python'", Kind()),
    ],
)
def test_annotations(text: str, kind: Kind) -> None:
    file = source("class A: pass")
    tree = ast.parse("from pathlib import Path")
    assert annotated(ast.parse(text, mode="eval").body, Names(tree), Program([file])) == kind
    assert annotated(None, Names(tree), Program([file])) == Kind()


@pytest.mark.parametrize(
    "cls",
    [
        "class Box:\n    tags: set[str]",
        "class Box:\n    def __init__(self): self.tags = set()",
        "class Box:\n    def __init__(self): self.tags: frozenset[str] = x",
    ],
)
def test_attributes(cls: str) -> None:
    assert names("box = Box()\nsearch(list(box.tags))", before=cls) == ["set-order"]
    assert names("def f(box: Box): return ', '.join(box.tags)\nsearch(f(given))", before=cls) == ["set-order"]
