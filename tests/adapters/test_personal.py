"""Personal data through the optional extra: found, hidden, replayed; and what is said without it."""

from __future__ import annotations

import socket
import sys
from typing import Any

import pytest

from agentloom import agent, personal, secrets, tool, use_secrets
from agentloom.errors import NotSupported, ValueRefused
from agentloom.runtime.redaction import Redactor
from agentloom.store import MemoryStore

# In no source as they are: sources are part of a trace.
MAIL = f"ada.{'lovelace'}@example.org"
CARD = f"4111 {1111} 1111 1111"
PHONE = f"+44 20 {7946} 0958"


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@tool
def use(value: Any) -> Any:
    return value


def test_what_is_found_and_what_it_is_called() -> None:
    find = personal()
    text = f"é Ada, {MAIL}, {PHONE}, {CARD}; 2026-11-28, 10.0.0.1, 94107 \ud83d"
    assert [(text[start:end], kind) for start, end, kind in find(text)] == [
        (MAIL, "email"),
        (PHONE, "phone"),
        (CARD, "credit card"),
    ]  # fmt: skip
    assert list(personal("DATE")("on 2026-11-28")) == [(3, 13, "date")]
    assert list(find("")) == []


def test_a_locale() -> None:
    iban = "DE89370400440532013000"
    assert [kind for _, _, kind in personal(locale="de")(f"IBAN: {iban} {MAIL}")] == ["de iban", "email"]
    assert list(personal()(iban)) == []


def test_a_run_is_kept_without_it_and_replays() -> None:
    @agent
    def writes_to(text: str) -> Any:
        return use({"text": text, "deep": [{"to": text}], "json": f'{{"to": "{text}"}}'})

    with use_secrets(secrets(find=personal())):
        trace = writes_to.run(f"write to {MAIL} or {PHONE}", store=MemoryStore())
        assert trace.replay().verdict == "identical"
    for hidden in (MAIL, PHONE):
        assert hidden.encode() not in trace._data
    # The first entry holds the sources of modules too: of all those that other tests have loaded.
    later = trace.journal.entries[1:]
    assert {secret["kind"] for entry in later for secret in _told(trace, entry)} <= {"email", "phone"}


def _told(trace: Any, entry: Any) -> Any:
    blob = entry.get("secrets")
    return trace.journal.tree(blob) if blob else []


def test_rules_of_an_agent_alone() -> None:
    redactor = Redactor(secrets(find=personal("EMAIL")))
    assert redactor.tree({"a": MAIL, "b": PHONE}) == {"a": "__redacted_1__", "b": PHONE}


@pytest.mark.parametrize(
    "call",
    [
        lambda: personal("NAME"),
        lambda: personal(locale="xx"),
        lambda: personal("PERSON"),
    ],
)
def test_what_there_is_not_is_refused(call: Any) -> None:
    with pytest.raises(ValueRefused):
        call()


def test_without_the_extra_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datafog_core", None)
    with pytest.raises(NotSupported, match="datafog-core") as caught:
        personal()
    assert caught.value.hint == "pip install 'agentloom-runtime[personal]'"
