"""Probable causes: code ranked by its bearing on the value, then packages, then leaks."""

from __future__ import annotations

from agentloom.replay.cause import CodeFacts, drift, find_cause, parse_src
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
