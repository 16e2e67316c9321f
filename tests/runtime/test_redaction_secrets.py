"""What a trace and a line say of secrets, and never the secrets."""

from __future__ import annotations

import os

import pytest

from agentloom import agent, tool
from agentloom.runtime.redaction_secrets import Secret, secrets_in, secrets_line
from agentloom.store import MemoryStore


def test_facts_there_and_back() -> None:
    for secret in (Secret(1, "JWT", None, "call 3"), Secret(2, "environment", "ACME_API_KEY")):
        assert Secret.of_record(secret.facts()) == secret


@pytest.mark.parametrize("facts", [None, [], {}, {"n": "1"}, {"n": True}, {"n": 1.0}])
def test_what_is_no_secret(facts: object) -> None:
    assert Secret.of_record(facts) is None


@pytest.mark.parametrize(
    ("secrets", "line"),
    [
        ([], "0 secrets redacted"),
        ([Secret(1, "environment", "ACME_API_KEY")], "1 secret redacted (ACME_API_KEY)"),
        (
            [Secret(1, "JWT", None, "call 3"), Secret(2, "JWT", None, "call 3")],
            "2 secrets redacted (2 JWT in call 3)",
        ),
        (
            [Secret(n, "JWT", None, f"call {n}") for n in range(1, 7)],
            "6 secrets redacted (1 JWT in call 1, 1 JWT in call 2, 1 JWT in call 3, 1 JWT in call 4, 2 more)",
        ),
    ],
)
def test_a_line(secrets: list[Secret], line: str) -> None:
    assert secrets_line(secrets) == line


def test_of_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "k3-8237429")

    @tool
    def use(value: str) -> str:
        return value

    @agent(guard="off")
    def passes() -> str:
        return use(os.environ["ACME_API_KEY"])

    found = secrets_in(passes.run(store=MemoryStore()).journal)
    assert [secret.name for secret in found.values() if secret.kind == "environment"] == ["ACME_API_KEY"]
    assert list(found) == [secret.number for secret in found.values()]
