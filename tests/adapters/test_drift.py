"""A model that answers as another one within a run is told once, with both values."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import openai
import pytest

from agentloom.replay import replayer
from agentloom.replay.served import compare_tools
from agentloom.testing.replies import Says
from tests.adapters.seam import tape


def twice(url: str) -> Any:
    with openai.OpenAI(base_url=url, api_key="unused") as client:
        ask = client.chat.completions.create
        return [ask(model="gpt", messages=[]).model for _ in range(3)]


def test_another_model_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    script: list[Any] = [
        Says("a", model="gpt-1"),
        Says("b", model="gpt-2", fingerprint="fp_2"),
        Says("c", model="gpt-3"),
    ]
    with caplog.at_level(logging.WARNING, logger="agentloom.drift"):
        done = tape(twice, script)
    assert done.report.verdict == "identical"
    told = {record.getMessage() for record in caplog.records if record.name == "agentloom.drift"}
    assert told == {
        "model of gpt changed within the run: it was 'gpt-1', it is 'gpt-2'",
        "system_fingerprint of gpt changed within the run: it was 'fp_fake', it is 'fp_2'",
    }


def test_the_same_model_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="agentloom.drift"):
        tape(twice, ["a", "b", "c"])
    assert [record for record in caplog.records if record.name == "agentloom.drift"] == []


def test_packages_of_another_version_are_told_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    original = replayer.current_facts

    def moved(agent: Any, recording: Any) -> Any:
        facts = original(agent, recording)
        assert facts.packages["openai"] == openai.__version__
        return dataclasses.replace(facts, packages={**facts.packages, "openai": "99.1"})

    monkeypatch.setattr(replayer, "current_facts", moved)
    done = tape(twice, ["a", "b", "c"])
    assert done.report.verdict == "identical"
    assert (
        f"packages changed: openai {openai.__version__} -> 99.1; it makes no difference to this run"
        in done.report.notes
    )


TOOLS: list[dict[str, Any]] = [
    {"name": "total", "inputSchema": {"type": "object", "properties": {"order": {"type": "integer"}}}},
    {"name": "refund", "description": "Give it back.", "inputSchema": {"type": "object"}},
]


def test_added_removed_renamed_and_changed_tools_are_told_apart() -> None:
    now = [
        {"inputSchema": {"properties": {"order": {"type": "string"}}, "type": "object"}, "name": "total"},
        {"name": "pay_back", "description": "Give it back.", "inputSchema": {"type": "object"}},
        {"name": "status", "inputSchema": {"type": "object"}},
    ]
    assert compare_tools(TOOLS, now) == [
        "tool refund was renamed: it is pay_back now",
        "tool status was added",
        'tool total changed: inputSchema.properties.order.type was "integer", is "string"',
    ]
    assert compare_tools(now, TOOLS)[1] == "tool status was removed"


def test_the_order_of_keys_and_tools_is_no_change() -> None:
    again = [
        {"inputSchema": {"type": "object"}, "description": "Give it back.", "name": "refund"},
        {"inputSchema": {"properties": {"order": {"type": "integer"}}, "type": "object"}, "name": "total"},
    ]
    assert compare_tools(TOOLS, again) == []


def test_true_and_one_are_different_and_absent_fields_are_named() -> None:
    one = [{"name": "a", "inputSchema": {"const": True}}]
    two = [{"name": "a", "inputSchema": {"const": 1}, "title": "A"}]
    assert compare_tools(one, two) == [
        "tool a changed: inputSchema.const was true, is 1",
        'tool a changed: title was absent, is "A"',
    ]


def test_two_equal_tools_that_are_renamed_are_paired_once() -> None:
    one = [{"name": "a"}, {"name": "b"}]
    assert compare_tools(one, [{"name": "c"}]) == ["tool a was renamed: it is c now", "tool b was removed"]
