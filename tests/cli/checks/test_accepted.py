"""Comments that accept findings."""

from __future__ import annotations

import pytest

from agentloom.cli.checks.accepted import accept
from agentloom.cli.checks.static import found_in
from tests.cli.checks.flow.agents import HEAD, source

LEAK = "    return search(hash(given))"


def accepted(line: str, above: str = "") -> tuple[list[str], list[str]]:
    """Names of the findings that are left, and reasons of those that are accepted."""
    file = source(HEAD + "@agent\ndef run(given):\n" + above + line + "\n")
    left, kept = accept([file], found_in([file]))
    return [one.check for one in left], [one.reason for one in kept]


@pytest.mark.parametrize("mark", ["# agentloom: ok hash a bucket", "#agentloom:ok hash: a bucket"])
def test_in_the_line_and_alone_above_it(mark: str) -> None:
    assert accepted(f"{LEAK}  {mark}") == ([], ["a bucket"])
    assert accepted(LEAK, f"    {mark}\n    # and another comment\n\n") == ([], ["a bucket"])


@pytest.mark.parametrize(
    "mark", ["# agentloom: ok hash", "# agentloom: ok set-order a bucket", "# agentloom: ok"]
)
def test_without_a_reason_or_of_another_name_nothing_is_accepted(mark: str) -> None:
    assert accepted(f"{LEAK}  {mark}") == (["hash", "accepted"], [])


def test_in_another_line_or_in_a_text_it_is_none() -> None:
    assert accepted(LEAK, "    x = 1  # agentloom: ok hash a bucket\n") == (["hash", "accepted"], [])
    assert accepted(LEAK, "    '# agentloom: ok hash a bucket'\n") == (["hash"], [])


def test_what_was_not_looked_for_is_not_judged() -> None:
    file = source("x = 1  # agentloom: ok hash a bucket\n")
    assert [one.check for one in accept([file], [])[0]] == ["accepted"]
    assert accept([file], [], ["set-order"])[0] == []


def test_json_has_the_reason() -> None:
    file = source(HEAD + "@agent\ndef run(given):\n" + LEAK + "  # agentloom: ok hash why not\n")
    (one,) = accept([file], found_in([file]))[1]
    assert one.to_json()["accepted"] == "why not"
    assert one.to_json()["check"] == "hash"
