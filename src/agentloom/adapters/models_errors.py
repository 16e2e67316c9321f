"""What providers' errors mean: exceptions of their SDKs to `ModelError`, by status, code and text.

An SDK's exception holds the request with its authorization header; it is never chained or kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, cast

from agentloom.errors import LoomError, ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["broken_stream", "malformed", "translate"]

_STATUS_KINDS = {
    400: "bad_request",
    401: "auth",
    402: "quota",
    403: "auth",
    404: "not_found",
    408: "timeout",
    413: "bad_request",
    422: "bad_request",
    429: "rate_limit",
    503: "overload",
    504: "timeout",
    529: "overload",
}
# Codes and types as the providers' error references list them.
_CODE_KINDS = {
    "context_length_exceeded": "context_length",
    "string_above_max_length": "context_length",
    "exceed_context_size_error": "context_length",
    "content_filter": "content_filter",
    "content_policy_violation": "content_filter",
    "ResponsibleAIPolicyViolation": "content_filter",
    "insufficient_quota": "quota",
    "billing_error": "quota",
    "billing_hard_limit_reached": "quota",
    "invalid_api_key": "auth",
    "authentication_error": "auth",
    "permission_error": "auth",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "rate_limit_exceeded": "rate_limit",
    "rate_limit_error": "rate_limit",
    "overloaded_error": "overload",
    "engine_overloaded": "overload",
    "server_is_overloaded": "overload",
    "timeout_error": "timeout",
    "api_error": "server",
    "server_error": "server",
    "invalid_request_error": "bad_request",
}
# Providers that have no code for it say it in words.
_CONTEXT_WORDS = (
    "maximum context length",
    "prompt is too long",
    "context window",
    "input is too long",
    "exceed context limit",
    "exceeds the available context size",
)
_HINTS = {
    "auth": "check the key and what it may use",
    "quota": "the account has no credit left, or a spending limit was reached",
    "not_found": "check the model's name and the base URL",
    "context_length": "shorten the messages, or use a model with a longer context",
    "connection": "check the network and the base URL",
    "timeout": "raise timeout= (seconds), or try again",
}
_LONGEST = 2000


def translate(error: BaseException, route: Route) -> ModelError | None:
    """The `ModelError` for an exception of an SDK or its HTTP client; None when it is something else."""
    names = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(error).__mro__}
    short = {name.partition(".")[2] for name in names}
    if isinstance(error, LoomError):
        return None
    if "APITimeoutError" in short or (_http(names) and "TimeoutException" in short):
        return _make("timeout", f"no answer in time: {_reason(error)}", route)
    if "APIConnectionError" in short or (_http(names) and "HTTPError" in short):
        return _make("connection", f"no connection: {_reason(error)}", route)
    if "APIResponseValidationError" in short or isinstance(error, json.JSONDecodeError):
        return malformed(_reason(error), route)
    if not short & {"APIError", "AnthropicError", "OpenAIError"}:
        return None
    return _from_api(error, route)


def _http(names: set[str]) -> bool:
    return any(name.startswith(("httpx.", "httpx2.")) for name in names)


def _reason(error: BaseException) -> str:
    # The SDKs say only "Connection error."; what went wrong is in the exception they wrap.
    parts = [str(error)]
    cause = error.__cause__
    while cause is not None and len(parts) < 4:
        if str(cause) and str(cause) not in parts:
            parts.append(str(cause))
        cause = cause.__cause__
    return ": ".join(part for part in parts if part) or type(error).__name__


def _from_api(error: BaseException, route: Route) -> ModelError:
    status: int | None = getattr(error, "status_code", None)
    response: Any = getattr(error, "response", None)
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    detail = _detail(getattr(error, "body", None))
    words = [str(detail[name]) for name in ("code", "type") if detail.get(name)]
    text = str(detail.get("message") or getattr(error, "message", None) or error)
    # An error in mid-stream comes with the status of the stream (200).
    failed = status if status is not None and status >= 400 else None
    return _make(
        _kind(failed, words, text),
        text,
        route,
        status=failed,
        code=words[0] if words else None,
        delay=_delay(headers),
        request_id=headers.get("x-request-id") or headers.get("request-id"),
    )


def _detail(body: object) -> dict[str, Any]:
    if isinstance(body, dict):
        fields = cast("dict[str, Any]", body)
        inner = fields.get("error")
        if isinstance(inner, dict):
            return cast("dict[str, Any]", inner)
        return {"message": inner, **fields} if isinstance(inner, str) else fields
    return {}


def _kind(status: int | None, words: list[str], text: str) -> str:
    lower = text.lower()
    if status in (None, 400, 413, 422) and any(phrase in lower for phrase in _CONTEXT_WORDS):
        return "context_length"
    for word in words:
        kind = _CODE_KINDS.get(word)
        # The general words say less than the status does.
        if kind is not None and (status is None or kind not in ("bad_request", "server")):
            return kind
    if status is None:
        return "server"
    return _STATUS_KINDS.get(status, "server" if status >= 500 else "bad_request")


def _delay(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait: ``retry-after-ms``, or ``retry-after`` as seconds or as a date against the ``date`` header."""
    try:
        if milliseconds := headers.get("retry-after-ms"):
            return float(milliseconds) / 1000
        wait = headers.get("retry-after")
        if wait is None:
            return None
        if wait.replace(".", "", 1).isdigit():
            return float(wait)
        sent = headers.get("date")
        if sent is None:
            return None
        return max(0.0, (parsedate_to_datetime(wait) - parsedate_to_datetime(sent)).total_seconds())
    except ValueError:  # a header that is no number and no date asks for nothing
        return None


def malformed(reason: str, route: Route) -> ModelError:
    """An answer that is not what the protocol says."""
    hint = "check that the base URL is an API of the right protocol"
    return _make("malformed", f"the answer cannot be read: {reason}", route, hint=hint)


def broken_stream(route: Route) -> ModelError:
    """A stream that ended before the provider said that it was complete."""
    return _make("connection", "the stream ended before the answer was complete", route, hint="try again")


def _make(kind: str, text: str, route: Route, *, hint: str | None = None, **fields: Any) -> ModelError:
    for secret in _secrets(route):
        text = text.replace(secret, "[credential]")
    where = f"{route.provider} {route.model}" + (f" at {route.base_url}" if route.base_url else "")
    status = fields.get("status")
    message = f"{where}: {text[:_LONGEST]} [{kind}{f', status {status}' if status else ''}]"
    return ModelError(
        kind, message, provider=route.provider, model=route.model, hint=hint or _HINTS.get(kind), **fields
    )


def _secrets(route: Route) -> Iterator[str]:
    if route.api_key and len(route.api_key) > 7:
        yield route.api_key
