"""Google's generative API: Gemini and Vertex addresses of ``generateContent``, its stream, and embeddings.

The address names the model: it stands before the body as sent. Counting tokens, files and caches are ``http``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

from agentloom.adapters.drift import teller
from agentloom.adapters.exchanges import Classified, Exchange, http_call
from agentloom.adapters.models_google_answer import usage as usage_of
from agentloom.adapters.models_usage import reported
from agentloom.runtime.calls import CallSpec

__all__ = ["classify"]

_METHOD = re.compile(r"/((?:tuned)?[mM]odels|endpoints)/(?P<model>[^/:]+):(?P<method>[A-Za-z]+)$")
_PROFILES = {
    "generateContent": "google.generate/1",
    "streamGenerateContent": "google.generate/1",
    "embedContent": "google.embed/1",
    "batchEmbedContents": "google.embed/1",
}


def classify(exchange: Exchange) -> Classified | None:
    """The call that an exchange with the API is; None for anything else."""
    found = _METHOD.search(exchange.path)
    body = exchange.json
    if found is None or exchange.method != "POST" or body is None:
        return None
    method, name = found["method"], unquote(found["model"])
    profile = _PROFILES.get(method)
    if profile is not None:
        stream = method == "streamGenerateContent"
        request = {"model": name, **body} if "model" not in body else body
        spec = CallSpec("model", name, request, profile=profile, series=f"model:{name}", stream=stream)
        return Classified(spec, _usage, teller(name))
    return http_call(exchange, f"google {method}") if method == "countTokens" else None


def _usage(answer: Any) -> Mapping[str, int] | None:
    """Token counts of an answer, or of one event of a stream, each of which counts all so far."""
    fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    raw = fields.get("usageMetadata")
    if not isinstance(raw, dict):
        return None
    return reported(usage_of(cast("dict[str, Any]", raw)))
