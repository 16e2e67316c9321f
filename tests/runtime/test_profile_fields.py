"""Fields of the model APIs: no field has two roles, and tokens of connectors stay out."""

from __future__ import annotations

from agentloom.runtime import profile_fields as fields
from agentloom.runtime import profiles


def test_no_field_is_key_and_noted() -> None:
    for name in ("openai.responses/1", "anthropic.messages/1", "google.generate/1", "openai.embeddings/1"):
        profile = profiles.get(name)
        assert profile.key is not None
        assert not profile.key & profile.noted, name


def test_tokens_of_connectors_are_not_written() -> None:
    servers = [{"name": "a", "authorization_token": "very-secret"}, {"name": "b"}, "odd"]
    assert fields.without_tokens(servers) == [{"name": "a"}, {"name": "b"}, "odd"]
    plain = [{"name": "b"}]
    assert fields.without_tokens(plain) is plain
    assert fields.without_tokens("text") == "text"
    split = profiles.split(profiles.get("anthropic.messages/1"), {"model": "m", "mcp_servers": servers})
    assert "very-secret" not in str(split.key)
    assert split.secret_paths == ["mcp_servers"]
