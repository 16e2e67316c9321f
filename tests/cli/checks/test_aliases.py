"""Floating names are warnings; unknown ones a note where a model certainly is called, and silence elsewhere."""

from __future__ import annotations

import ast

from agentloom.cli.checks.aliases import check
from agentloom.cli.checks.findings import Source

CODE = """
MODEL = "gpt-4o"
model(MODEL, [])
model("gpt-4o-2024-08-06", [])
model("house-model", [])
Car(model="T")
"""


def test_levels() -> None:
    found = list(check(Source("a.py", "a.py", ast.parse(CODE))))
    assert [(one.level, one.line, one.subject) for one in found] == [
        ("warning", 2, "gpt-4o"),
        ("note", 5, "house-model"),
    ]
    assert found[0].said == "gpt-4o is a floating name, in model(...)"
    assert found[0].fix == "name a dated snapshot: gpt-4o-YYYY-MM-DD"
    assert found[1].said == "house-model is not known to be pinned, in model(...)"
