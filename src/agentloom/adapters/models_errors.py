"""What providers' errors mean: exceptions of their SDKs, and errors inside answers, to `ModelError`.

An SDK's exception holds the request with its authorization header; it is never chained or kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters.models_delays import asked_delay, reset_delay, said_delay
from agentloom.adapters.models_error_kinds import kind_of
from agentloom.errors import LoomError, ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["Failed", "broken_stream", "failure_in", "from_response", "malformed", "request_id", "translate"]

_HINTS = {
    "auth": "check the key and what it may use",
    "quota": "the account has no credit left, or a spending limit was reached",
    "not_found": "check the model's name and the base URL",
    "context_length": "shorten the messages, or use a model with a longer context",
    "connection": "check the network and the base URL",
    "timeout": "raise timeout= (seconds), or try again",
}
_WAITED_FOR = frozenset(["rate_limit", "overload"])
_LONGEST = 2000
_ID_HEADERS = ("x-request-id", "request-id", "apim-request-id", "x-kong-request-id")


class Failed(Exception):
    """A provider's error inside an answer or a stream. ``detail``: what it said, as it said it; ``kind``: what it
    means, where that is known from its place; ``status``: the HTTP status that the provider gave with it, or None."""

    def __init__(self, detail: object, *, kind: str | None = None, status: int | None = None) -> None:
        super().__init__(repr(detail)[:_LONGEST])
        self.detail = detail
        self.kind = kind
        self.status = status


def translate(error: BaseException, route: Route) -> ModelError | None:
    """The `ModelError` for an exception of an SDK or its HTTP client; None when it is something else."""
    if isinstance(error, Failed):
        return from_response(error.status, {}, error.detail, route, kind=error.kind)
    if isinstance(error, LoomError):
        return None
    names = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(error).__mro__}
    short = {name.partition(".")[2] for name in names}
    if "APITimeoutError" in short or (_http(names) and "TimeoutException" in short):
        return _make("timeout", f"no answer in time: {_reason(error)}", route)
    if "APIConnectionError" in short or (_http(names) and "HTTPError" in short):
        return _transport(error, route)
    if "APIResponseValidationError" in short or isinstance(error, (json.JSONDecodeError, UnicodeDecodeError)):
        return malformed(_reason(error), route)
    if not short & {"APIError", "AnthropicError", "OpenAIError"}:
        return None
    return _from_api(error, route)


def failure_in(body: Mapping[str, Any]) -> Failed | None:
    """The error that an answer with a good status consists of, or None. (A response has an ``error`` that is null.)"""
    if body.get("error") and not any(body.get(name) for name in ("choices", "content", "output")):
        return Failed(body)
    return None


def _http(names: set[str]) -> bool:
    return any(name.startswith(("httpx.", "httpx2.")) for name in names)


def _transport(error: BaseException, route: Route) -> ModelError:
    causes = {type(cause).__name__ for cause in _chain(error)}
    if "DecodingError" in causes:
        return malformed(_reason(error), route)
    if causes & {"LocalProtocolError", "UnsupportedProtocol", "InvalidURL"}:
        return _make("bad_request", f"the request cannot be sent: {_reason(error)}", route)
    return _make("connection", f"no connection: {_reason(error)}", route)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    for _ in range(4):
        if error is None:
            return
        yield error
        error = error.__cause__


def _reason(error: BaseException) -> str:
    # The SDKs say only "Connection error."; what went wrong is in the exception they wrap.
    parts = list(dict.fromkeys(str(cause) for cause in _chain(error) if str(cause)))
    return ": ".join(parts) or type(error).__name__


def _from_api(error: BaseException, route: Route) -> ModelError:
    status: int | None = getattr(error, "status_code", None)
    response: Any = getattr(error, "response", None)
    body: Any = getattr(error, "body", None)
    fallback = str(getattr(error, "message", None) or error)
    if response is not None:
        # The SDK keeps of a body only what is under `error`; some providers say more, or say it elsewhere.
        with suppress(ValueError, RuntimeError):  # no JSON, or a stream that nobody read
            body = json.loads(response.text)
    # An error in mid-stream comes with the status of the stream (200).
    failed = status if status is not None and status >= 400 else None
    headers: Mapping[str, str] = getattr(response, "headers", None) or {}
    return from_response(failed, headers, body, route, fallback=fallback)


def from_response(
    status: int | None,
    headers: Mapping[str, str],
    body: object,
    route: Route,
    *,
    kind: str | None = None,
    fallback: str = "",
) -> ModelError:
    """The `ModelError` of a failed response: its status (None: the error came inside an answer), headers with names
    in lower case, parsed body. ``fallback``: the text when the body says none."""
    detail = _detail(body)
    words = [str(detail[name]) for name in ("code", "type") if detail.get(name) not in (None, "", "error")]
    if status is None:
        status = _status_in(detail)
    text = _text(detail) or fallback or f"it said {json.dumps(body, default=str)[:200]}"
    telling = [*words, *_inner_codes(detail)]
    found = kind or kind_of(status, telling, text)
    headers = {**_headers_in(detail), **{str(name).lower(): str(value) for name, value in headers.items()}}
    delay = asked_delay(headers)
    if delay is None and found in _WAITED_FOR:
        delay = reset_delay(headers)
        delay = said_delay(text) if delay is None else delay
    return _make(
        found,
        text,
        route,
        status=status,
        code=words[0] if words else None,
        delay=delay,
        request_id=request_id(headers),
    )


def request_id(headers: Mapping[str, str]) -> str | None:
    """The provider's id of the exchange; names of headers in lower case (or a mapping that does not mind)."""
    return next((value for name in _ID_HEADERS if (value := headers.get(name))), None)


