"""A model that answers as another one within a run is told once, with both values."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import anthropic
import openai
import pytest
from google import genai

from agentloom.adapters import api_openai
from agentloom.replay import replayer
from agentloom.testing.replies import Says
from tests.adapters.contract import litellm_cases
from tests.adapters.seam import tape


def twice(url: str) -> Any:
    with openai.OpenAI(base_url=url, api_key="unused") as client:
        ask = client.chat.completions.create
        return [ask(model="gpt", messages=[]).model for _ in range(3)]


def test_another_model_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    script: list[Any] = [
        Says("a", model="gpt-1"),
        Says("b", model="gpt-2", fingerprint="fp_2"),
        Says("c", model="gpt-3"),
    ]
    with caplog.at_level(logging.WARNING, logger="agentloom.drift"):
        done = tape(twice, script)
    assert done.report.verdict == "identical"
    told = {record.getMessage() for record in caplog.records if record.name == "agentloom.drift"}
    assert told == {
        "model of gpt changed within the run: it was 'gpt-1', it is 'gpt-2'",
        "system_fingerprint of gpt changed within the run: it was 'fp_fake', it is 'fp_2'",
    }


def test_the_same_model_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="agentloom.drift"):
        tape(twice, ["a", "b", "c"])
    assert [record for record in caplog.records if record.name == "agentloom.drift"] == []


def answer_of(provider: str, url: str) -> Any:
    """Asks three times by another API, whole or streamed, and closes what it opened."""
    base = url.removesuffix("/v1")
    if provider == "anthropic":
        with anthropic.Anthropic(base_url=base, api_key="unused") as client:
            for _ in range(3):
                client.messages.create(model="asked", max_tokens=5, messages=[])
    elif provider == "google":
        with genai.Client(api_key="unused", http_options={"base_url": base}) as client:
            for _ in range(3):
                client.models.generate_content(model="asked", contents="hello")
    elif provider == "litellm":
        for _ in range(3):
            litellm_cases.ask_once(url, "asked")
    else:
        with openai.OpenAI(base_url=url, api_key="unused") as client:
            for _ in range(3):
                if provider == "responses":
                    client.responses.create(model="asked", input="hello")
                else:
                    list(client.chat.completions.create(model="asked", messages=[], stream=True))


APIS = ("chat stream", "responses", "anthropic", "google", "litellm")


@pytest.mark.filterwarnings("ignore")  # litellm warns of itself
@pytest.mark.parametrize("provider", APIS)
def test_each_api_tells_of_another_model(provider: str, caplog: pytest.LogCaptureFixture) -> None:
    def agent(url: str) -> None:
        answer_of(provider, url)

    script: list[Any] = [Says("a", model="m-1"), Says("b", model="m-1"), Says("c", model="m-2")]
    with caplog.at_level(logging.WARNING, logger="agentloom.drift"):
        done = tape(agent, script)
    assert done.report.verdict == "identical"
    told = {record.getMessage() for record in caplog.records if record.name == "agentloom.drift"}
    assert told == {"model of asked changed within the run: it was 'm-1', it is 'm-2'"}


@pytest.mark.parametrize(("asked", "count"), [(False, 1), (True, 0)])
def test_a_stream_without_token_counts_is_told_once(
    asked: bool, count: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_openai, "_untold", set())
    options: Any = {"stream_options": {"include_usage": True}} if asked else {}

    def agent(url: str) -> None:
        with openai.OpenAI(base_url=url, api_key="unused") as client:
            for _ in range(2):
                list(client.chat.completions.create(model="asked", messages=[], stream=True, **options))

    with caplog.at_level(logging.WARNING, logger="agentloom.usage"):
        tape(agent, ["a b", "c d"])
    told = [record.getMessage() for record in caplog.records if record.name == "agentloom.usage"]
    assert len(told) == count
    assert all("a stream of asked told no token counts: its usage is unknown" in text for text in told)


def test_packages_of_another_version_are_told_with_both(monkeypatch: pytest.MonkeyPatch) -> None:
    original = replayer.current_facts

    def moved(agent: Any, recording: Any) -> Any:
        facts = original(agent, recording)
        assert facts.packages["openai"] == openai.__version__
        return dataclasses.replace(facts, packages={**facts.packages, "openai": "99.1"})

    monkeypatch.setattr(replayer, "current_facts", moved)
    done = tape(twice, ["a", "b", "c"])
    assert done.report.verdict == "identical"
    assert (
        f"packages changed: openai {openai.__version__} -> 99.1; it makes no difference to this run"
        in done.report.notes
    )
