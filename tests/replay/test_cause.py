"""Probable causes: code ranked by its bearing on the value, then packages, then leaks."""

from __future__ import annotations

from agentloom.replay.cause import Cause, CodeFacts, drift, find_cause, parse_src
from agentloom.replay.code import ModuleSource
from agentloom.replay.fields import compare
from tests.replay.sources import AGENT as OLD


def _facts(text: str, **more: str) -> CodeFacts:
    return CodeFacts({"agent": ModuleSource(text, "agent.py")}, "a1f9c2e", more)


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


LOOP = """import uuid
LIMIT = 6

def ask(messages):
    return create(messages)

def main(question):
    messages = [{"content": question}]
    for _ in range(LIMIT):
        ask(messages)

main("a")
"""


def _changed(old: str, new: str, recorded: str = "", now: str = "") -> Cause:
    differences = compare({"content": recorded}, {"content": now}).items
    return find_cause(_facts(LOOP), _facts(LOOP.replace(old, new)), differences, parse_src("agent.py:5 ask"))


def test_what_leads_to_the_call_bears_on_it() -> None:
    in_caller = _changed('"content": question', '"content": question.upper()', "a", "A")
    assert (in_caller.relevant, in_caller.changes[0].title) == (True, "main()")
    bound = _changed("LIMIT = 6", "LIMIT = 1")
    assert (bound.relevant, bound.changes[0].title) == (True, "LIMIT")
    start = _changed('main("a")', "main(str(1))", "a", "1")
    assert (start.relevant, start.changes[0].title) == (True, "main(str(1))")


def test_a_template_touches_what_it_made() -> None:
    old = LOOP + 'step("a", prompt="Answer {input} well")\n'
    differences = compare({"content": "Answer it well"}, {"content": "Reply to it well"}).items
    new = old.replace("Answer {input}", "Reply to {input}").replace("LIMIT = 6", "LIMIT = 7")
    cause = find_cause(_facts(old), _facts(new), differences, None)
    assert cause.relevant
    assert cause.changes[0].kind == "statement"


def test_an_id_of_each_run_is_named_beside_an_edit_that_does_not_explain_it() -> None:
    ids = "order 0d2d64ce-fe36-47f0-b3ca-78f07d55ce69", "order 87add5c7-d7e6-4070-b3ca-bbc3a45e9bbf"
    cause = _changed("LIMIT = 6", "LIMIT = 7", *ids)
    assert cause.kind == "code"
    assert cause.leak is not None
    assert cause.leak.kind == "uuid"
    assert _changed("LIMIT = 6", "LIMIT = 7", "a", "b").leak is None
