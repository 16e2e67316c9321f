"""All static checks together."""

from __future__ import annotations

from agentloom.cli.checks.static import CHECKS, found_in
from tests.cli.checks.flow.agents import HEAD, source

TEXT = HEAD + "@agent\ndef run(given):\n    hash(given)\n    return model('gpt-4o', str({*given}))\n"


def test_in_the_order_of_lines_with_the_function() -> None:
    found = found_in([source(TEXT)])
    assert [(one.check, one.line, one.function) for one in found] == [
        ("hash", 9, "run"),
        ("model-alias", 10, "run"),
        ("set-order", 10, "run"),
    ]
    assert set(CHECKS) == {"model-alias"}


def test_only_what_is_wanted() -> None:
    assert [one.check for one in found_in([source(TEXT)], wanted={"hash"})] == ["hash"]
