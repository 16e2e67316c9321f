"""What Bedrock's errors mean: an exception's name in a header, or in an event of a stream, to `ModelError`.

Source: https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentloom.adapters.models_errors import from_response
from agentloom.adapters.models_json import as_mapping
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["failed", "failure"]

_KINDS = {
    "AccessDeniedException": "auth",
    "ExpiredTokenException": "auth",
    "IncompleteSignatureException": "auth",
    "InternalServerException": "server",
    "InvalidSignatureException": "auth",
    "MissingAuthenticationTokenException": "auth",
    "ModelErrorException": "server",
    "ModelNotReadyException": "overload",
    "ModelStreamErrorException": "server",
    "ModelTimeoutException": "timeout",
    "ResourceNotFoundException": "not_found",
    "ServiceQuotaExceededException": "quota",
    "ServiceUnavailableException": "overload",
    "ThrottlingException": "rate_limit",
    "UnrecognizedClientException": "auth",
}
_NO_MODEL = ("model identifier is invalid", "model id is invalid", "could not resolve the foundation model")


def failure(status: int, headers: Mapping[str, str], content: bytes, route: Route) -> ModelError:
    """The `ModelError` of a failed response."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):  # a proxy's page
        body = content[:2000].decode("utf-8", "replace")
    said = as_mapping(body) or {"message": body}
    name = headers.get("x-amzn-errortype") or str(said.get("__type") or said.get("code") or "")
    return _made(status, headers, name.partition(":")[0].rpartition("#")[2], said, route)


def failed(event: Mapping[str, Any], route: Route | None) -> ModelError:
    """The `ModelError` of an exception in a stream: ``name``, and the fields of its payload."""
    if route is None:
        raise ValueError("a whole answer has no exceptions in it")
    name = str(event.get("name"))
    # Events name exceptions as members are named, headers as types are.
    name = name[:1].upper() + name[1:]
    status: Any = event.get("originalStatusCode")
    return _made(status if type(status) is int else None, {}, name, event, route)


def _made(
    status: int | None, headers: Mapping[str, str], name: str, said: Mapping[str, Any], route: Route
) -> ModelError:
    text = str(said.get("message") or said.get("Message") or "")
    if said.get("originalMessage"):
        text = f"{text}: {said['originalMessage']}"
    kind = _KINDS.get(name)
    if any(words in text.lower() for words in _NO_MODEL):
        kind = "not_found"
    if status is None and name == "ValidationException":
        status = 400
    if "x-amzn-requestid" in headers:
        headers = {"x-request-id": headers["x-amzn-requestid"], **headers}
    error = {"code": name or None, "message": text} if text else said
    return from_response(status, headers, error, route, kind=kind)
