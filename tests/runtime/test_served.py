"""Two lists of tools that a server served, in words."""

from __future__ import annotations

from typing import Any

from agentloom.runtime.served import compare_tools, tools_in

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


def test_tools_are_found_in_whole_answers_and_in_chunks() -> None:
    whole: Any = {"tools": TOOLS}
    assert tools_in(whole) == TOOLS
    assert tools_in([{"notification": {"method": "x"}}, {"result": whole}]) == TOOLS
    assert tools_in({"content": []}) is None
