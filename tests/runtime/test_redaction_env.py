"""Which variables' values are looked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from agentloom.runtime.redaction import Redactor
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


ODD = [
    "DOM\\user:pw123456789",
    'p@ss\\w0rd"123',
    "C:\\Users\\me\\k-123456",
    "k-8237429\\",
    "k-8237429\\n\\u00e9\\ud800",
    "https://app:pw\\d-8237429\\@host/db",
    "https://host/hook\\k-8237429\\",
    "k-\x01\x1f\x7f8237429\n1",
    'k-8237429"\\"\'',
    os.fsdecode(b"k-\xff\xfe8237429\\"),
    os.fsdecode(b'{"key": "k-\xff8237429\\n"}'),
    '{"key": "k-\\ud8008237429"}',
    '{"key": "k-8237429\\q"}',
    "[" * 200 + "k-8237429",
    "\u2003{\\k-8237429",
    "k-8237429\\x" * 60,
]


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_a_value_that_is_no_json_is_looked_for_as_it_stands(value: str) -> None:
    looked_for_as_it_stands(value)


@seed(20261128)
@settings(max_examples=150, deadline=None, database=None)
@given(
    st.binary(max_size=60) | st.text("\\\"'{}[]:/@%nu0aA1\x01\n\u00e9 ", max_size=60).map(os.fsencode),
    st.sampled_from(["", "k-8237429", "{", "[", '{"a": "', "https://app:", "postgres://"]),
)
def test_a_value_of_any_kind_can_be_looked_for(rest: bytes, start: str) -> None:
    looked_for_as_it_stands(start + os.fsdecode(rest.replace(b"\0", b"\\")))


def looked_for_as_it_stands(value: str) -> None:
    """Each part of a value is looked for as it stands, unless it is a text of JSON; the whole value always is."""
    found = secret_texts("ACME_API_KEY", value)
    for text in found:
        text.encode("utf-8", "surrogateescape")
    plain = value.strip()
    if "://" not in value and plain[:1] not in ("/", "~", ".") and not too_common(plain):
        assert plain in found
    try:
        json.loads(value)
    except (ValueError, RecursionError):
        if "://" not in value:
            assert set(found) <= {plain, value}
    spans = hidden_parts(value)
    assert all(0 <= start <= end <= len(value) for start, end in spans)
    assert [*sorted(spans)] == spans


@pytest.mark.parametrize("value", ODD, ids=range(len(ODD)))
def test_a_value_of_any_kind_is_hidden(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ACME_API_KEY", value)
    redactor = Redactor()
    if not too_common(value.strip()) and "://" not in value:
        data = value.encode("utf-8", "surrogateescape")
        assert b"8237429" not in redactor.bytes_of(b"<" + data + b">")
    assert "8237429" not in redactor.variable("ACME_API_KEY", value)
    redactor.set_variable("ACME_PASSWORD", value)


def test_texts_in_json_are_read_with_their_escapes_alone() -> None:
    assert "k-\\8237429" in secret_texts("ACME_KEY", '{"a": "k-\\\\8237429"}')
    assert "pw\\n8237429" in secret_texts("ACME_KEY", "https://app:pw\\n8237429@host/")
