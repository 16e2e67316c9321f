"""Every finding is in the catalogue, and the catalogue in the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.cli.checks.catalogue import RULES, Rule

PAGE = (Path(__file__).parents[3] / "docs" / "check.md").read_text("utf-8")


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_the_page_lists_each_rule_in_its_words(rule: Rule) -> None:
    assert f"| `{rule.name}` | {rule.level} | {rule.what} | {rule.fix} |" in PAGE
    assert rule.reason


def test_the_page_lists_no_other() -> None:
    rows = PAGE.partition("## What is found")[2].partition("### Accepting")[0].splitlines()
    assert len([row for row in rows if row.startswith("| `")]) == len(RULES)
