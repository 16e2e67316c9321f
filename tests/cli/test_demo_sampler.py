"""The seeded sampler: repeatable, honest about what it is, and malformed now and then."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from agentloom.cli.demo_sampler import SeededSampler
from agentloom.errors import NotSupported
from agentloom.replay.probability import choice_odds

REQUEST: dict[str, Any] = {
    "model": "sampler:seeded",
    "temperature": 0.7,
    "response_format": {"type": "json_schema"},
}


def draws(seed: int, count: int, **more: Any) -> list[dict[str, Any]]:
    sampler = SeededSampler(seed)
    return [sampler.complete_sync({**REQUEST, **more}) for _ in range(count)]


def test_a_seed_gives_the_same_answers_again() -> None:
    assert draws(1, 50) == draws(1, 50)
    assert draws(1, 50) != draws(2, 50)


def test_it_draws_what_its_log_probabilities_say() -> None:
    answers = draws(904, 4000)
    odds = choice_odds(answers[0], REQUEST, "target", ("staging", "production"))
    assert odds is not None
    assert odds["production"] == pytest.approx(0.103, abs=0.001)
    share = sum('"production"' in answer["content"] for answer in answers) / len(answers)
    assert share == pytest.approx(odds["production"], abs=0.02)


def test_some_answers_end_too_early() -> None:
    cut = [answer for answer in draws(904, 1000) if answer["finish_reason"] == "length"]
    assert 5 <= len(cut) <= 50
    for answer in cut:
        with pytest.raises(ValueError, match=r".+"):
            json.loads(answer["content"])


def test_at_temperature_zero_always_the_likelier_target() -> None:
    assert all(
        '"staging"' in a["content"] for a in draws(3, 50, temperature=0) if a["finish_reason"] == "stop"
    )


def test_every_answer_says_that_it_is_no_model() -> None:
    assert {answer["model"] for answer in draws(1, 3)} == {"seeded sampler (no model)"}
    assert len({answer["id"] for answer in draws(1, 3)}) == 3


def test_async_is_the_same() -> None:
    assert asyncio.run(SeededSampler(1).complete(REQUEST)) == SeededSampler(1).complete_sync(REQUEST)


def test_streams_are_refused() -> None:
    with pytest.raises(NotSupported, match="does not stream"):
        SeededSampler(1).stream(REQUEST)
    with pytest.raises(NotSupported, match="does not stream"):
        SeededSampler(1).stream_sync(REQUEST)
