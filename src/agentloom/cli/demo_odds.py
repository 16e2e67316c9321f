"""How likely each allowed value of a field was, read from the recorded log probabilities of an answer.

The model gives the probability of each token before temperature and before the schema. A schema leaves only some
tokens possible, and the temperature sharpens or flattens them; both are applied here, so that the numbers say what
the sampler could draw (llama.cpp cuts off very small ones on top of that).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["odds"]


def odds(
    logprobs: Mapping[str, Any] | None, field: str, choices: Sequence[str], temperature: float
) -> dict[str, float] | None:
    """Probability of each of ``choices`` as the string value of ``field``, summing to 1.

    ``logprobs`` is the ``logprobs`` object of a chat completion. None when it does not tell: no log probabilities,
    temperature 0, the field not reached, or no alternative that begins one of the choices.
    """
    tokens: list[dict[str, Any]] = (logprobs or {}).get("content") or []
    if temperature <= 0:
        return None
    place = _token_at(tokens, field)
    if place is None:
        return None
    token, prefix = place
    weights = dict.fromkeys(choices, 0.0)
    for alternative in token.get("top_logprobs") or [token]:
        text = str(alternative["token"])
        rest = text[len(prefix) :].rstrip('",}')
        if not text.startswith(prefix) or not rest:
            continue  # another way to write the same beginning: its choice is made in a later token
        for choice in choices:
            if choice.startswith(rest):
                weights[choice] += math.exp(float(alternative["logprob"]) / temperature)
    total = sum(weights.values())
    return {choice: weight / total for choice, weight in weights.items()} if total else None


def _token_at(tokens: Sequence[Mapping[str, Any]], field: str) -> tuple[Mapping[str, Any], str] | None:
    """The token in which the value of ``field`` begins, and what stands before the value in it."""
    text = "".join(str(token["token"]) for token in tokens)
    found = re.search(rf'"{re.escape(field)}"\s*:\s*"', text)
    if found is None:
        return None
    end = 0
    for token in tokens:
        start, end = end, end + len(str(token["token"]))
        if start <= found.end() < end:
            return token, str(token["token"])[: found.end() - start]
    return None
