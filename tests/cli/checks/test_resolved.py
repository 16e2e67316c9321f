"""Runs: the names that were asked for, and the models that answered."""

from __future__ import annotations

from typing import Any

from agentloom.cli.checks.resolved import resolved_findings
from agentloom.format.journal import Journal
from agentloom.replay.recording import Recording
from tests.cli.samples import Maker


def found(*calls: tuple[str, Any]) -> list[Any]:
    run = Maker()
    for number, (name, outcome) in enumerate(calls):
        run.call(number, "model", name, {"model": name}, outcome)
    return resolved_findings(Recording.from_journal(Journal.parse(run.end())), "7f3a")


def test_a_floating_name_is_told_with_what_it_stood_for() -> None:
    answer = {"content": "a", "model": "gpt-4o-2024-08-06"}
    (one,) = found(("gpt-4o", answer), ("gpt-4o", answer), ("gpt-4o", {"content": "a", "model": None}))
    assert (one.level, one.file, one.subject) == ("warning", "7f3a, call 1", "gpt-4o")
    assert (
        one.said
        == "gpt-4o was asked 3 times; answered 2 by gpt-4o-2024-08-06, 1 by a model that was not named"
    )
    assert one.fix == "name gpt-4o-2024-08-06"


def test_a_pinned_name_is_nothing_to_say_unless_another_answered() -> None:
    assert found(("openai:gpt-4o-2024-08-06", {"content": "a", "model": "gpt-4o-2024-08-06"})) == []
    (one,) = found(("gpt-4o-2024-08-06", {"content": "a", "model": "gpt-4o-2024-11-20"}))
    assert (one.level, one.reason) == ("note", "another model answered than the one that was asked")


def test_two_models_behind_one_name_are_a_warning_whatever_the_name() -> None:
    (one,) = found(("house", {"content": "a", "model": "x-1"}), ("house", {"content": "a", "model": "x-2"}))
    assert one.level == "warning"
    assert "1 by x-1, 1 by x-2" in one.said


def test_answers_of_sdks_name_their_model_too() -> None:
    wire = {"status": 200, "headers": {}, "json": {"model": "claude-haiku-4-5-20251001", "content": []}}
    (one,) = found(("claude-haiku-4-5", wire))
    assert one.fix == "name claude-haiku-4-5-20251001"
