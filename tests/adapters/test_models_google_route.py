"""Where calls of Google go, and with which credential."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from agentloom.adapters import models_google, models_google_token
from agentloom.adapters.models import backend
from agentloom.adapters.models_route import Route, find_route
from agentloom.errors import ModelError, ProviderError
from tests.adapters.native import MESSAGES, exchange, server

ANSWER = {"candidates": [{"content": {"parts": [{"text": "It costs"}]}, "finishReason": "STOP"}]}


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_APPLICATION_CREDENTIALS"):
        monkeypatch.delenv(name, raising=False)
    yield
    backend.close()


# -- where it goes ---------------------------------------------------------------------------------------------------


def route(name: str, **request: Any) -> Route:
    return find_route({"model": name, **request})


def address(name: str, **request: Any) -> str:
    return models_google.address(route(name, **request), stream=False)


def test_addresses_of_the_gemini_api(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k1")
    home = "https://generativelanguage.googleapis.com/v1beta"
    assert address("gemini:gemini-3-pro") == f"{home}/models/gemini-3-pro:generateContent"
    assert address("gemini-3-pro") == f"{home}/models/gemini-3-pro:generateContent"
    assert address("google:tunedModels/a b") == f"{home}/tunedModels/a%20b:generateContent"
    assert (
        models_google.address(route("gemini:m"), stream=True)
        == f"{home}/models/m:streamGenerateContent?alt=sse"
    )
    assert address("gemini:m", base_url="http://h/v1alpha/") == "http://h/v1alpha/models/m:generateContent"
    assert address("gemini:m", base_url="http://h/proxy") == "http://h/proxy/v1beta/models/m:generateContent"
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://other")
    assert address("gemini:m") == "http://other/v1beta/models/m:generateContent"


def test_keys_of_the_gemini_api(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match="GEMINI_API_KEY") as caught:
        route("gemini:m")
    assert caught.value.kind == "auth"
    assert route("gemini:m", base_url="http://h").api_key is None
    monkeypatch.setenv("GEMINI_API_KEY", "k1")
    assert route("gemini:m").api_key == "k1"
    monkeypatch.setenv("GOOGLE_API_KEY", "k2")
    assert route("gemini:m").api_key == "k2"
    monkeypatch.setenv("MINE", "k3")
    assert route("gemini:m", api_key_env="MINE").api_key == "k3"
    assert "k2" not in repr(route("gemini:m"))


def test_addresses_of_vertex(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProviderError, match="GOOGLE_CLOUD_PROJECT"):
        route("vertex:m")
    key = {"api_key": "k"}
    express = "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/m:generateContent"
    assert address("vertex:m", **key) == express
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    end = "publishers/google/models/m:generateContent"
    home = "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global"
    assert address("vertex:m") == f"{home}/{end}"
    assert address("vertexai:publishers/x/models/y") == f"{home}/publishers/x/models/y:generateContent"
    tuned = "projects/q/locations/r/endpoints/1"
    assert address(f"vertex:{tuned}") == f"https://aiplatform.googleapis.com/v1beta1/{tuned}:generateContent"
    for place, host in (("europe-west4", "europe-west4-aiplatform"), ("eu", "aiplatform.eu.rep")):
        monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", place)
        assert (
            address("vertex:m") == f"https://{host}.googleapis.com/v1beta1/projects/p/locations/{place}/{end}"
        )


def _private_key() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return key.private_bytes(*form).decode()


def test_a_token_is_asked_for_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Google's application default credentials, with a server of our own that gives the token."""
    token = exchange(
        "/token", json.dumps({"access_token": "t1", "expires_in": 3599, "token_type": "Bearer"}).encode()
    )
    path = "/v1beta1/projects/p/locations/global/publishers/google/models/m"
    with server(token, exchange(f"{path}:generateContent", json.dumps(ANSWER).encode())) as player:
        secret = {
            "type": "service_account",
            "client_email": "nobody@host",
            "private_key": _private_key(),
            "token_uri": f"{player.url}/token",
        }
        file = tmp_path / "adc.json"
        file.write_text(json.dumps(secret))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
        monkeypatch.setattr(models_google_token, "_held", {})
        request = {"model": "vertex:m", "messages": MESSAGES, "base_url": player.url}
        for _ in range(2):
            assert backend.complete_sync(request)["content"] == "It costs"
        paths = [one.url for one in player.seen]
        headers = dict(player.seen[1].headers)
    assert paths == ["/token", f"{path}:generateContent", f"{path}:generateContent"]
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer t1"


def test_no_token_is_said_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    monkeypatch.setattr(models_google_token, "_held", {})
    with server() as player, pytest.raises(ModelError) as caught:
        backend.complete_sync({"model": "vertex:m", "messages": MESSAGES, "base_url": player.url})
    assert caught.value.kind == "auth"
    assert "gcloud" in (caught.value.hint or "")
