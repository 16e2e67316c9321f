"""Dotted names through imports."""

from __future__ import annotations

import ast

from agentloom.cli.checks.flow.names import Names, dotted, last, path_of


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def test_names_as_written() -> None:
    assert [dotted(expression(text)) for text in ("a.b.c", "f().x", "a[0].b", "1")] == [
        "a.b.c",
        "?.x",
        "?.b",
        "",
    ]
    assert [path_of(expression(text)) for text in ("self.a", "f().x")] == ["self.a", ""]
    assert (last("a.b"), last("a")) == ("b", "a")


def test_names_through_imports() -> None:
    text = "import os.path\nimport numpy as np\nfrom time import time as clock\n"
    text += "from . import near\nfrom ..up import x\n"
    names = Names(ast.parse(text), "one.two")
    written = ("os.getcwd", "np.random.rand", "clock", "near.f", "x", "y", "1")
    full = [names.full(expression(one)) for one in written]
    assert full == [
        "os.getcwd",
        "numpy.random.rand",
        "time.time",
        "one.two.near.f",
        "one.up.x",
        "y",
        "",
    ]
    assert (names.stands("clock"), names.stands("y")) == ("time.time", None)
    assert "one.two.near" in names.imported
    assert dict(names)["np"] == "numpy"
