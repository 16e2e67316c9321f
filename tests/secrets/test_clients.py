"""On replay the variables that held credentials read as placeholders: clients can be made of them, and an unmodified
program replays on a machine that has none of the secrets."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from agentloom.runtime.redaction import Redactor
from tests.secrets.shapes import holds, make

SEED = 20261128


def _variables() -> dict[str, str]:
    rng = random.Random(SEED)
    account = {
        "type": "service_account",
        "client_email": "agent@x.iam.gserviceaccount.com",
        "private_key": make("pem", rng),
    }
    return {
        "OPENAI_API_KEY": make("openai", rng),
        "ANTHROPIC_API_KEY": f"sk-ant-api03-{make('openai', rng)[8:]}",
        "GOOGLE_API_KEY": f"AIza{make('openai', rng)[8:43]}",
        "MISTRAL_API_KEY": make("openai", rng)[8:40],
        "AWS_ACCESS_KEY_ID": make("aws", rng),
        "AWS_SECRET_ACCESS_KEY": make("openai", rng)[8:48],
        "AWS_SESSION_TOKEN": make("openai", rng)[8:],
        "DATABASE_URL": make("url", rng),
        "SENTRY_DSN": f"https://{make('openai', rng)[8:40]}@o1.ingest.example.com/42",
        "GOOGLE_APPLICATION_CREDENTIALS_JSON": json.dumps(account),
    }


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables as a replay has them."""
    redactor = Redactor()
    made = {name: redactor.variable(name, value) for name, value in _variables().items()}
    for name, value in made.items():
        assert "__redacted_" in value
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    return made


def test_clients_of_providers_are_made_of_placeholders(shown: dict[str, str]) -> None:
    import anthropic
    import boto3  # type: ignore[import-untyped]
    import openai
    from botocore.auth import SigV4Auth  # type: ignore[import-untyped]
    from botocore.awsrequest import AWSRequest  # type: ignore[import-untyped]
    from google import genai

    assert openai.OpenAI().api_key == shown["OPENAI_API_KEY"]
    assert openai.AsyncOpenAI().api_key == shown["OPENAI_API_KEY"]
    assert anthropic.Anthropic().api_key == shown["ANTHROPIC_API_KEY"]
    assert genai.Client() is not None
    session = boto3.Session()
    assert session.client("bedrock-runtime") is not None
    request = AWSRequest("GET", "https://bedrock.eu-west-1.amazonaws.com/")
    SigV4Auth(session.get_credentials(), "bedrock", "eu-west-1").add_auth(request)
    assert shown["AWS_ACCESS_KEY_ID"] in request.headers["Authorization"]


def test_a_client_of_mistral_is_made_of_a_placeholder(shown: dict[str, str]) -> None:
    client = pytest.importorskip("mistralai.client")
    assert client.Mistral(api_key=shown["MISTRAL_API_KEY"]) is not None


def test_addresses_and_json_stay_readable(shown: dict[str, str]) -> None:
    database = urlsplit(shown["DATABASE_URL"])
    assert (database.username, database.hostname, database.port) == ("app", "db.example.com", 5432)
    assert urlsplit(shown["SENTRY_DSN"]).username == "__redacted_9__"
    account = json.loads(shown["GOOGLE_APPLICATION_CREDENTIALS_JSON"])
    assert account["type"] == "service_account"
    assert account["private_key"].startswith("__redacted_")


SCRIPT = """
import json, os
from urllib.parse import urlsplit
import openai
DATABASE = urlsplit(os.environ["DATABASE_URL"])
ACCOUNT = json.loads(os.environ["GOOGLE_APPLICATION_CREDENTIALS_JSON"])
client = openai.OpenAI()
from agentloom import tool
@tool
def use(value):
    return value
print(use({"key": client.api_key, "port": DATABASE.port, "password": DATABASE.password, "type": ACCOUNT["type"],
           "header": client.auth_headers, "pem": ACCOUNT["private_key"]})["port"])
"""


def test_a_script_replays_where_none_of_the_secrets_is(tmp_path: Path) -> None:
    home, empty = tmp_path / "home", tmp_path / "empty"
    home.mkdir()
    empty.mkdir()
    script = tmp_path / "program" / "script.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    plain = {"PATH": os.environ["PATH"], "AGENTLOOM_STORE": str(tmp_path / "store")}
    command = [sys.executable, "-m", "agentloom"]

    def run(*arguments: str, **env: str) -> str:
        done = subprocess.run(
            [*command, *arguments], capture_output=True, text=True, cwd=empty, env=plain | env, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    given = _variables()
    assert "5432" in run("run", str(script), HOME=str(home), **given)
    for name, value in given.items():
        plain_value = urlsplit(value).password or urlsplit(value).username or value
        wanted = json.loads(value)["private_key"].split("\n")[2] if name.endswith("JSON") else plain_value
        assert holds(tmp_path / "store", wanted) == [], name
    assert "IDENTICAL" in run("replay", "last", HOME=str(empty))
