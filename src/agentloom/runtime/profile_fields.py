"""Fields of the model APIs by role, for the profiles of `agentloom.runtime.profiles`.

Sources: the providers' API references and the parameters of their SDKs. A field may become known later (it counted as
load-bearing before); one never changes its role under the same name of a profile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import is_
from typing import Any, cast

__all__ = [
    "ANTHROPIC_KEY",
    "ANTHROPIC_NOTED",
    "COMPLETIONS_KEY",
    "EMBEDDINGS_KEY",
    "GOOGLE_EMBED_KEY",
    "GOOGLE_KEY",
    "GOOGLE_NOTED",
    "OPENAI_NOTED",
    "RESPONSES_KEY",
    "without",
    "without_tokens",
]

OPENAI_NOTED = frozenset(
    """user metadata safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options service_tier
    store""".split()
)
RESPONSES_KEY = frozenset(
    """model input instructions tools tool_choice parallel_tool_calls max_tool_calls temperature top_p top_logprobs
    max_output_tokens reasoning text include previous_response_id conversation prompt truncation background
    background_options context_management image moderation stream stream_options""".split()
)
COMPLETIONS_KEY = frozenset(
    """model prompt suffix best_of echo n logprobs max_tokens temperature top_p stop seed logit_bias frequency_penalty
    presence_penalty stream stream_options""".split()
)
EMBEDDINGS_KEY = frozenset("model input dimensions encoding_format input_type output_dtype truncate".split())
ANTHROPIC_KEY = frozenset(
    """model messages system tools tool_choice max_tokens temperature top_p top_k stop_sequences thinking stream
    container context_management mcp_servers output_config output_format cache_control speed fallbacks
    fallback_credit_token betas anthropic_version anthropic_beta""".split()
)
ANTHROPIC_NOTED = frozenset("metadata service_tier inference_geo user_profile_id diagnostics".split())
GOOGLE_KEY = frozenset(
    """model contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent
    modelArmorConfig continuationToken stream""".split()
)
GOOGLE_NOTED = frozenset("labels serviceTier store".split())
GOOGLE_EMBED_KEY = frozenset(
    """model requests content instances parameters taskType title outputDimensionality autoTruncate
    embedContentConfig""".split()
)


def without(value: Any, is_secret: Callable[[object], bool]) -> Any:
    """A mapping without its secret names; the same object where it has none, and anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    fields = cast("Mapping[str, Any]", value)
    if not any(map(is_secret, fields)):
        return fields
    return {name: one for name, one in fields.items() if not is_secret(name)}


def without_tokens(value: Any) -> Any:
    """Servers of the MCP connector without their authorization tokens; the same object where there are none."""
    if not isinstance(value, list):
        return value
    servers = cast("Sequence[Any]", value)
    kept = [without(one, "authorization_token".__eq__) for one in servers]
    return servers if all(map(is_, kept, servers)) else kept
