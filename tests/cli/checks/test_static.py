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


def test_of_a_named_agent_only_what_it_reaches() -> None:
    text = TEXT + (
        "def helper(given):\n    return hash(given)\n"
        "@agent\ndef inner(given):\n    return helper(given)\n"
        "@agent\ndef other(given):\n    hash(given)\n    return model('gpt-4o', given)\n"
        "@agent\ndef outer(given):\n    return inner(given)\n"
    )
    assert {one.function for one in found_in([source(text)])} == {"run", "helper", "other"}
    assert {one.function for one in found_in([source(text)], name="run")} == {"run"}
    assert {one.function for one in found_in([source(text)], name="outer")} == {"helper"}


def test_a_long_chain_is_followed() -> None:
    chain = "".join(f"    elif given == {number}:\n        pass\n" for number in range(150))
    text = (
        HEAD
        + f"@agent\ndef run(given):\n    if not given:\n        pass\n{chain}    return hash('a'{' + given' * 500})\n"
    )
    assert "hash" in [one.check for one in found_in([source(text)])]
