"""AWS: region and endpoint, signatures, event streams. Through botocore, without its typed clients."""

from __future__ import annotations

import importlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agentloom.errors import ModelError, ProviderError
from agentloom.runtime.locks import free_in_children

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["Decoder", "configured_region", "endpoint", "signed"]

_SERVICE = "bedrock"
_SETTINGS = {"fips": "use_fips_endpoint", "dualstack": "use_dualstack_endpoint"}

# botocore has no types.
_auth: Any = importlib.import_module("botocore.auth")
_awsrequest: Any = importlib.import_module("botocore.awsrequest")
_eventstream: Any = importlib.import_module("botocore.eventstream")
_exceptions: Any = importlib.import_module("botocore.exceptions")
_sessions: Any = importlib.import_module("botocore.session")

_Read = TypeVar("_Read")
_lock = free_in_children(threading.Lock())
_held: dict[str, Any] = {}


def _session() -> Any:
    with _lock:
        if "session" not in _held:
            _held["session"] = _sessions.get_session()
        return _held["session"]


def configured_region() -> str | None:
    """The region of the environment (``AWS_REGION``, ``AWS_DEFAULT_REGION``) or of the profile, or None."""
    region = os.environ.get("AWS_REGION")
    return region or _configured(lambda session: session.get_config_variable("region"))


def endpoint(region: str) -> str:
    """Bedrock's address in a region, as AWS's rules for its partition have it (China has a domain of its own; the
    settings for FIPS and for dual stack have other hosts). ProviderError."""
    return _configured(lambda session: _endpoint(session, region))


def _configured(read: Callable[[Any], _Read]) -> _Read:
    """What ``read`` finds in the session. ProviderError when the environment names a profile that is not there."""
    try:
        return read(_session())
    except _exceptions.BotoCoreError as error:
        reason = str(error)
    raise ProviderError(f"AWS's configuration: {reason}", hint="check AWS_PROFILE and the file of profiles")


def _endpoint(session: Any, region: str) -> str:
    try:
        name = session.get_partition_for_region(region)
    except _exceptions.UnknownRegionError:  # newer than the rules: as most are
        name = "aws"
    rules = next(one for one in session.get_data("endpoints")["partitions"] if one["partition"] == name)
    asked = {tag for tag, setting in _SETTINGS.items() if session.get_config_variable(setting)}
    found = {**rules, **rules["defaults"]}
    for variant in rules["defaults"].get("variants", []) if asked else ():
        if set(variant["tags"]) == asked:
            found.update(variant)
    host = found["hostname"].format(service="bedrock-runtime", region=region, dnsSuffix=found["dnsSuffix"])
    return f"https://{host}"


def signed(route: Route, url: str, headers: dict[str, str], content: bytes) -> dict[str, str]:
    """The headers with a signature (version 4). Without a credential: ModelError (``auth``), or, for a server of one's
    own, unsigned. May read files and ask servers for the credential."""
    credentials, reason = _credentials()
    if credentials is None:
        if not _is_aws(route):
            return headers
        raise ModelError(
            "auth",
            f"no credential for bedrock {route.model}: {reason}",
            provider=route.provider,
            model=route.model,
            hint="set AWS_BEARER_TOKEN_BEDROCK, AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        )
    request = _awsrequest.AWSRequest("POST", url, data=content, headers=headers)
    _auth.SigV4Auth(credentials, _SERVICE, route.region).add_auth(request)
    return {str(name): str(value) for name, value in request.headers.items()}


def _credentials() -> tuple[Any, str]:
    try:
        found = _session().get_credentials()
        return (found.get_frozen_credentials() if found else None), "AWS's chain of credentials has none"
    except _exceptions.BotoCoreError as error:
        return None, str(error)


def _is_aws(route: Route) -> bool:
    return ".amazonaws.com" in (route.base_url or "")


class Decoder:
    """Takes the bytes of an event stream apart: ``{kind: payload}``; an exception: ``{":exception": {"name", ...}}``.

    ValueError for bytes that are no such stream (a checksum that does not fit, a length beyond AWS's bounds).
    """

    def __init__(self) -> None:
        self._buffer: Any = _eventstream.EventStreamBuffer()

    def feed(self, data: bytes) -> Iterator[object]:
        self._buffer.add_data(data)
        while True:
            try:
                message = next(self._buffer, None)
            except _eventstream.ParserError as error:
                raise ValueError(f"no event stream: {error}") from None
            if message is None:
                return
            yield _event(message)

    def finish(self) -> Iterator[object]:
        """Nothing: an event that the end cuts off says nothing."""
        return iter(())


def _event(message: Any) -> dict[str, Any]:
    headers: dict[str, Any] = message.headers
    payload: Any = json.loads(message.payload) if message.payload else {}
    kind = headers.get(":message-type")
    if kind == "exception":
        fields = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {"message": str(payload)}
        return {":exception": {**fields, "name": headers.get(":exception-type")}}
    if kind == "error":
        return {":error": {"name": headers.get(":error-code"), "message": headers.get(":error-message")}}
    return {str(headers.get(":event-type")): payload}
