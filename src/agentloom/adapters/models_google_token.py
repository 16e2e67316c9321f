"""Tokens of Google's application default credentials, for Vertex AI. Needs google-auth; its requests go out here."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import google.auth
import google.auth.exceptions
import google.auth.transport
import httpx2

from agentloom.errors import ModelError
from agentloom.runtime.locks import free_in_children

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["authorization"]

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_lock = free_in_children(threading.Lock())
_held: dict[str, Any] = {}
_auth: Any = google.auth  # its functions are typed in part only


def authorization(route: Route) -> dict[str, str]:
    """The headers with a token that is valid now; it is asked for anew when it ends. ModelError (``auth``)."""
    reason = None
    headers: dict[str, str] = {}
    try:
        with _lock:
            if "credentials" not in _held:
                _held["credentials"] = _auth.default(scopes=[_SCOPE])[0]
            credentials = _held["credentials"]
            if not credentials.valid:
                credentials.refresh(_Request())
            credentials.apply(headers)
    except google.auth.exceptions.GoogleAuthError as error:
        reason = str(error)
    else:
        return headers
    raise ModelError(
        "auth",
        f"no credential for {route.provider} {route.model}: {reason}",
        provider=route.provider,
        model=route.model,
        hint="run `gcloud auth application-default login`, set GOOGLE_APPLICATION_CREDENTIALS, or name a key with "
        "api_key_env=",
    )


class _Response(google.auth.transport.Response):
    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status_code

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    @property
    def data(self) -> bytes:
        return self._response.content


class _Request(google.auth.transport.Request):
    """Google's library asks for tokens through the HTTP client that the calls use, so that no other is needed."""

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = 120,
        **kwargs: Any,
    ) -> google.auth.transport.Response:
        try:
            return _Response(
                httpx2.request(
                    method, url, content=body, headers=dict(headers or {}), timeout=timeout, **kwargs
                )
            )
        except httpx2.HTTPError as error:
            raise _auth.exceptions.TransportError(str(error)) from error
