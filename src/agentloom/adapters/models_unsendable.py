"""A request to a model that cannot be sent as it is, told as a ``ModelError`` that names the part.

The exceptions of the JSON writers and HTTP clients hold the whole body, and headers with the key: they are never
chained or kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.errors import ModelError
from agentloom.runtime.sendable import Unsendable, first_unsendable

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["unsendable"]

_OF_HEADERS = frozenset(["extra_headers", "api_key"])
_ESCAPED = Unsendable(
    "",
    "a text of JSON in it has an escape that is half of a surrogate pair, which UTF-8 does not have",
    "look for \\ud8 to \\udf in the arguments of its tool calls",
)


def unsendable(error: BaseException, request: Mapping[str, Any], route: Route) -> ModelError | None:
    """The ``ModelError`` (``bad_request``, or ``auth`` where it is the key) for an exception that came of a value in
    ``request`` which JSON or a header cannot carry; None for any other exception."""
    if not isinstance(error, ValueError | TypeError | OverflowError | RecursionError):
        return None
    found = first_unsendable({name: value for name, value in request.items() if name not in _OF_HEADERS})
    if found is None and isinstance(error, UnicodeEncodeError):
        found = _ESCAPED if error.encoding.lower().startswith("utf") else _in_headers(request)
        if found is None:
            return _made("auth", "the key cannot be sent: a header holds ASCII only", "check the key", route)
    if found is None:
        return None
    return _made("bad_request", f"the request cannot be sent: {found}", found.hint, route)


def _in_headers(request: Mapping[str, Any]) -> Unsendable | None:
    headers: Any = request.get("extra_headers")
    for name, value in cast("dict[str, Any]", headers).items() if isinstance(headers, Mapping) else ():
        if not (str(name).isascii() and str(value).isascii()):
            hint = "write it in ASCII, for example percent-encoded"
            return Unsendable(f"extra_headers.{name}", "a header holds ASCII only", hint)
    return None


def _made(kind: str, text: str, hint: str, route: Route) -> ModelError:
    where = f"{route.provider} {route.model}" + (f" at {route.base_url}" if route.base_url else "")
    return ModelError(
        kind, f"{where}: {text} [{kind}]", provider=route.provider, model=route.model, hint=hint
    )
