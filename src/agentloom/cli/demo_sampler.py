"""A seeded sampler in the place of the demo's model, for machines where the model cannot be installed.

It is no model and says so wherever it appears: the agent's copy asks for ``sampler:seeded``, and so do the traces. It
reads no prompt; it draws from the probabilities that stand below, with a generator that anybody can seed again.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from agentloom.errors import NotSupported
from agentloom.runtime.assembly import empty_answer

__all__ = ["SAMPLER", "SeededSampler"]

SAMPLER = "sampler:seeded"
"""The model name under which runs of the sampler are recorded."""
_WEIGHTS = {"staging": 0.82, "production": 0.18}
"""Before temperature; at 0.7 one draw in ten is production, about as measured with SmolLM2-135M (ADR 0005)."""
_MALFORMED = 0.02
"""Share of answers that end too early to be JSON, as happens with the model."""


class SeededSampler:
    """A model backend (``agentloom.runtime.models``) without a model. Each answer takes the next draws of the seed."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self._count = 0

    async def complete(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The next answer; the request decides nothing but the temperature."""
        return self.complete_sync(request)

    def complete_sync(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """As ``complete``."""
        self._count += 1
        temperature = float(request.get("temperature", 1.0))
        target = self._target(temperature)
        text = json.dumps({"target": target, "filter": "inactive > 90 days"}, indent=2)
        whole = self._draw.random() >= _MALFORMED
        return {
            **empty_answer(),
            "content": text if whole else text[: len(text) // 2],
            "finish_reason": "stop" if whole else "length",
            "model": "seeded sampler (no model)",
            "id": f"sampler-{self._count}",
            "logprobs": {"content": _tokens(target)},
        }

    def stream(self, request: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Refused: the demo's agent does not stream."""
        raise _no_streams()

    def stream_sync(self, request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Refused, as ``stream``."""
        raise _no_streams()

    def _target(self, temperature: float) -> str:
        if temperature <= 0:
            return max(_WEIGHTS, key=lambda name: _WEIGHTS[name])
        sharpened = [weight ** (1 / temperature) for weight in _WEIGHTS.values()]
        return self._draw.choices(list(_WEIGHTS), sharpened)[0]


def _tokens(target: str) -> list[dict[str, Any]]:
    """The answer's tokens up to the target, in the form of a chat completion's log probabilities."""
    opening: dict[str, Any] = {"token": '{\n  "target": "', "logprob": 0.0, "top_logprobs": []}
    alternatives: list[dict[str, Any]] = [
        {"token": name, "logprob": math.log(weight)} for name, weight in _WEIGHTS.items()
    ]
    return [opening, {"token": target, "logprob": math.log(_WEIGHTS[target]), "top_logprobs": alternatives}]


def _no_streams() -> NotSupported:
    return NotSupported(
        "the demo's sampler does not stream", hint="leave out stream=True, or use a real model"
    )
