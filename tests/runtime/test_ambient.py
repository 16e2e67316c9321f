"""Ambient values: recorded when asked for, credentials refused."""

from __future__ import annotations

import datetime as dt
import uuid

import pytest

from agentloom import agent, sync
from agentloom.errors import NoActiveRun, ValueRefused
from agentloom.runtime.ambient import env_call, random_call
from agentloom.store import MemoryStore


@agent
def draws() -> tuple[dt.datetime, float, uuid.UUID, str | None, str | None]:
    return sync.now(), sync.random(), sync.uuid(), sync.env("PLACE"), sync.env("NOWHERE", "default")


def test_each_value_is_recorded_and_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "here")
    trace = draws.run(store=MemoryStore())
    now, number, unique, place, other = trace.output
    assert now.tzinfo == dt.UTC
    assert 0 <= number < 1
    assert unique.version == 4
    assert (place, other) == ("here", "default")
    assert [call.kind for call in trace.calls] == ["now", "random", "uuid", "env", "env"]
    monkeypatch.setenv("PLACE", "elsewhere")
    assert trace.replay().verdict == "identical"


def test_a_seed_fixes_the_draws_of_each_path() -> None:
    first, again, other = (draws.run(seed=seed, store=MemoryStore()).output[1] for seed in (7, 7, 8))
    assert first == again != other


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "aws_secret_access_key", "SENTRY_DSN", "PGPWD_AUTH",
        "PGPASSWORD", "DB_PASS", "SERVICE_APIKEY", "api-key", "SSH_PASSPHRASE", "SESSION_COOKIE", "API_KEYS",
    ],
)  # fmt: skip
def test_credentials_are_refused(name: str) -> None:
    with pytest.raises(ValueRefused, match="looks like a credential"):
        env_call(name, None)


@pytest.mark.parametrize(
    "name", ["HOME", "KEYBOARD", "AUTHOR", "MONKEY", "PWDX", "COMPASS", "MAX_TOKENS", "BYPASS"]
)
def test_other_names_are_not(name: str) -> None:
    assert env_call(name, None)[0].request == {"name": name, "default": None}


@agent
def connects() -> str | None:
    try:
        return sync.env("DATABASE_URL")
    except ValueRefused as refused:
        return refused.reason


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("postgres://host:5432/db", True),
        ("postgres://user@host/db", True),
        ("postgres://u:{}@host/db", False),
    ],
)
def test_an_address_with_a_password_is_not_recorded(
    url: str, kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    password = "hunter" + str(2)  # this source is in the trace: the whole word must not be
    url = url.format(password)
    monkeypatch.setenv("DATABASE_URL", url)
    store = MemoryStore()
    trace = connects.run(store=store)
    assert (trace.output == url) is kept
    assert password.encode() not in store.read(trace.run_id)


def test_draws_need_a_run() -> None:
    with pytest.raises(NoActiveRun, match=r"random\(\) was called outside a run"):
        random_call()
