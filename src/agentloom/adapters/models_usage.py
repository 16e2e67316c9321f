"""Token counts by class, from the usage objects of OpenAI's two protocols and of the servers that speak them.

The classes, the same for every protocol: ``input`` is all of the prompt, and ``cached`` and ``cache_write`` are parts
of it; ``output`` is all that was generated, and ``reasoning`` is a part of it. None: not reported. (Anthropic counts
its cached tokens beside the input: `models_anthropic_answer`.)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

__all__ = ["chat_usage", "reported", "responses_usage"]


def chat_usage(raw: object) -> dict[str, Any] | None:
    """Of chat completions. Where servers differ:

    - cached tokens: ``prompt_tokens_details.cached_tokens`` (OpenAI), ``prompt_cache_hit_tokens`` (DeepSeek) or
      ``cached_tokens`` (Together);
    - reasoning: ``completion_tokens_details.reasoning_tokens``, or ``reasoning_tokens`` (Perplexity). xAI counts it
      beside the completion: then ``total_tokens`` is the sum of all three, and it is added to the output here.
    """
    if not isinstance(raw, Mapping):
        return None
    counts = cast("Mapping[str, Any]", raw)
    asked = _details(counts, "prompt_tokens_details")
    made = _details(counts, "completion_tokens_details")
    given, generated = _count(counts, "prompt_tokens"), _count(counts, "completion_tokens")
    reasoning = _first(_count(made, "reasoning_tokens"), _count(counts, "reasoning_tokens"))
    if None not in (given, generated, reasoning) and _count(counts, "total_tokens") == (
        cast(int, given) + cast(int, generated) + cast(int, reasoning)
    ):
        generated = cast(int, generated) + cast(int, reasoning)
    return {
        "input": given,
        "cached": _first(
            _count(asked, "cached_tokens"),
            _count(counts, "prompt_cache_hit_tokens"),
            _count(counts, "cached_tokens"),
        ),
        "cache_write": _count(asked, "cache_write_tokens"),
        "output": generated,
        "reasoning": reasoning,
    }


def responses_usage(raw: object) -> dict[str, Any] | None:
    """Of the Responses API: cached tokens are part of the input, reasoning is part of the output."""
    if not isinstance(raw, Mapping):
        return None
    counts = cast("Mapping[str, Any]", raw)
    asked = _details(counts, "input_tokens_details")
    made = _details(counts, "output_tokens_details")
    return {
        "input": _count(counts, "input_tokens"),
        "cached": _count(asked, "cached_tokens"),
        "cache_write": _count(asked, "cache_write_tokens"),
        "output": _count(counts, "output_tokens"),
        "reasoning": _count(made, "reasoning_tokens"),
    }


def reported(counts: Mapping[str, Any] | None) -> dict[str, int]:
    """The counts that were reported, of all classes."""
    return {name: count for name, count in (counts or {}).items() if isinstance(count, int)}


def _details(counts: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = counts.get(name)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _count(counts: Mapping[str, Any], name: str) -> int | None:
    found = counts.get(name)
    return found if type(found) is int else None


def _first(*counts: int | None) -> int | None:
    return next((count for count in counts if count is not None), None)
