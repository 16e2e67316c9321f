"""Case 2: a framework stamps fresh UUIDs on messages and tool calls in every process; replayed in a new one: no
miss."""

from __future__ import annotations

import json

from agentloom.testing import Seen
from tests.cases.conftest import Scenario

AGENT = """
import uuid
def mint(prefix=""): return prefix + uuid.uuid4().hex if prefix else str(uuid.uuid4())
call = mint("call_")
other = mint("call_")
history = [
    {"role": "user", "content": "order 812", "id": mint()},
    {"role": "assistant", "content": None, "id": mint(), "tool_calls": [
        {"id": call, "type": "function", "function": {"name": "lookup", "arguments": "{}"}},
        {"id": other, "type": "function", "function": {"name": "lookup", "arguments": "[]"}}]},
    {"role": "tool", "tool_call_id": call, "content": "40"},
    {"role": "tool", "tool_call_id": other, "content": "41"},
]
print(ask(history))
history.append({"role": "user", "content": "and now?", "id": mint()})
print(ask(history))
"""


def _echo(seen: Seen) -> str:
    return f"re {seen.body['messages'][-1]['content']}"


OFF = ("--guard", "off")
"""Then ids are fresh in every process; under a guard they are the run's own, and come again."""


def test_under_the_guard_ids_come_again(scenario: Scenario) -> None:
    scenario.record(AGENT.replace('"content": "40"', '"content": "40 for " + call'), _echo)
    data = json.loads(scenario.identical("--json").out)
    assert data["verdict"] == "identical"
    assert data["guard"] == "virtual"


def test_fresh_ids_in_a_new_process_are_no_miss(scenario: Scenario) -> None:
    scenario.record(AGENT, _echo, options=OFF)
    done = scenario.identical("--json")
    data = json.loads(done.out)
    assert data["verdict"] == "identical except noted"
    assert data["counts"] == {"calls": 2, "exact": 0, "noted": 2, "unmatched": 0}
    paths = [item["path"] for item in data["noted"][0]["differences"]["items"]]
    assert paths[0] == "messages[0].id"
    assert "messages[2].tool_call_id" in paths
    assert all(path.endswith("id") for path in paths)


def test_an_id_that_pairs_with_another_result_is_a_change(scenario: Scenario) -> None:
    """Renamed by first appearance, not dropped: which result belongs to which call still counts."""
    scenario.record(AGENT, _echo, options=OFF)
    scenario.edit(('"tool_call_id": call, "content": "40"', '"tool_call_id": other, "content": "40"'))
    text, data = scenario.diverged()
    assert data["class"] == "changed"
    assert "tool_call_id" in text
    assert [item["path"] for item in data["differences"]["items"]] == ["messages[2].tool_call_id"]


def test_an_id_in_the_text_is_a_leak(scenario: Scenario) -> None:
    scenario.record(AGENT.replace('"content": "40"', '"content": "40 for " + call'), _echo, options=OFF)
    text, data = scenario.diverged()
    assert data["class"] == "leak"
    assert [item["path"] for item in data["differences"]["items"]] == ["messages[2].content"]
    assert "messages[2].content" in text
