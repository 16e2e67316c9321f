"""Anthropic's messages API, whoever serves it: Anthropic, Vertex (``:rawPredict``) and Bedrock (``/invoke``).

A message is a ``model`` call whose request is the body as sent; where the address names the model it stands before it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from agentloom.adapters.drift import teller
from agentloom.adapters.exchanges import Classified, Exchange, http_call
from agentloom.adapters.models_anthropic_answer import usage as usage_of
from agentloom.adapters.models_usage import reported
from agentloom.runtime.calls import CallSpec

__all__ = ["classify"]

PROFILE = "anthropic.messages/1"
_MESSAGES = re.compile(r"/v1/messages$")
_ELSEWHERE = re.compile(
    r"/publishers/anthropic/models/(?P<vertex>[^/:]+):(?:streamRawPredict|rawPredict)$"
    r"|/model/(?P<bedrock>[^/]+)/invoke(?:-with-response-stream)?$"
)
_COUNTING = re.compile(r"/v1/messages/(count_tokens|batches.*)$|/models/count-tokens:rawPredict$")


def classify(exchange: Exchange) -> Classified | None:
    """The call that an exchange with the API is; None for anything else."""
    body, path = exchange.json, exchange.path
    counting = _COUNTING.search(path)
    if counting is not None:
        words = (counting[1] or "count_tokens").partition("/")[0]
        return http_call(exchange, f"anthropic {exchange.method} {words}")
    if exchange.method != "POST" or body is None or "messages" not in body:
        return None
    if _MESSAGES.search(path) and "model" in body:
        return _model(str(body["model"]), body, stream=exchange.streamed)
    found = _ELSEWHERE.search(path)
    if found is None or "anthropic_version" not in body:
        return None
    model = unquote(found["vertex"] or found["bedrock"])
    stream = path.endswith((":streamRawPredict", "/invoke-with-response-stream"))
    return _model(model, {"model": model, **body}, stream=stream)


def _model(name: str, request: dict[str, Any], *, stream: bool) -> Classified:
    spec = CallSpec("model", name, request, profile=PROFILE, series=f"model:{name}", stream=stream)
    return Classified(spec, _Counts(), teller(name))


class _Counts:
    """Token counts of a message, or of a stream: its last event counts the output, its first one the input."""

    def __init__(self) -> None:
        self._begun: dict[str, Any] = {}

    def __call__(self, answer: Any) -> Mapping[str, int] | None:
        fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
        inner = fields.get("message")
        if fields.get("type") == "message_start" and isinstance(inner, dict):
            fields = cast("dict[str, Any]", inner)
        raw = fields.get("usage")
        if not isinstance(raw, dict):
            return None
        self._begun |= {name: one for name, one in cast("dict[str, Any]", raw).items() if one is not None}
        return reported(usage_of(self._begun))
