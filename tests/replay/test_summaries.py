"""Calls and outcomes in a few words."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.summaries import error_words, outcome_words, request_words, unprinted


@pytest.mark.parametrize(
    ("kind", "name", "fields", "words"),
    [
        ("tool", "search", {"args": {"q": "a", "n": 2}}, 'search("a", 2)'),
        ("agent", "helper", {"args": ["a"], "kwargs": {}}, 'helper("a")'),
        ("model", "gpt-4o", {"messages": [{"role": "user", "content": "hi"}]}, 'gpt-4o: "hi"'),
        ("now", "now", {}, "now"),
        ("http", "GET http://x", {"method": "GET", "url": "http://x"}, "GET http://x"),
        ("memory", "get", {"key": "k"}, 'get("k")'),
    ],
)
def test_requests(kind: str, name: str, fields: Any, words: str) -> None:
    assert request_words(kind, name, fields) == words


@pytest.mark.parametrize(
    ("kind", "status", "tree", "words"),
    [
        ("tool", "ok", "found", "found"),
        ("tool", "ok", [{"id": number} for number in range(4031)], "4,031 items"),
        ("tool", "error", {"$error": {"type": "builtins:ValueError", "message": "no"}}, "ValueError: no"),
        ("tool", None, None, "no outcome (the run died here)"),
        ("tool", "cancelled", None, "cancelled"),
        ("tool", "closed", None, "left early"),
        ("model", "ok", {"content": "hello", "tool_calls": []}, '"hello"'),
        (
            "model",
            "ok",
            {"content": None, "tool_calls": [{"function": {"name": "refund", "arguments": '{"n": 812}'}}]},
            "refund(812)",
        ),
    ],
)
def test_outcomes(kind: str, status: str | None, tree: Any, words: str) -> None:
    assert outcome_words(kind, status, tree) == words


def test_words_are_cut() -> None:
    assert len(request_words("tool", "t", {"args": {"x": "y" * 500}})) <= 48
    assert len(outcome_words("tool", "ok", "x" * 500)) <= 32


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"$error": {"type": "builtins:ValueError", "message": "no x"}}, "ValueError: no x"),
        ({"stdout": "", "stderr": "Traceback\n  f\nKeyError: 'x'\n", "exit": 1}, "KeyError: 'x'"),
        ({"stdout": "", "stderr": "OpenError: no\n  next: open it\n", "exit": 1}, "OpenError: no"),
        ({"stdout": "", "stderr": "", "exit": 3}, "exit code 3"),
        (None, ""),
    ],
)
def test_errors(tree: Any, words: str) -> None:
    assert error_words(tree) == words


def test_what_a_tool_printed_is_no_part_of_its_result() -> None:
    printed: Any = {
        "$obj": {"type": "agentloom.cli.script_tools:Printed", "data": {"value": 4, "printed": []}}
    }
    assert unprinted(printed) == 4
    assert unprinted({"$obj": {"type": "m:Printed", "data": {"value": 4}}}) != 4
