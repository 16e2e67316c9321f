"""What tools leave in variables."""

from __future__ import annotations

from tests.cli.checks.flow.agents import names, of_script


def test_a_variable_that_a_tool_changes_and_the_agent_reads() -> None:
    before = "FOUND = []\n@tool\ndef find(x):\n    FOUND.append(x)"
    assert names("find(given)\nsearch(FOUND)", before=before) == ["tool-state"]
    assert names("find(given)", before=before) == []
    assert names("find(given)\nsearch(FOUND)", before=before.replace("FOUND.append(x)", "FOUND = [x]")) == []


def test_in_a_script_too() -> None:
    text = "LAST = None\ndef find(x):\n    global LAST\n    LAST = x\nclient.run(tools=[find])\nprint(LAST)\n"
    assert of_script(text) == [(4, "tool-state")]
