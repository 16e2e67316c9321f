"""The kind of a provider's error (``ModelError.kind``): from its code, its words and its status, in that order.

Sources: the error references of OpenAI, Azure, Anthropic, Groq, Mistral, OpenRouter, DeepSeek, xAI, Together,
Perplexity, Cohere, llama.cpp; recorded error bodies.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["kind_of"]

_STATUS_KINDS = {
    400: "bad_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    410: "not_found",
    413: "bad_request",
    422: "bad_request",
    429: "rate_limit",
    498: "overload",  # Groq: no capacity in the flex tier
    499: "connection",
    503: "overload",
    504: "timeout",
    522: "timeout",
    524: "timeout",
    529: "overload",
}
_CODE_KINDS = {
    "context_length_exceeded": "context_length",
    "string_above_max_length": "context_length",
    "exceed_context_size_error": "context_length",
    "too_many_tokens": "context_length",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "responsibleaipolicyviolation": "content_filter",
    "moderation_blocked": "content_filter",
    "image_content_policy_violation": "content_filter",
    "cyber_policy": "content_filter",
    "insufficient_quota": "quota",
    "insufficient_balance": "quota",
    "insufficient_credits": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "billing_not_active": "quota",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "bad_credentials": "auth",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "deploymentnotfound": "not_found",
    "unknown_model": "not_found",
    "previous_response_not_found": "not_found",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "rate_limited": "rate_limit",
    "too_many_requests": "rate_limit",
    "overloaded_error": "overload",
    "engine_overloaded": "overload",
    "server_is_overloaded": "overload",
    "slow_down": "overload",
    "service_tier_capacity_exceeded": "overload",
    "capacity_exceeded": "overload",
    "timeout_error": "timeout",
    "request_timeout": "timeout",
    "vector_store_timeout": "timeout",
    "api_error": "server",
    "server_error": "server",
    "internal_server_error": "server",
    "invalid_request_error": "bad_request",
    "invalid_prompt": "bad_request",
}
# What providers that have no code for it say in words. Looked for in the statuses that they use for it.
_WORDS: Sequence[tuple[str, frozenset[int | None], tuple[str, ...]]] = (
    (
        "context_length",
        frozenset([None, 400, 413, 422]),
        (
            "maximum context length",
            "maximum prompt length",
            "prompt is too long",
            "context window",
            "input is too long",
            "exceed context limit",
            "exceeds the available context size",
            "exceeds the maximum number of tokens",
            "too many tokens",
            "too many input tokens",
            "max_new_tokens` must be <=",
        ),
    ),
    (
        "quota",
        frozenset([None, 400, 401, 402, 403, 429]),
        (
            "credit balance is too low",
            "insufficient balance",
            "insufficient credits",
            "insufficient_quota",
            "out of credits",
            "used all available credits",
            "requires more credits",
        ),
    ),
    (
        "content_filter",
        frozenset([None, 400, 403, 422]),
        (
            "content management policy",
            "requires moderation",
            "input was flagged",
            "safety system",
            "content filter",
        ),
    ),
    (
        "auth",
        frozenset([None, 400]),
        ("api key not valid", "incorrect api key", "invalid api key", "invalid_api_key"),
    ),
    (
        "overload",
        frozenset([None, 429, 500, 502]),
        ("overloaded", "at capacity", "capacity exceeded", "over capacity"),
    ),
    ("rate_limit", frozenset([None]), ("rate limit", "rate-limit", "ratelimit", "too many requests")),
    ("timeout", frozenset([None]), ("timed out", "timeout")),
)
_GENERAL = frozenset(["bad_request", "server"])


def kind_of(status: int | None, words: Sequence[str], text: str) -> str:
    """One of the kinds of `ModelError`. ``words``: codes and types of the error, the most telling first.

    ``status`` None: the error came within an answer that had begun well, or without one. An error of which nothing is
    known is ``server`` when it came so or has a 5xx status, and ``bad_request`` otherwise.
    """
    lower = text.lower()
    named = [_CODE_KINDS[word.lower()] for word in words if word.lower() in _CODE_KINDS]
    telling = next((kind for kind in named if kind not in _GENERAL), None)
    if telling is not None and telling not in ("auth", "rate_limit"):
        return telling
    for kind, statuses, phrases in _WORDS:
        if status in statuses and any(phrase in lower for phrase in phrases):
            return kind
    if telling is not None:
        return telling
    # The general words say less than a status does.
    if status is not None:
        return _STATUS_KINDS.get(status, "server" if status >= 500 else "bad_request")
    return named[0] if named else "server"