def _detail(body: object) -> dict[str, Any]:
    """The fields that tell the error: those under ``error``, or the body's own. What is text becomes ``message``."""
    if isinstance(body, list) and body:
        return _detail(cast("list[Any]", body)[0])  # type: ignore[redundant-cast]
    if isinstance(body, str):
        return {"message": body}
    if not isinstance(body, dict):
        return {}
    fields = cast("dict[str, Any]", body)
    inner = fields.get("error")
    if isinstance(inner, dict):
        return cast("dict[str, Any]", inner)
    if isinstance(inner, str) and isinstance(fields.get("message"), str):
        return {"code": inner, **fields}
    if inner:
        return {**fields, "message": inner}
    if "error_type" in fields:  # Cohere
        return {"code": fields["error_type"], **fields}
    return fields


def _text(detail: Mapping[str, Any]) -> str:
    """What the error says, with what the provider behind a router said, and what the model wrote."""
    said = _words_of(detail.get("message") or detail.get("detail") or "")
    metadata: Any = detail.get("metadata")
    raw = cast("dict[str, Any]", metadata).get("raw") if isinstance(metadata, dict) else None
    if raw:
        said = f"{said}: {_words_of(raw)}"
    if detail.get("failed_generation"):
        said = f"{said}; the model wrote: {detail['failed_generation']}"
    param = detail.get("param")
    return f"{said} (at {param})" if isinstance(param, str) and param and param not in said else said


def _words_of(value: object) -> str:
    """Text; of a validation report (Mistral's, in three forms) its places and reasons."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        inner = fields.get("detail") or fields.get("message") or fields.get("msg")
        if inner is None:
            return json.dumps(fields, default=str, ensure_ascii=False)
        place = ".".join(str(part) for part in fields.get("loc") or ())
        return f"{place}: {_words_of(inner)}" if place else _words_of(inner)
    if isinstance(value, list):
        return "; ".join(_words_of(item) for item in cast("list[Any]", value))  # type: ignore[redundant-cast]
    return "" if value is None else str(value)


def _status_in(detail: Mapping[str, Any]) -> int | None:
    """An HTTP status that the error itself names (OpenRouter's ``code``, Groq's ``status_code``)."""
    for name in ("status_code", "code", "status"):
        value = detail.get(name)
        number = int(value) if isinstance(value, str) and value.isdecimal() else value
        if type(number) is int and 400 <= number <= 599:
            return number
    return None


def _inner_codes(detail: Mapping[str, Any]) -> list[str]:
    inner: Any = detail.get("innererror")  # Azure
    metadata: Any = detail.get("metadata")  # OpenRouter
    found = [cast("dict[str, Any]", inner).get("code")] if isinstance(inner, dict) else []
    if isinstance(metadata, dict) and cast("dict[str, Any]", metadata).get("flagged_input"):
        found.append("content_filter")
    return [str(code) for code in found if code]


def _headers_in(detail: Mapping[str, Any]) -> dict[str, str]:
    """Headers that a router repeats inside the error (OpenRouter's ``metadata.headers``)."""
    metadata: Any = detail.get("metadata")
    headers = cast("dict[str, Any]", metadata).get("headers") if isinstance(metadata, dict) else None
    fields = cast("dict[str, Any]", headers) if isinstance(headers, dict) else {}
    return {name.lower(): str(value) for name, value in fields.items()}


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
