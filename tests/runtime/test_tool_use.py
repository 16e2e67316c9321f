"""What the user of a run says of tools, and what a tool says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.runtime.tool_use import ToolUse, checked_tools, declared_effect, tools_of_record


@pytest.mark.parametrize("effect", ["pure", "read", "write", "agent"])
def test_words_for_effects(effect: Any) -> None:
    assert checked_tools({"look": effect}) == {"look": effect}
    assert declared_effect({"agentloom": effect, "other": 1}, "look") == effect
    assert tools_of_record({"tools": {"look": effect}}) == ToolUse({"look": effect})


@pytest.mark.parametrize("said", ["reads", "", 1, ["read"]])
def test_other_words_are_errors_that_name_the_tool(said: Any) -> None:
    with pytest.raises(ValueError, match="look"):
        declared_effect({"agentloom": said}, "look")
    with pytest.raises(ValueError, match="look"):
        checked_tools({"look": said})


@pytest.mark.parametrize("metadata", [None, {}, "agentloom", {"other": "read"}, {"agentloom": None}])
def test_nothing_said(metadata: Any) -> None:
    assert declared_effect(metadata, "look") is None
    assert checked_tools(None) == {}


@pytest.mark.parametrize("policy", [None, {}, {"tools": None}, {"tools": "read"}, "policy", []])
def test_a_trace_that_says_nothing(policy: Any) -> None:
    assert tools_of_record(policy) is None


def test_words_of_a_later_version_are_passed_over() -> None:
    assert tools_of_record({"tools": {"look": "read", "pay": "sometimes"}}) == ToolUse({"look": "read"})
