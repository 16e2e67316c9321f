"""Which variables' values are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloom.runtime.redaction_env import (
    environment_values,
    hidden_parts,
    passwords_in,
    secret_texts,
    too_common,
)
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


@pytest.mark.parametrize(
    ("value", "looked_for"),
    [
        ("mysql://app:p%40ss-word1@h/db", {"p%40ss-word1", "p@ss-word1"}),
        ("mysql://app:ab@cd-8237429@h/db", {"ab@cd-8237429"}),
        ("a://u:first-1234@h b://u:second-1234@h", {"first-1234", "second-1234"}),
        ("x://h/no", set()),
    ],
)
def test_passwords_are_looked_for_as_clients_read_them(value: str, looked_for: set[str]) -> None:
    assert set(secret_texts("SOMEWHERE", value)) == looked_for


def test_texts_in_json_are_looked_for_each() -> None:
    value = (
        '{"type": "service_account", "key": "k-8237429\\nx", "list": ["k-11223344"], "uri": "https://x.com/"}'
    )
    found = secret_texts("ACME_CREDENTIALS", value)
    assert {"k-8237429\nx", "k-11223344"} < set(found)
    assert not {"service_account", "https://x.com/"} & set(found)
    assert secret_texts("ACME_CREDENTIALS", "{broken") == []


def test_addresses_take_linear_time() -> None:
    assert passwords_in("://a:" * 200_000) == []
    assert hidden_parts("x://" * 200_000)[0][1] == 800_000
