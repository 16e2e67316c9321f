"""How likely a model was to choose what it chose, from recorded log probabilities.

A model gives the probability of each token before temperature and before a schema. The request's temperature is
applied here, and where a schema leaves only some values possible, the probabilities are those among the values asked
about; so they say what the sampler could draw.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import cast

from agentloom.format.values import Tree

__all__ = ["choice_odds", "first_token_odds"]

Token = dict[str, Tree]


def choice_odds(
    answer: Tree, request: dict[str, Tree], field: str, choices: Sequence[str]
) -> dict[str, float] | None:
    """Probability of each of ``choices`` as the string value of ``field`` in a JSON answer.

    None when the answer does not tell: no log probabilities, temperature 0, or the field is not in its text.
    """
    tokens = _tokens(answer)
    place = _token_at(tokens, field)
    if place is None:
        return None
    token, prefix = place
    scale = _temperature(request)
    if scale is None:
        return None
    weights = dict.fromkeys(choices, 0.0)
    total = 0.0
    for text, logprob in _alternatives(token):
        weight = math.exp(logprob / scale)
        total += weight
        rest = text[len(prefix) :].rstrip('",}')
        if text.startswith(prefix) and rest:
            for choice in choices:
                if choice.startswith(rest):
                    weights[choice] += weight
    if request.get("response_format") is not None:
        total = sum(weights.values())
    if not total or not any(weights.values()):
        return None
    return {choice: weight / total for choice, weight in weights.items()}


def first_token_odds(ours: Tree, theirs: Tree, request: dict[str, Tree]) -> dict[str, float] | None:
    """Probability, in ``ours``, of the first token in which two answers differ: of its own and of the other one."""
    mine, other = _tokens(ours), _tokens(theirs)
    scale = _temperature(request)
    for token, instead in zip(mine, other, strict=False):
        if token.get("token") == instead.get("token"):
            continue
        if scale is None:
            return None
        weights = {text: math.exp(logprob / scale) for text, logprob in _alternatives(token)}
        total = sum(weights.values())
        names = (str(token.get("token")), str(instead.get("token")))
        return {name: weights.get(name, 0.0) / total for name in names} if total else None
    return None


def _temperature(request: dict[str, Tree]) -> float | None:
    """The temperature of a request, 1 when it names none; None for 0, where nothing is drawn."""
    value = request.get("temperature", 1.0)
    if not isinstance(value, int | float) or value <= 0:
        return None
    return float(value)


def _tokens(answer: Tree) -> list[Token]:
    """The tokens of an answer: agentloom's own form, or a chat completion as the SDK seam keeps it."""
    body = answer.get("json", answer) if isinstance(answer, dict) else None
    choices = body.get("choices") if isinstance(body, dict) else None
    holder = choices[0] if isinstance(choices, list) and choices else body
    logprobs = holder.get("logprobs") if isinstance(holder, dict) else None
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return []
    return [token for token in content if isinstance(token, dict) and isinstance(token.get("token"), str)]


def _alternatives(token: Token) -> list[tuple[str, float]]:
    listed = token.get("top_logprobs")
    rows = (
        [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) and listed else [token]
    )
    out: list[tuple[str, float]] = []
    for row in rows:
        logprob = row.get("logprob")
        if isinstance(logprob, int | float) and "token" in row:
            out.append((str(row["token"]), float(logprob)))
    return out


def _token_at(tokens: list[Token], field: str) -> tuple[Token, str] | None:
    """The token in which the value of ``field`` begins, and what stands before the value in it."""
    texts = [cast(str, token["token"]) for token in tokens]
    found = re.search(rf'"{re.escape(field)}"\s*:\s*"', "".join(texts))
    if found is None:
        return None
    end = 0
    for token, text in zip(tokens, texts, strict=True):
        start, end = end, end + len(text)
        if start <= found.end() < end:
            return token, text[: found.end() - start]
    return None
