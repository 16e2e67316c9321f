"""Which names are one model for ever: the rule of each provider, over names that the providers list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentloom.cli.checks.model_names import standing

PINNED = """
gpt-4o-2024-08-06 gpt-4-0613 gpt-4-1106-preview gpt-3.5-turbo-0125 o3-mini-2025-01-31 openai:gpt-4.1-2025-04-14
openai/gpt-4o-2024-11-20 openrouter:openai/gpt-4o-2024-08-06:free ft:gpt-4o-2024-08-06:acme::abc
claude-sonnet-4-5-20250929 claude-3-5-sonnet-20241022 claude-2.1 claude-instant-1.2 claude-sonnet-4-5@20250929
claude-opus-4-6 claude-opus-4-8 claude-sonnet-5 claude-haiku-5-5 anthropic/claude-opus-4.8 anthropic:claude-opus-5
us.anthropic.claude-sonnet-5 anthropic.claude-3-7-sonnet-20250219-v1:0 us.amazon.nova-lite-v1:0
amazon.nova-pro-v1:0:300k anthropic.claude-opus-4-6-v1 bedrock:us.anthropic.claude-haiku-4-5-20251001-v1:0
us.meta.llama3-3-70b-instruct-v1:0
gemini-2.5-flash gemini-2.0-flash-001 gemini-1.5-pro-002 gemini-2.5-flash-preview-09-2025 gemini-3.5-flash
google-gla:gemini-2.5-pro gemini/gemini-2.5-pro models/gemini-2.5-flash gemini-exp-1206 gemma-3-27b-it
mistral-large-2411 open-mistral-nemo-2407 mistral:codestral-2501 mistral-large-3-25-12
grok-4-0709 xai/grok-4.20-0309-reasoning command-r-08-2024 command-a-03-2025 local:smollm2
""".split()

FLOATING = """
gpt-4o gpt-4o-mini o3 chatgpt-4o-latest gpt-5.1-codex gpt-3.5-turbo-16k openai:gpt-4o openai/gpt-4o gpt-4-turbo-preview
openrouter:openai/gpt-4o:free
claude-sonnet-4-5 claude-haiku-4-5 claude-3-5-sonnet-latest claude-opus-4 claude-opus-4-1 anthropic/claude-sonnet-4.5
~anthropic/claude-opus-latest claude-opus-5@default us.anthropic.claude-sonnet-4-5
gemini-flash-latest gemini-2.0-flash gemini-1.5-pro gemini-3-pro-preview gemini-2.0-flash-exp gemini-pro
mistral-large-latest mistral-small mistral:mistral-small-latest
grok-3 grok-4 grok-4-latest deepseek-chat deepseek-reasoner command-r command-r-plus sonar-pro openrouter/auto
kimi-latest
""".split()

UNKNOWN = """
llama-3.3-70b-versatile groq:openai/gpt-oss-120b ollama:llama3.2 azure/my-deployment azure-openai:prod-chat my-model m
qwen/qwen3-32b arn:aws:bedrock:us-east-1:123:inference-profile/x ft:gpt-4o text-embedding-3-small T open-mixtral-8x7b
""".split()


@pytest.mark.parametrize("name", PINNED)
def test_pinned(name: str) -> None:
    assert standing(name).kind == "pinned"
    assert not standing(name).fix


@pytest.mark.parametrize("name", FLOATING)
def test_floating(name: str) -> None:
    found = standing(name)
    assert found.kind == "floating"
    assert found.reason
    assert found.fix


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_names_are_unknown_and_say_why(name: str) -> None:
    found = standing(name)
    assert (found.kind, found.fix) == ("unknown", "")
    assert found.reason


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("gpt-4o", "gpt-4o-YYYY-MM-DD"),
        ("openai:gpt-4o", "gpt-4o-YYYY-MM-DD"),
        ("claude-3-5-sonnet-latest", "claude-3-5-sonnet-YYYYMMDD"),
        ("claude-opus-5@default", "claude-opus-5"),
        ("mistral:mistral-small-latest", "mistral-small-YYMM"),
        ("command-r", "command-r-MM-YYYY"),
    ],
)
def test_the_remedy_has_the_names_form(name: str, fix: str) -> None:
    assert standing(name).fix.endswith(fix)


@given(st.text(max_size=60) | st.from_regex(r"[a-z:/.@~-]{0,40}[a-z0-9]{0,20}", fullmatch=True))
def test_it_never_fails(name: str) -> None:
    assert standing(name).kind in ("pinned", "floating", "unknown")
