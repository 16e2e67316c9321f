"""Which names say that a value is a credential."""

from __future__ import annotations

import json

import pytest

from agentloom.format.canonical import Tree
from agentloom.format.echoes import text_of
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_names import is_secret_header, is_secret_name, is_secret_variable, scheme_of


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "DB_PASSWORD",
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "SENTRY_DSN",
        "PGPASSWORD",
        "AUTH",
    ],
)
def test_variables_that_hold_credentials(name: str) -> None:
    assert is_secret_variable(name)


@pytest.mark.parametrize(
    "name", ["PWD", "OLDPWD", "HOME", "PATH", "MAX_TOKENS", "TOKENIZERS_PARALLELISM", "KEYBOARD"]
)
def test_variables_that_do_not(name: str) -> None:
    assert not is_secret_variable(name)


@pytest.mark.parametrize(
    "name",
    [
        "password", "Password", "userPassword", "db_password", "api_key", "apiKey", "x-api-key", "Authorization",
        "client_secret", "access_token", "accessToken", "refresh-token", "Set-Cookie", "secret", "private_key",
    ],
)  # fmt: skip
def test_fields_that_hold_credentials(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "token", "max_tokens", "page_token", "sort_key", "key", "secretary", "password_hint", "tokens",
        "author", "passport", "api_key_env", "x" * 100 + "_password",
    ],
)  # fmt: skip
def test_fields_that_do_not(name: str) -> None:
    assert not is_secret_name(name)


def test_headers_by_their_whole_name() -> None:
    assert is_secret_header("Authorization")
    assert is_secret_header("cookie")
    assert not is_secret_header("args.password")


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("Bearer abc", ("Bearer", "abc")),
        ("digest a b", ("digest", "a b")),
        ("abc", ("", "abc")),
        ("bearer", ("", "bearer")),
        ("abc Bearer", ("", "abc Bearer")),
    ],
)
def test_the_scheme_before_a_credential(value: str, parts: tuple[str, str]) -> None:
    assert scheme_of(value) == parts


_WORDS = """password passwd passphrase pass-word api-key apikey access-token auth-token refresh-token id-token
    session-token security-token bearer-token csrf-token oauth-token secret client-secret app-secret
    consumer-secret shared-secret secret-key secret-access-key private-key access-key authorization
    proxy-authorization cookie set-cookie x-api-key x-auth-token x-auth-key x-goog-api-key credential
    credentials""".split()


def _spellings(name: str) -> list[str]:
    words = name.split("-")
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    return [
        name,
        "_".join(words),
        camel,
        "_".join(words).upper(),
        "-".join(word.capitalize() for word in words),
    ]


@pytest.mark.parametrize("name", sorted({one for word in _WORDS for one in _spellings(word)}))
def test_the_gate_stops_at_every_name_that_says_so(name: str) -> None:
    assert is_secret_name(name)
    redactor = Redactor()
    for value in ("k3-8237429", "Bearer k3-8237429", 82374291):
        trees: list[Tree] = [{name: value}, {"headers": [{name: value}]}]
        if isinstance(value, str):  # a number in a program is seldom one
            trees.append(json.dumps({name: value}))
        for tree in trees:
            assert redactor.suspects(text_of(tree)), tree
            assert "8237429" not in str(redactor.tree(tree)), tree
