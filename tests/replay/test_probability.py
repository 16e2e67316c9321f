"""How likely a choice was: temperature and schema applied, silence where the answer does not tell."""

from __future__ import annotations

from typing import Any

import pytest

from agentloom.replay.probability import choice_odds, first_token_odds
from tests.replay.sources import answer_with


def test_probabilities_apply_the_temperature_and_the_schema() -> None:
    answer = answer_with("staging")
    raw: Any = choice_odds(answer, {"temperature": 1}, "target", ["staging", "production"])
    assert raw == {"staging": pytest.approx(0.85), "production": pytest.approx(0.1)}
    schema: Any = {"temperature": 1, "response_format": {}}
    shares: Any = choice_odds(answer, schema, "target", ["staging", "production"])
    assert shares == {"staging": pytest.approx(0.85 / 0.95), "production": pytest.approx(0.1 / 0.95)}
    assert choice_odds(answer, {"temperature": 0}, "target", ["staging"]) is None
    assert choice_odds(answer, {}, "nothing", ["staging"]) is None
    assert choice_odds({"content": "x"}, {}, "target", ["staging"]) is None


def test_a_chat_completion_as_the_sdk_seam_keeps_it_is_read_too() -> None:
    body: Any = {"json": {"choices": [{"logprobs": answer_with("staging")["logprobs"]}]}}
    odds: Any = choice_odds(body, {}, "target", ["staging"])
    assert odds == {"staging": pytest.approx(0.85)}


def test_free_text_shows_the_first_differing_token() -> None:
    odds: Any = first_token_odds(answer_with("staging"), answer_with("production"), {"temperature": 1})
    assert odds == {"staging": pytest.approx(0.85), "production": pytest.approx(0.1)}
    assert first_token_odds(answer_with("staging"), answer_with("staging"), {}) is None
