"""What of a program bears on one place in it."""

from __future__ import annotations

from agentloom.replay.bearings import bearings
from agentloom.replay.code import ModuleSource

PROGRAM = """LIMIT = 3
TOOLS = make()

def ask(messages):
    return client.create(messages, TOOLS)

def turn(question):
    for _ in range(LIMIT):
        ask([question])

def main():
    turn("a")

def other():
    return "b"
"""


def test_what_a_place_uses_what_leads_to_it_and_what_that_uses() -> None:
    found = bearings({"a": ModuleSource(PROGRAM, "a.py")}, "a.py", 5, "ask")
    assert found.below["TOOLS"] == 0
    assert found.below["make"] == 1
    assert dict(found.above) == {"turn": 1, "main": 2}
    assert "LIMIT" in found.beside
    assert found.leading == {"ask", "turn", "main"}
    assert "other" not in {*found.below, *found.above, *found.beside}


def test_recursion_ends_and_a_module_that_does_not_parse_is_left_out() -> None:
    modules = {
        "a": ModuleSource("def f():\n    g()\n\ndef g():\n    f()\n", "a.py"),
        "b": ModuleSource("def (", "b.py"),
    }
    found = bearings(modules, "a.py", 2, "f")
    assert dict(found.above) == {"g": 1}
