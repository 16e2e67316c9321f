"""Which variables' values are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.runtime.redaction_env import environment_values, too_common
from agentloom.runtime.redaction_found import Known


@pytest.mark.parametrize(
    ("name", "value", "looked_for"),
    [
        ("ACME_API_KEY", "k3-8237429", True),
        ("ACME_API_KEY", " k3-8237429\n", True),
        ("ACME_API_KEY", "short1", False),
        ("ACME_PASSWORD", "database", False),
        ("ACME_PASSWORD", "12345678", False),
        ("ACME_PASSWORD", "changeme", False),
        ("ACME_PASSWORD", "correct horse battery staple", True),
        ("ACME_HOME", "k3-8237429", False),
        ("ACME_AUTH", "/usr/bin/env", False),
        ("ACME_DSN", "https://example.com/path-of-thing", False),
    ],
)
def test_a_value_is_looked_for(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, looked_for: bool
) -> None:
    monkeypatch.setenv(name, value)
    found = environment_values().values
    assert (found.get(value.strip().encode()) == Known("environment", name)) is looked_for


def test_the_password_of_an_address_in_any_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMEWHERE", "postgres://app:pw-8237429@host/db")
    assert environment_values().values[b"pw-8237429"] == Known("environment", "SOMEWHERE")


def test_variables_that_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACME_LOGIN", "login-8237429")
    assert b"login-8237429" not in environment_values().values
    assert environment_values(("ACME_LOGIN",)).values[b"login-8237429"].name == "ACME_LOGIN"
    monkeypatch.setenv("AGENTLOOM_SECRET_ENV", "OTHER,ACME_LOGIN")
    assert environment_values().values[b"login-8237429"].name == "ACME_LOGIN"


def test_words_and_short_values_are_too_common() -> None:
    assert all(too_common(text) for text in ("", "abc", "password", "a.b.c-d_e", "1234567", "127.0.0.1:80"))
    assert not any(too_common(text) for text in ("pass-word-1", "8f14e45f", "correct horse battery"))
