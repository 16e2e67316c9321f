"""What the trace of a request holds of it, and the request that a replay makes of that.

Headers that say how the answer is to be are kept as they are. Credentials (``authorization``, cookies, keys) are
secrets of the run: the redactor puts placeholders in their place, here and wherever the run says them again, so that
they replay. Other headers may be about a person and are not kept; on replay they read ``not-kept-NAME``, and a report
says so where a value comes of one.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, urlencode

from agentloom.format.unkept import unkept
from agentloom.runtime.profiles import plain_url
from agentloom.runtime.redaction_env import too_common
from agentloom.runtime.redaction_found import Known
from agentloom.runtime.redaction_names import is_secret_header, is_secret_name, scheme_of
from agentloom.runtime.redaction_rules import Rules

__all__ = ["headers_of", "kept_request", "scope_of"]

Scope = MutableMapping[str, Any]

_KEPT = frozenset(
    "accept accept-encoding accept-language content-encoding content-length content-type host if-match"
    " if-modified-since if-none-match if-range if-unmodified-since origin range traceparent user-agent x-request-id"
    " x-requested-with".split()
)
_OF_THE_CONNECTION = frozenset("connection expect keep-alive te trailer transfer-encoding upgrade".split())
"""What two servers on the way say to each other. It is of no use on replay."""


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a request by their names in lower case."""
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope.get("headers") or ()
    }


def kept_request(scope: Mapping[str, Any]) -> tuple[dict[str, Any], Rules]:
    """What the trace holds of a request, and what is secret in it."""
    secret: dict[bytes, Known] = {}

    def credential(name: str, value: str) -> str:
        scheme, rest = scheme_of(value)
        if too_common(rest, chosen=True):
            rest = unkept(name)  # looked for in every text it would be found everywhere
        else:
            secret[rest.encode("utf-8", "surrogateescape")] = Known("secret field", name)
        return f"{scheme} {rest}" if scheme else rest

    headers: dict[str, str] = {}
    cookies: dict[str, str] = {}
    for name, value in headers_of(scope).items():
        if name in _KEPT:
            headers[name] = value
        elif name == "cookie":
            for part in value.split(";"):
                cookie, _, content = part.strip().partition("=")
                cookies[cookie] = credential(f"cookie.{cookie}", content)
        elif is_secret_header(name) or is_secret_name(name):
            headers[name] = credential(name, value)
        elif name not in _OF_THE_CONNECTION:
            headers[name] = unkept(name)
    query = bytes(scope.get("query_string") or b"").decode("latin-1")
    request = {"method": scope["method"], "path": scope["path"], "query": _query(query), "headers": headers}
    if cookies:
        request["cookies"] = cookies
    return request, Rules(secret)


def _query(query: str) -> str:
    """The query without the values of fields that look like credentials."""
    address = plain_url(f"http://x/?{query}").partition("?")[2] if query else ""
    if address == query:
        return query
    pairs = zip(
        parse_qsl(query, keep_blank_values=True), parse_qsl(address, keep_blank_values=True), strict=True
    )
    return urlencode(
        [(name, value if value == was else unkept(f"query.{name}")) for (name, was), (_, value) in pairs]
    )


def scope_of(request: Mapping[str, Any]) -> Scope:
    """The scope of a recorded request."""
    path = str(request["path"])
    headers = dict(request["headers"])
    if cookies := request.get("cookies"):
        headers["cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request["method"],
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": str(request["query"]).encode("latin-1"),
        "root_path": "",
        "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()],
        "client": None,
        "server": None,
    }
