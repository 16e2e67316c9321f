"""OpenAI's HTTP API, whoever serves it: chat completions, Responses, legacy completions and embeddings are ``model``
calls whose request is the body as sent; the rest of it is ``http`` with a name that says which endpoint.

Azure's addresses (``/openai/deployments/NAME/...``) and those of servers that speak the protocol end in the same way.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, cast

from agentloom.adapters.drift import teller
from agentloom.adapters.exchanges import Classified, Exchange, http_call
from agentloom.adapters.models_usage import chat_usage, reported, responses_usage
from agentloom.runtime.calls import CallSpec

__all__ = ["classify"]

_log = logging.getLogger("agentloom.usage")
_END = "[DONE]"
"""The last event of a stream, which is no JSON."""

_ENDPOINT = re.compile(
    r"/(?:v\d+|openai|deployments/[^/]+)/((?:moderations|images|audio|files|uploads|batches|models|responses|threads"
    r"|assistants|vector_stores|fine_tuning|conversations|videos|evals|containers|realtime|chat)(?:/[^:]*)?)$"
)
_ID = re.compile(r"[_-][A-Za-z0-9]{8,}|\d{4,}")


def classify(exchange: Exchange) -> Classified | None:
    """The call that an exchange with the API is; None for anything else."""
    body = exchange.json
    if exchange.method == "POST" and body is not None and "model" in body:
        path = exchange.path
        if path.endswith("/chat/completions"):
            return _model(exchange, body, "openai.chat/1", _chat_of(exchange, body))
        if path.endswith("/responses"):
            return _model(exchange, body, "openai.responses/1", _responses)
        if path.endswith("/embeddings"):
            return _model(exchange, body, "openai.embeddings/1", _chat)
        if path.endswith("/completions") and "prompt" in body:
            return _model(exchange, body, "openai.completions/1", _chat_of(exchange, body))
    return _other(exchange)


def _model(exchange: Exchange, body: dict[str, Any], profile: str, usage: Any) -> Classified:
    model = body.get("model")
    name = model if isinstance(model, str) and model else "unknown"
    spec = CallSpec("model", name, body, profile=profile, series=f"model:{name}", stream=exchange.streamed)
    return Classified(spec, usage, teller(name))


def _other(exchange: Exchange) -> Classified | None:
    found = _ENDPOINT.search(exchange.path)
    if found is None:
        return None
    words = [word for word in found[1].split("/") if word and not _ID.search(word)]
    name = f"openai {exchange.method} {'.'.join(words)}"
    return http_call(exchange, name)


def _chat_of(exchange: Exchange, body: dict[str, Any]) -> Any:
    return _Streamed(str(body.get("model"))) if exchange.streamed else _chat


class _Streamed:
    """Token counts of the chunks of one stream. One that comes to its end without any is told, once for each model:
    its usage is unknown, and is not guessed."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._told = False

    def __call__(self, answer: Any) -> Mapping[str, int] | None:
        if answer != _END:
            counts = _chat(answer)
            self._told = self._told or bool(counts)
            return counts
        if not self._told and self._model not in _untold:
            _untold.add(self._model)
            _log.warning(
                "a stream of %s told no token counts: its usage is unknown, and so is its cost (told once for each"
                ' model). Ask for them with stream_options={"include_usage": True}',
                self._model,
            )
        return None


_untold: set[str] = set()


def _chat(answer: Any) -> Mapping[str, int] | None:
    """Token counts of a completion or of one chunk of its stream; absent ones are left out."""
    fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    raw = fields.get("usage")
    return {} if raw is None else reported(chat_usage(raw))


def _responses(answer: Any) -> Mapping[str, int] | None:
    """Of a response, or of an event that brings it."""
    fields = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    inner = fields.get("response")
    whole = cast("dict[str, Any]", inner) if isinstance(inner, dict) else fields
    raw = whole.get("usage")
    return {} if raw is None else reported(responses_usage(raw))
