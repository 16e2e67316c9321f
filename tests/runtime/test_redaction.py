"""The redactor of one run: what the gate lets pass, what it looks for, what it says of what it found."""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import urllib.parse

import pytest

from agentloom import agent, tool
from agentloom.format.blobs import Suspect
from agentloom.runtime.guard import GuardPolicy
from agentloom.runtime.redaction import Redactor
from agentloom.runtime.redaction_secrets import secrets_in, secrets_line
from agentloom.store import MemoryStore
from tests.secrets.shapes import make

SEED = 20261128


def _two() -> tuple[bytes, bytes]:
    rng = random.Random(SEED)
    return make("aws", rng).encode(), make("openai", rng).encode()


def test_each_place_in_bytes_is_told_with_what_is_there() -> None:
    aws, openai = _two()
    coded = base64.b64encode(b"the key is " + openai)
    found = Redactor().found_in(aws + b" then " + coded + b" and " + aws)
    assert [(known.kind, start) for start, _, known in found] == [
        ("AWS key id", 0),
        ("OpenAI-style key", len(aws) + 6),
        ("AWS key id", len(aws) + 6 + len(coded) + 5),
    ]


def test_what_is_part_of_another_secret_is_not_told() -> None:
    aws, openai = _two()
    text = b"postgres://app:" + urllib.parse.quote(f"{aws.decode()}%2F").encode() + b"@db/main " + openai
    assert [known.kind for _, _, known in Redactor().found_in(text)] == [
        "password in a URL",
        "OpenAI-style key",
    ]


def test_two_in_one_coded_block_are_both_told() -> None:
    aws, openai = _two()
    found = Redactor().found_in(base64.b64encode(aws + b" " + openai))
    assert [known.kind for _, _, known in found] == ["AWS key id", "OpenAI-style key"]


# -- the environment ---------------------------------------------------------------------------------------------------


def _suspect(redactor: Redactor, data: bytes) -> bool:
    try:
        redactor.gate(data)
    except Suspect:
        return True
    return False


def test_a_variable_that_changes_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "first-8237429")
    monkeypatch.setenv("ACME_HOME", "x")
    redactor = Redactor()
    assert _suspect(redactor, b'"first-8237429"')
    assert not _suspect(redactor, b'"second-8237429"')
    monkeypatch.setenv("ACME_API_KEY", "second-8237429")
    assert _suspect(redactor, b'"second-8237429"')
    assert _suspect(redactor, b'"first-8237429"')
    monkeypatch.delenv("ACME_HOME")
    monkeypatch.setenv("OTHER_API_KEY", "third-8237429")  # as many variables as before
    assert _suspect(redactor, b'"third-8237429"')


def _late() -> str:
    """A value that is in no source: sources are part of a trace."""
    return f"late-{8237429}"


@tool
def use(value: object) -> object:
    return value


@pytest.mark.parametrize("policy", ["off", "virtual", "strict"])
def test_a_variable_that_a_run_sets_is_looked_for(
    policy: GuardPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACME_API_KEY", "first-8237429")

    @agent
    def signs_in() -> object:
        os.environ["ACME_API_KEY"] = _late()
        return use({"signed": os.environ["ACME_API_KEY"]})

    trace = signs_in.run(store=MemoryStore(), guard=policy)
    assert _late().encode() not in trace._data
    assert str(trace.output["signed"]).startswith("__redacted_")
    assert trace.replay().verdict == "identical"


def test_a_variable_that_a_tool_changes_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACME_API_KEY", "first-8237429")

    @tool
    def rotate() -> str:
        os.environ["ACME_API_KEY"] = _late()
        return f"now {os.environ['ACME_API_KEY']}"

    @agent
    def rotates() -> object:
        return rotate()

    trace = rotates.run(store=MemoryStore())
    assert _late().encode() not in trace._data
    assert trace.replay().verdict == "identical"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("ACME_API_KEY", "abc", "__redacted_1__"),
        ("DATABASE_URL", "postgres://app:pw-8237429@db:5432/main", "postgres://app:__redacted_1__@db:5432/main"),
        ("A_URL", "http://a:pw-1@h/ http://b:pw-2@h/", "http://a:__redacted_1__@h/ http://b:__redacted_2__@h/"),
        ("A_URL", "amqp://a:p@ss@w0rd-11@h", "amqp://a:__redacted_1__@h"),
        ("SENTRY_DSN", "https://0f3c9ab1d2e4@o1.ingest.sentry.io/42", "https://__redacted_1__@o1.ingest.sentry.io/42"),
        ("ACME_TOKEN", "https://hooks.acme.com/T0/B1/x9y8z7", "https://hooks.acme.com__redacted_1__"),
    ],
)  # fmt: skip
def test_what_stands_for_a_variable(name: str, value: str, shown: str) -> None:
    assert Redactor().variable(name, value) == shown


def test_a_credential_that_is_json_stays_json() -> None:
    key = make("pem", random.Random(SEED))
    given = {
        "type": "service_account",
        "private_key": key,
        "token_uri": "https://oauth2.example.com/token",
        "n": 7,
    }
    for text in (json.dumps(given), json.dumps(given, indent=2)):
        redactor = Redactor()
        shown = redactor.variable("GOOGLE_APPLICATION_CREDENTIALS_JSON", text)
        assert json.loads(shown) == given | {"private_key": "__redacted_1__"}
        assert redactor.text(f"it is {key}") == "it is __redacted_1__"


# -- folded data -------------------------------------------------------------------------------------------------------


def test_all_members_of_gzip_are_looked_at() -> None:
    aws, openai = _two()
    data = b"".join(gzip.compress(part, mtime=0) for part in (b"first " + aws, b"plain", b"last " + openai))
    for given in (data, base64.b64encode(data)):
        redactor = Redactor()
        assert _suspect(redactor, given)
        written = redactor.bytes_of(given)
        plain = gzip.decompress(written if given is data else base64.b64decode(written))
        assert plain == b"first __redacted_1__plainlast __redacted_2__" or plain.count(b"__redacted_") == 2
        assert aws not in plain
        assert openai not in plain


def test_gzip_that_unfolds_to_too_much_is_kept_out_and_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentloom.runtime.redaction_look.UNFOLDED", 1 << 20)
    aws, _ = _two()
    large = gzip.compress(b"x" * (2 << 20) + b" " + aws, mtime=0)
    redactor = Redactor()
    assert _suspect(redactor, large)
    assert redactor.bytes_of(large) == b"__redacted_1__"
    coded = base64.b64encode(b"__redacted_1__")
    assert redactor.bytes_of(b"it is " + base64.b64encode(large)) == b"it is " + coded
    small = gzip.compress(b"x" * (1 << 19) + b" " + aws, mtime=0)
    assert gzip.decompress(redactor.bytes_of(small)) == b"x" * (1 << 19) + b" __redacted_2__"


def test_a_run_tells_of_gzip_that_could_not_be_searched() -> None:
    large = gzip.compress(b"\0" * (65 << 20))

    @tool
    def packed() -> bytes:
        return large

    @agent(guard="off")
    def gives() -> int:
        return len(packed())

    trace = gives.run(store=MemoryStore())
    assert trace.output == len(large)  # live code has the real one
    assert "gzip of more than 64 MiB in call 1" in secrets_line(secrets_in(trace.journal).values())
    assert trace.replay(check=False).verdict == "diverged"
