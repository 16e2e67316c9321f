"""Amazon Bedrock's InvokeModel, whose body is the model's own: Anthropic's messages.

Asked for with ``api="invoke"``: what Anthropic has and Converse has not (server tools, beta features) goes this way.
The request and the answer are translated as Anthropic's are; address, credentials, framing and errors are Bedrock's.
Source: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from agentloom.adapters import models_anthropic
from agentloom.adapters.models_bedrock import decoder, failure, request_id, signed
from agentloom.adapters.models_bedrock_errors import failed
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["address", "answer", "body", "decoder", "failure", "reader", "request_id", "signed"]

_VERSION = "bedrock-2023-05-31"


def body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
    """The request's body. ModelError (``bad_request``) for what Anthropic has no word for."""
    vendor = re.fullmatch(r"(?:[a-z-]+\.)?([a-z0-9]+)\.[^/]+", route.model)
    if vendor and vendor[1] != "anthropic":  # an ARN may name a profile, which does not say whose model it is
        raise ModelError(
            "bad_request",
            f"bedrock {route.model}: api='invoke' speaks Anthropic's form, which models of {vendor[1]} do not know",
            provider=route.provider,
            model=route.model,
            hint="leave out api=: Converse has one form for all models",
        )
    sent = models_anthropic.body(request, route, stream=stream)
    del sent["model"]  # it is in the address
    return {"anthropic_version": _VERSION, **sent}


def address(route: Route, *, stream: bool) -> str:
    """The whole address; a model's id or ARN is one segment of the path."""
    what = "invoke-with-response-stream" if stream else "invoke"
    return f"{route.base_url}/model/{quote(route.model, safe='')}/{what}"


def answer(body: Mapping[str, Any], route: Route) -> dict[str, Any]:  # noqa: ARG001 - as Google's
    """The answer mapping of a whole response body. ValueError when it is none."""
    return models_anthropic.answer(body)


class Reader:
    """Reads Anthropic's events out of Bedrock's: each chunk holds one, in base64."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._reader = models_anthropic.reader()

    @property
    def complete(self) -> bool:
        return self._reader.complete

    def read(self, event: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """The deltas of one event. ModelError for an exception. Other kinds of events say nothing to an answer."""
        for kind, payload in event.items():
            if kind in (":exception", ":error"):
                raise failed(payload, self._route)
            if kind == "chunk":
                said: Any = json.loads(base64.b64decode(payload["bytes"]))
                if said.get("type") == "error":
                    raise failed({**said["error"], "name": said["error"].get("type")}, self._route)
                yield from self._reader.read(said)


def reader(route: Route) -> Reader:
    """A reader of a stream's events."""
    return Reader(route)
