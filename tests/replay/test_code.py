"""What changed in the code: moves and comments are no change; the rest is named with its lines; causes are ranked."""

from __future__ import annotations

from agentloom.replay.cause import CodeFacts, drift, find_cause, parse_src
from agentloom.replay.code import CodeChange, ModuleSource, code_changes
from agentloom.replay.fields import compare

OLD = '''"""An agent."""
import os

SYSTEM = "Refund when paid."
LIMIT = 3


def build_prompt(question):
    """Make the prompt."""
    text = "Answer in one sentence."
    # ask first
    text += " Ask before deleting."
    return text + question


class Router:
    retries = 1

    def go(self, x):
        return x > LIMIT


async def turn(question):
    prompt = build_prompt(question)
    return await model("gpt-4o", SYSTEM, prompt)


def unrelated():
    return "nothing"
'''


def _changes(new: str, old: str = OLD) -> list[CodeChange]:
    return code_changes({"agent": ModuleSource(old, "agent.py")}, {"agent": ModuleSource(new, "agent.py")})


def _facts(text: str, **more: str) -> CodeFacts:
    return CodeFacts({"agent": ModuleSource(text, "agent.py")}, "a1f9c2e", more)


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


def test_the_constant_whose_text_appears_comes_first() -> None:
    new = (
        OLD.replace("LIMIT = 3", "LIMIT = 4")
        .replace("when paid", "within 30 days")
        .replace("nothing", "something")
    )
    difference = compare({"content": "Refund when paid."}, {"content": "Refund within 30 days."})
    cause = find_cause(_facts(OLD), _facts(new), difference.items, parse_src("agent.py:24 turn"))
    assert cause.kind == "code"
    assert cause.relevant
    assert cause.changes[0].title == "SYSTEM"


def test_a_function_that_the_call_site_reaches_comes_before_one_that_it_does_not() -> None:
    new = OLD.replace("text + question", "question + text").replace("nothing", "something")
    difference = compare({"content": "a b"}, {"content": "b a"})
    cause = find_cause(_facts(OLD), _facts(new), difference.items, parse_src("agent.py:24 turn"))
    assert [change.title for change in cause.changes] == ["build_prompt()", "unrelated()"]


def test_a_change_without_bearing_says_so() -> None:
    difference = compare({"content": "a b"}, {"content": "b a"})
    cause = find_cause(_facts(OLD), _facts(OLD.replace("nothing", "something")), difference.items, None)
    assert cause.kind == "code"
    assert not cause.relevant


def test_unchanged_code_makes_it_a_leak_or_a_drift_of_packages() -> None:
    difference = compare({"n": 0.1}, {"n": 0.2})
    same = CodeFacts(_facts(OLD).modules, "", {"openai": "1.0", "x": "1"})
    newer = CodeFacts(_facts(OLD).modules, "", {"openai": "1.1"})
    assert find_cause(same, same, difference.items).kind == "leak"
    assert find_cause(same, newer, difference.items).kind == "packages"
    assert [str(item) for item in drift(same, newer)] == ["openai 1.0 -> 1.1", "x 1 -> (absent)"]
    unexplained = compare({"t": "yes"}, {"t": "no"})
    assert find_cause(same, same, unexplained.items).kind == "unknown"


def test_places_are_parsed() -> None:
    site = parse_src("pkg/agent.py:61 build")
    assert site is not None
    assert (site.file, site.line, site.function) == ("pkg/agent.py", 61, "build")
    assert parse_src("?") is None
    assert parse_src(None) is None
