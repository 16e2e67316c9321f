"""What Google's errors mean: ``{"error": {"code", "message", "status", "details": [...]}}`` to `ModelError`.

Sources: https://cloud.google.com/apis/design/errors, https://ai.google.dev/gemini-api/docs/troubleshooting
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentloom.adapters.models_errors import from_response
from agentloom.adapters.models_json import as_list, as_mapping
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["failed", "failure"]

_KINDS = {
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "auth",
    "NOT_FOUND": "not_found",
    "RESOURCE_EXHAUSTED": "rate_limit",
    "UNAVAILABLE": "overload",
    "DEADLINE_EXCEEDED": "timeout",
    "CANCELLED": "connection",
}
_AUTH_REASONS = frozenset(
    ["API_KEY_INVALID", "API_KEY_SERVICE_BLOCKED", "ACCESS_TOKEN_EXPIRED", "CREDENTIALS_MISSING"]
)
_SPENT = ("credits are depleted", "billing is not enabled", "billing to be enabled", "billing account")


def failure(status: int, headers: Mapping[str, str], content: bytes, route: Route) -> ModelError:
    """The `ModelError` of a failed response."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):  # a proxy's page
        body = content[:2000].decode("utf-8", "replace")
    return _made(status, headers, body, route)


def failed(event: Mapping[str, Any], route: Route) -> ModelError:
    """The `ModelError` of an error inside an answer that had begun well."""
    code = as_mapping(event.get("error")).get("code")
    return _made(code if type(code) is int and code >= 400 else None, {}, event, route)


def _made(status: int | None, headers: Mapping[str, str], body: object, route: Route) -> ModelError:
    if as_list(body):  # Vertex wraps the error of a stream in a list
        body = as_list(body)[0]
    error = as_mapping(as_mapping(body).get("error"))
    if not error:
        return from_response(status, headers, body, route)
    details = [as_mapping(one) for one in as_list(error.get("details"))]
    reasons = [str(one["reason"]) for one in details if one.get("reason")]
    said = {"code": error.get("status") or error.get("code"), "message": error.get("message")}
    delay = _delay(details)
    if delay is not None and "retry-after" not in headers:
        headers = {**headers, "retry-after": str(delay)}
    return from_response(status, headers, {"error": said}, route, kind=_kind(error, reasons))


def _kind(error: Mapping[str, Any], reasons: list[str]) -> str | None:
    """None where the status code and the words say more."""
    if any(reason in _AUTH_REASONS for reason in reasons):
        return "auth"
    text = str(error.get("message") or "").lower()
    if any(words in text for words in _SPENT):
        return "quota"
    return _KINDS.get(str(error.get("status")))


def _delay(details: list[dict[str, Any]]) -> float | None:
    """Seconds of ``google.rpc.RetryInfo``, which writes them as ``34.07s``."""
    for detail in details:
        text = detail.get("retryDelay")
        if str(detail.get("@type", "")).endswith("google.rpc.RetryInfo") and isinstance(text, str):
            try:
                return max(0.0, float(text.removesuffix("s")))
            except ValueError:
                continue
    return None
