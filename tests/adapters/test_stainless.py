"""openai and anthropic wait between tries by `sleep` calls; outside a run they wait as ever."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

import anthropic
import openai
import pytest

from agentloom.adapters import stainless_sdk
from agentloom.errors import NotSupported
from agentloom.testing import Fails, FakeProvider
from tests.adapters.seam import tape


def anthropic_asks(url: str) -> Any:
    with anthropic.Anthropic(base_url=url.removesuffix("/v1"), api_key="unused", max_retries=2) as client:
        made: Any = client.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]
        )
        return made.content[0].text


def openai_asks(url: str) -> Any:
    with openai.OpenAI(base_url=url, api_key="unused", max_retries=2) as client:
        return client.chat.completions.create(model="m", messages=[]).choices[0].message.content


@pytest.mark.parametrize("program", [anthropic_asks, openai_asks])
def test_waits_are_calls_whose_seconds_are_their_outcomes(
    program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    done = tape(program, [Fails(429, retry_after=12.0), Fails(503, retry_after=3.0), "x"])
    assert done.report.verdict == "identical"
    assert done.types() == ["model", "sleep", "model", "sleep", "model"]
    assert waits == [12.0, 3.0]
    name = program.__name__.partition("_")[0]
    assert [call.name for call in done.calls if call.type == "sleep"] == [f"{name} retry"] * 2


def test_outside_a_run_the_sdk_waits_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    tape(openai_asks, ["x"])  # patched
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with FakeProvider([Fails(429, retry_after=2.0), "x"]) as fake:
        assert openai_asks(fake.openai_url) == "x"
    assert waits == [2.0]


def test_a_release_without_the_methods_is_refused_by_name() -> None:
    module: Any = ModuleType("anthropic._base_client")
    module.SyncAPIClient = module.AsyncAPIClient = type("Client", (), {})
    with pytest.raises(NotSupported, match=r"anthropic has no Client\._sleep_for_retry"):
        stainless_sdk.install(module)
