"""A model that answers as another one within a run is told once, with both values."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import openai
import pytest

from agentloom.replay import replayer
from agentloom.testing.replies import Says
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
