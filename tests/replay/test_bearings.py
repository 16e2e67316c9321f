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


def test_what_is_more_than_five_steps_away_says_nothing() -> None:
    chain = "".join(f"def f{number}():\n    f{number + 1}()\n" for number in range(10))
    found = bearings({"a": ModuleSource(chain, "a.py")}, "a.py", 2, "f0")
    assert dict(found.below) == {f"f{number + 1}": number for number in range(6)}
    found = bearings({"a": ModuleSource(chain, "a.py")}, "a.py", 20, "f9")
    assert dict(found.above) == {f"f{8 - number}": number + 1 for number in range(5)}
    assert found.leading == {"f9", "f8", "f7", "f6", "f5", "f4"}
    assert dict(found.beside) == {"f5": 0, "f6": 0, "f7": 0, "f8": 0, "f9": 0, "f10": 1}


def test_a_place_is_in_every_function_around_it_from_the_first_line_to_the_last() -> None:
    nested = "def outer():\n    def inner(x=default):\n        used()\n    return inner, late\n"
    modules = {"a": ModuleSource(nested, "a.py"), "b": ModuleSource("def used():\n    deeper()\n", "b.py")}

    def used(line: int) -> set[str]:
        return {
            name for name, distance in bearings(modules, "a.py", line, "inner").below.items() if distance == 0
        }

    everything = {"default", "used", "inner", "late"}
    assert (used(1), used(2), used(3), used(4)) == (everything,) * 4
    assert used(5) == set()
    single = {"a": ModuleSource("def one():\n    first()\ndef two(): second()\n", "a.py")}
    assert set(bearings(single, "a.py", 3, "two").below) == {"second"}
    assert set(bearings(single, "a.py", 1, "one").below) == {"first"}
    assert set(bearings(single, "b.py", 1, "one").below) == set()
