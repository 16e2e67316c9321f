"""Probabilities of a field's values from recorded log probabilities."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agentloom.cli.demo_odds import odds

TARGETS = ("staging", "production")


def token(text: str, *others: tuple[str, float], p: float = 1.0) -> dict[str, Any]:
    chosen = {"token": text, "logprob": math.log(p)}
    return {**chosen, "top_logprobs": [chosen, *({"token": t, "logprob": math.log(q)} for t, q in others)]}


def answer(*tokens: dict[str, Any]) -> dict[str, Any]:
    return {"content": list(tokens)}


def test_a_choice_split_over_tokens_counts_by_its_first_one() -> None:
    said = answer(
        token('{"target": "'),
        token("st", ("production", 0.06), ("account", 0.5), ("s", 0.04), p=0.2),
        token("aging"),
        token('"}'),
    )
    at_one = odds(said, "target", TARGETS, 1.0)
    assert at_one is not None
    assert at_one["staging"] == pytest.approx(0.24 / 0.30)
    assert at_one["production"] == pytest.approx(0.06 / 0.30)


def test_temperature_sharpens() -> None:
    said = answer(token('{"target": "'), token("st", ("production", 0.25), p=0.5))
    sharp = odds(said, "target", TARGETS, 0.5)
    assert sharp is not None
    assert sharp["staging"] == pytest.approx(0.25 / (0.25 + 0.0625))


def test_a_token_that_holds_the_quote_and_the_value() -> None:
    said = answer(
        token('{"target":'), token(' "production', (' "staging', 0.75), (' "', 0.1), p=0.25), token('"}')
    )
    assert odds(said, "target", TARGETS, 1.0) == pytest.approx({"staging": 0.75, "production": 0.25})


def test_a_code_fence_and_other_fields_before_it_do_not_matter() -> None:
    said = answer(
        token("```json\n"),
        token('{"filter": "x", '),
        token('"target": "'),
        token('staging"', ('production"', 0.2), p=0.8),
    )
    assert odds(said, "target", TARGETS, 1.0) == pytest.approx({"staging": 0.8, "production": 0.2})


@pytest.mark.parametrize(
    ("said", "temperature"),
    [
        (None, 0.7),
        ({}, 0.7),
        ({"content": None}, 0.7),
        (answer(token('{"other": "'), token("st")), 0.7),
        (answer(token('{"target": "')), 0.7),
        (answer(token('{"target": "'), token("x", ("y", 0.2), p=0.5)), 0.7),
        (answer(token('{"target": "'), token("st")), 0.0),
    ],
)
def test_says_nothing_rather_than_something_wrong(said: Any, temperature: float) -> None:
    assert odds(said, "target", TARGETS, temperature) is None
