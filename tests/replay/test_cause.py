"""Probable causes: code ranked by its bearing on the value, then packages, then leaks."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.bearings import bearings
from agentloom.replay.cause import (
    Cause,
    CodeFacts,
    Drift,
    Site,
    _leak,
    _score,
    _texts,
    _touches,
    drift,
    find_cause,
    parse_src,
)
from agentloom.replay.code import CodeChange, ModuleSource
from agentloom.replay.fields import Difference, compare
from agentloom.replay.leaks import Leak
from agentloom.replay.text import show
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
    assert cause.relevant


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


# -- what a change is worth -------------------------------------------------------------------------------------------

CHAIN = """
TOP = 1

def used(): deeper()
def deeper(): deepest()
def deepest(): bottom()
def bottom(): ground()
def ground(): nothing()

def place():
    used()

def caller():
    place()
    beside()

def beside(): pass

def far(): caller()
"""


def _change(name: str, kind: Any = "function", file: str = "agent.py", **more: Any) -> CodeChange:
    return CodeChange("agent", file, kind, name, "changed", 1, 1, **more)


def _worth(change: CodeChange, *differences: Difference, site: str | None = "agent.py:11 place") -> int:
    where = parse_src(site)
    near = (
        bearings({"agent": ModuleSource(CHAIN, "agent.py")}, where.file, where.line, where.function)
        if where
        else None
    )
    return _score(change, differences, where, near)


@pytest.mark.parametrize(
    ("name", "worth"),
    [
        ("place", 3 + 20 + 10),
        ("used", 3 + 14),
        ("deeper", 3 + 11),
        ("deepest", 3 + 8),
        ("bottom", 3 + 5),
        ("ground", 3 + 4),
        ("caller", 3 + 12),
        ("far", 3 + 11),
        ("beside", 3 + 10),
        ("Router.used", 3 + 14),
        ("elsewhere", 3),
    ],
)
def test_what_is_nearer_to_the_call_bears_more_on_it(name: str, worth: int) -> None:
    assert _worth(_change(name)) == worth
    assert _worth(_change(name, file="other.py")) == worth - (23 if name == "place" else 3)
    assert _worth(_change(name), site=None) == 0


def test_what_is_far_above_a_call_still_bears_on_it() -> None:
    chain = "".join(f"def f{number}(): f{number + 1}()\n" for number in range(6))
    near = bearings({"a": ModuleSource(chain, "a.py")}, "a.py", 6, "f5")
    site = Site("a.py", 6, "f5")
    assert [_score(_change(f"f{n}", file="b.py"), (), site, near) for n in (4, 3, 2, 1, 0)] == [
        12,
        11,
        10,
        10,
        10,
    ]


def test_a_statement_bears_by_the_functions_that_it_names() -> None:
    assert _worth(_change("place()", "statement", names=frozenset(["place"]))) == 3 + 13
    assert _worth(_change("far()", "statement", names=frozenset(["far", "x"]))) == 3 + 13
    assert _worth(_change("beside()", "statement", names=frozenset(["beside"]))) == 3
    assert _worth(_change("other()", "function", names=frozenset(["place"]))) == 3


@pytest.mark.parametrize(
    ("kind", "worth"), [("docstring", -15), ("import", -6), ("module", -4), ("class", 0)]
)
def test_changes_that_seldom_matter_are_worth_less(kind: str, worth: int) -> None:
    assert _worth(_change("x", kind), site=None) == worth
    assert _worth(_change("x", kind)) == worth + 3


def _literals(then: str = "", now: str = "") -> CodeChange:
    return _change(
        "X", literals_recorded=frozenset([then] if then else []), literals=frozenset([now] if now else [])
    )


def test_a_literal_that_explains_the_difference_outweighs_all() -> None:
    changed = compare({"t": "Ask before deleting it."}, {"t": "Never ask before it."}).items
    assert _worth(_literals("Ask before deleting"), *changed, site=None) == 40
    assert _worth(_literals("Ask before deleting", "Never ask"), *changed, site=None) == 80
    assert _worth(_literals("Never ask", "Ask before deleting"), *changed, site=None) == 0
    numbers = compare({"n": 5, "m": [1, 2]}, {"n": 7, "m": [1, 3]}).items
    assert _worth(_literals("5", "7"), *numbers, site=None) == 80
    assert _worth(_literals("2", "7"), *numbers, site=None) == 80
    many = compare({f"k{n}": 0 for n in range(10)}, {f"k{n}": n + 1 for n in range(10)}).items
    assert (_worth(_literals(now="8"), *many, site=None), _worth(_literals(now="9"), *many, site=None)) == (
        40,
        0,
    )


def test_only_the_first_spans_of_a_text_are_looked_at() -> None:
    filler = " and a lot of words that are as they were before, and then some. "
    then = filler.join(f"old{n}" for n in range(10))
    now = filler.join(f"new{n}" for n in range(10))
    [item] = compare({"t": then}, {"t": now}).items
    assert [(old, new) for old, new, _, _ in _texts(item)] == [(f"old{n}", f"new{n}") for n in range(8)]
    assert {(whole_then, whole_now) for _, _, whole_then, whole_now in _texts(item)} == {(then, now)}


def test_values_that_are_no_texts_count_as_they_are_shown() -> None:
    long: Any = list(range(1000))
    assert _texts(Difference("p", "changed", long, "now")) == [
        (show(long, 400), "now", show(long, 400), "now")
    ]
    assert _texts(Difference("p", "changed", "then", long)) == [
        ("then", show(long, 400), "then", show(long, 400))
    ]
    assert _texts(Difference("p", "added", None, "now")) == [("null", "now", "null", "now")]


@pytest.mark.parametrize(
    ("literal", "span", "own", "other", "touches"),
    [
        ("abc", "abc", "x abc y", "x y", True),
        (" abc\n", " abc ", "", "", True),
        ("a", "a", "", "", True),
        ("abcdefgh", "cdef", "", "", True),
        ("abcdefgh", "cde", "", "", False),
        ("abcdefgh", "", "", "", False),
        ("abc", "b", "an abc is", "no", True),
        ("ab", "b", "an ab is", "no", False),
        ("abc", "b", "an abc is", "an abc was", False),
        ("Answer {input} well", "Answ", "Answer 5 well", "Reply to 5 well", True),
        ("Say {x}", "S", "Say 5", "Tell 5", True),
        ("Say {x} {y} ok", "S", "Hm 5", "Tell 5", False),
        ("no fields", "S", "Say 5", "Tell 5", False),
        ("Say {\n}", "S", "Say 5", "Tell 5", False),
    ],
)
def test_a_literal_touches_what_it_made(literal: str, span: str, own: str, other: str, touches: bool) -> None:
    assert _touches(frozenset([literal]), span, own, other) is touches
    assert _touches(frozenset(["zzz", literal]), span, own, other) is touches
    assert _touches(frozenset(), span, own, other) is False


# -- the cause as a whole ---------------------------------------------------------------------------------------------


def test_changes_of_the_same_worth_stay_in_the_order_of_the_code() -> None:
    then = "A = 1\nB = 1\nC = 1\n"
    cause = find_cause(_facts(then), _facts("A = 2\nB = 2\nC = 2\n"), compare({"n": 0}, {"n": 9}).items, None)
    assert [change.title for change in cause.changes] == ["A", "B", "C"]
    assert (cause.relevant, cause.earlier) == (False, None)
    touched = find_cause(
        _facts(then), _facts("A = 2\nB = 7777\nC = 2\n"), compare({"n": 1}, {"n": 7777}).items, None
    )
    assert (touched.changes[0].title, touched.relevant) == ("B", True)


def test_drift_is_told_beside_changed_code_and_beside_a_leak() -> None:
    old = CodeFacts(
        {"agent": ModuleSource("A = 1\n", "agent.py")}, "1", {"x": "1"}, {"python": "3.11", "machine": "a"}
    )
    new = CodeFacts(
        {"agent": ModuleSource("A = 2\n", "agent.py")}, "2", {"x": "2", "y": "1"}, {"python": "3.12"}
    )
    differences = compare({"n": 0}, {"n": 9}).items
    told = ["python 3.11 -> 3.12", "x 1 -> 2"]
    assert [str(item) for item in find_cause(old, new, differences).drift] == told
    same_code = CodeFacts(old.modules, "1", new.packages, new.interpreter)
    ids = compare(
        {"n": "0d2d64ce-fe36-47f0-b3ca-78f07d55ce69"}, {"n": "87add5c7-d7e6-4070-b3ca-bbc3a45e9bbf"}
    ).items
    certain = find_cause(old, same_code, ids, None, "2 (tool search)")
    assert (certain.kind, certain.leak_path, certain.earlier, certain.relevant) == (
        "leak",
        "n",
        "2 (tool search)",
        True,
    )
    assert [str(item) for item in certain.drift] == told
    assert (certain.changes, certain.leak is not None and certain.leak.kind) == ((), "uuid")
    guessed = find_cause(old, same_code, compare({"n": 0.25}, {"n": 0.75}).items, None, "3 (tool x)")
    assert (guessed.kind, guessed.leak_path, guessed.earlier) == ("packages", "n", "3 (tool x)")
    assert guessed.leak is not None
    assert guessed.leak.guess
    assert [str(item) for item in guessed.drift] == told
    only = find_cause(old, old, compare({"n": 0.25}, {"n": 0.75}).items, None, "3 (tool x)")
    assert (only.kind, only.relevant, only.earlier) == ("leak", False, "3 (tool x)")
    nothing = find_cause(old, same_code, compare({"t": "yes"}, {"t": "no"}).items, None, "3 (tool x)")
    assert (nothing.kind, nothing.changes, nothing.leak, nothing.earlier) == (
        "packages",
        (),
        None,
        "3 (tool x)",
    )
    unknown = find_cause(old, old, compare({"t": "yes"}, {"t": "no"}).items, None, "3 (tool x)")
    assert (unknown.kind, unknown.drift, unknown.earlier) == ("unknown", (), "3 (tool x)")


def test_facts_that_are_absent_drift_only_for_packages() -> None:
    then = CodeFacts(
        {}, "", {"gone": "1", "same": "1", "moved": "1"}, {"python": "3.11", "machine": "a", "os": "l"}
    )
    now = CodeFacts({}, "", {"same": "1", "moved": "2", "new": "1"}, {"python": "3.12", "machine": "a"})
    assert [(item.name, item.recorded, item.now) for item in drift(then, now)] == [
        ("python", "3.11", "3.12"), ("gone", "1", None), ("moved", "1", "2"),
    ]  # fmt: skip
    assert [str(item) for item in drift(then, now)] == [
        "python 3.11 -> 3.12",
        "gone 1 -> (absent)",
        "moved 1 -> 2",
    ]
    assert str(Drift("x", None, "2")) == "x (absent) -> 2"


@pytest.mark.parametrize(
    ("then", "now", "words"),
    [
        ("a1", "b2", "a1..b2"),
        ("a1", "a1", "a1..working tree"),
        ("a1", "", "a1..working tree"),
        ("", "b2", ""),
    ],
)
def test_revisions_in_words(then: str, now: str, words: str) -> None:
    old = CodeFacts({"agent": ModuleSource("A = 1\n", "agent.py")}, then)
    new = CodeFacts({"agent": ModuleSource("A = 2\n", "agent.py")}, now)
    assert find_cause(old, new, ()).revisions == words


UUIDS = "0d2d64ce-fe36-47f0-b3ca-78f07d55ce69", "87add5c7-d7e6-4070-b3ca-bbc3a45e9bbf"


def _changed_value(path: str, then: Any, now: Any, kind: Any = "changed") -> Difference:
    return Difference(path, kind, then, now)


def test_what_is_certain_is_named_before_a_guess_and_the_first_before_others() -> None:
    guess, certain = _changed_value("g", 0.25, 0.75), _changed_value("c", *UUIDS)
    other, later = _changed_value("o", "yes", "no"), _changed_value("later", *UUIDS)
    assert _leak([other, guess, _changed_value("g2", 0.5, 0.625), certain, later])[1] == "c"
    assert _leak([other, guess, _changed_value("g2", 0.5, 0.625)])[1] == "g"
    assert _leak([other]) == (None, None)
    assert _leak([_changed_value("a", *UUIDS, kind="added"), _changed_value("t", *UUIDS, kind="type")]) == (
        None,
        None,
    )
    order = _changed_value("o", ["a", "b"], ["b", "a"], kind="order")
    found, path = _leak([order])
    assert found is not None
    assert (found.kind, path) == ("set order", "o")
    assert _leak([_changed_value("a", *UUIDS, kind="added"), certain])[1] == "c"
    assert _leak([*[other] * 19, certain])[1] == "c"
    assert _leak([*[other] * 20, certain]) == (None, None)


def test_an_order_beside_an_edit_is_explained_by_the_edit() -> None:
    old, new = _facts("A = 1\n"), _facts("A = 2\n")
    order = [_changed_value("o", ["a", "b"], ["b", "a"], kind="order")]
    assert find_cause(old, new, order).leak is None
    found = find_cause(old, new, [_changed_value("c", *UUIDS)])
    assert found.leak is not None
    assert found.leak_path == "c"
    assert found.revisions == "a1f9c2e..working tree"
    explained = find_cause(
        _facts(f"A = {UUIDS[0]!r}\n"), _facts(f"A = {UUIDS[1]!r}\n"), [_changed_value("c", *UUIDS)]
    )
    assert (explained.leak, explained.leak_path) == (None, None)
    half = find_cause(_facts("A = make()\n"), _facts(f"A = {UUIDS[1]!r}\n"), [_changed_value("c", *UUIDS)])
    assert (half.leak, half.leak_path) == (None, None)


def test_a_change_beside_what_leads_to_the_call_is_just_relevant() -> None:
    then = {"agent": ModuleSource(CHAIN, "agent.py"), "b": ModuleSource("def beside(): one()\n", "b.py")}
    now = then | {"b": ModuleSource("def beside(): two()\n", "b.py")}
    cause = find_cause(CodeFacts(then), CodeFacts(now), (), parse_src("agent.py:11 place"))
    assert ([change.title for change in cause.changes], cause.relevant) == (["beside()"], True)


def test_a_cause_as_json() -> None:
    changes = tuple(_change(f"f{number}") for number in range(25))
    drifts = tuple(Drift(f"p{number}", "1", None) for number in range(60))
    leak = Leak("uuid", "a UUID", "somewhere", "do this")
    told: Any = Cause("code", changes, drifts, leak, "n", "2 (tool x)", "a..b", True).to_json()
    assert told == {
        "kind": "code",
        "relevant": True,
        "revisions": "a..b",
        "changes": [change.to_json() for change in changes[:20]],
        "change_count": 25,
        "drift": [{"name": f"p{number}", "recorded": "1", "now": None} for number in range(50)],
        "leak": leak.to_json(),
        "leak_path": "n",
        "earlier_outcome": "2 (tool x)",
    }
    bare: Any = Cause("unknown").to_json()
    assert bare == {
        "kind": "unknown", "relevant": False, "revisions": None, "changes": [], "change_count": 0, "drift": [],
        "leak": None, "leak_path": None, "earlier_outcome": None,
    }  # fmt: skip


@pytest.mark.parametrize("src", ["", "?", "agent.py", ":5 f", "agent.py:x f", "agent.py: f"])
def test_what_is_no_place(src: str) -> None:
    assert parse_src(src) is None


def test_a_place_in_words() -> None:
    assert parse_src("c:/a.py:3 f g") == Site("c:/a.py", 3, "f g")
    assert parse_src("a.py:3") == Site("a.py", 3, "")
    assert str(Site("a.py", 3, "f")) == "a.py:3"
