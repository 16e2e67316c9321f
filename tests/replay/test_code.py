"""What changed in the code: moves and comments are no change; the rest is named with its lines."""

from __future__ import annotations

from agentloom.replay.code import CodeChange, ModuleSource, code_changes
from tests.replay.sources import AGENT as OLD


def _changes(new: str, old: str = OLD) -> list[CodeChange]:
    return code_changes({"agent": ModuleSource(old, "agent.py")}, {"agent": ModuleSource(new, "agent.py")})


def test_moves_comments_blank_lines_and_quotes_are_no_change() -> None:
    moved = (
        OLD.replace("    # ask first\n", "")
        .replace("'", '"')
        .replace("\n\n\ndef unrel", "\n# x\n\n\n\ndef unrel")
    )
    head, tail = moved.split("class Router:")
    body, rest = tail.split("async def turn")
    reordered = head + "async def turn" + rest + "\n\nclass Router:" + body
    assert reordered != OLD
    assert _changes(reordered) == []


def test_a_constant_a_function_and_a_method_are_named_with_their_lines() -> None:
    new = OLD.replace("when paid", "within 30 days").replace('    text += " Ask before deleting."\n', "")
    new = new.replace("x > LIMIT", "x >= LIMIT")
    found = {change.title: change for change in _changes(new)}
    assert set(found) == {"SYSTEM", "build_prompt()", "Router.go()"}
    assert found["SYSTEM"].removed == ((4, 'SYSTEM = "Refund when paid."'),)
    assert found["SYSTEM"].added == ((4, 'SYSTEM = "Refund within 30 days."'),)
    assert found["build_prompt()"].removed == ((12, 'text += " Ask before deleting."'),)
    assert (found["build_prompt()"].line_recorded, found["build_prompt()"].line) == (12, 12)
    assert found["Router.go()"].added == ((19, "return x >= LIMIT"),)


def test_added_and_removed_definitions_and_imports() -> None:
    new = OLD.replace("import os", "import json").replace("def unrelated", "def renamed")
    assert {(change.name, change.what) for change in _changes(new)} == {
        ("import os", "removed"),
        ("import json", "added"),
        ("unrelated", "removed"),
        ("renamed", "added"),
    }


def test_a_docstring_is_a_change_of_its_own_kind() -> None:
    (change,) = _changes(OLD.replace("Make the prompt.", "Make a prompt."))
    assert (change.kind, change.title) == ("docstring", "docstring of build_prompt()")


def test_a_module_that_does_not_parse_is_compared_as_text() -> None:
    (change,) = _changes(OLD + "def broken(:\n")
    assert change.kind == "module"
    assert change.added[-1][1] == "def broken(:"


def test_a_module_that_is_gone() -> None:
    (change,) = code_changes({"agent": ModuleSource(OLD, "agent.py")}, {"agent": None})
    assert (change.kind, change.what) == ("module", "removed")


def test_bare_statements_are_matched_by_what_they_say() -> None:
    steps = ['graph.step("a")', 'graph.step("b")', 'graph.step("c", temperature=0)']

    def changes(now: list[str]) -> list[tuple[str, str]]:
        old, new = (ModuleSource("\n".join(lines), "a.py") for lines in (steps, now))
        return [(change.what, change.title) for change in code_changes({"a": old}, {"a": new})]

    assert changes([steps[0], steps[2]]) == [("removed", "graph.step('b')")]
    assert changes([*steps[:2], 'graph.step("c", temperature=1)']) == [
        ("changed", "graph.step('c', temperature=1)")
    ]


def test_imports_have_one_title() -> None:
    old, new = ModuleSource("import a, b", "a.py"), ModuleSource("import a, b, c", "a.py")
    assert {change.title for change in code_changes({"a": old}, {"a": new})} == {"imports"}
