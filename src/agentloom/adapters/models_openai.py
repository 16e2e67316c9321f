"""OpenAI chat completions, of OpenAI and of any server that speaks it: requests go out as recorded.

Where a host differs from OpenAI (`models_hosts`), what it calls by another name is renamed; nothing else is changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters.models_hosts import Host, host_of
from agentloom.adapters.models_openai_answer import Reader, answer
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["LOCAL_FIELDS", "PATH", "Dialect", "Reader", "answer", "body", "reader"]

PATH = "/chat/completions"
# Fields of a request that steer the call itself and are not for the provider's body.
LOCAL_FIELDS = frozenset(
    [
        "model",
        "api",
        "base_url",
        "api_key",
        "api_key_env",
        "timeout",
        "max_retries",
        "extra_headers",
        "extra_query",
        "extra_body",
        "stream",
    ]
)
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}\Z")


@dataclass(frozen=True, slots=True)
class Dialect:
    """The protocol as one provider speaks it."""

    provider: str
    PATH: str = PATH

    def body(self, request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
        return body(request, route, stream=stream)

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return answer(body, self.provider)

    def reader(self) -> Reader:
        return Reader(provider=self.provider)


def body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:
    """The request's body without ``stream``: fields as recorded, with the provider's name of the model.

    ModelError (``bad_request``) when a parameter is given twice, under OpenAI's name and under the host's.
    """
    host = host_of(route.provider)
    sent: dict[str, Any] = {"model": route.model}
    for name, value in request.items():
        if name in LOCAL_FIELDS:
            continue
        target = host.renames.get(name, name)
        if target != name and target in request:
            raise ModelError(
                "bad_request",
                f"{route.provider} {route.model}: {name} and {target} are one parameter there, and both are given",
                provider=route.provider,
                model=route.model,
                hint=f"give {target} alone",
            )
        sent[target] = value
    if isinstance(sent.get("messages"), list):
        sent["messages"] = _messages(cast("list[Any]", sent["messages"]), route.provider, host)
    if stream and "stream_options" not in request and host.asks_usage:
        sent["stream_options"] = {"include_usage": True}  # without it a stream has no token counts
    elif sent.get("stream_options", ...) is None:
        del sent["stream_options"]
    return sent


def _messages(messages: list[Any], provider: str, host: Host) -> list[Any]:
    """The very same list when nothing in it needs another form."""
    made = [_message(message, provider, host) for message in messages]
    same = all(new is old for new, old in zip(made, messages, strict=True))
    return messages if same else made


def _message(message: Any, provider: str, host: Host) -> Any:
    if not isinstance(message, dict):
        return message  # no message in any protocol: the provider says so
    fields = cast("dict[str, Any]", message)
    if "blocks" in fields:
        fields = {**fields, **_given_back(fields, provider, host)}
        del fields["blocks"]
    return _with_short_ids(fields) if host.short_ids else fields


def _given_back(message: Mapping[str, Any], provider: str, host: Host) -> dict[str, Any]:
    """The fields of an earlier answer that this provider wants back as they came. Other forms mean nothing here:
    their text and tool calls are in the message."""
    blocks = message["blocks"]
    mine: Any = cast("dict[str, Any]", blocks).get(provider) if isinstance(blocks, dict) else None
    if not isinstance(mine, dict):
        return {}
    without_calls = not message.get("tool_calls")
    return {
        name: value
        for name, value in cast("dict[str, Any]", mine).items()
        if not (without_calls and name in host.gives_back_with_calls)
    }


def _with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    """Ids of another provider's tool calls in the form that this one takes; the same id always becomes the same."""
    changed: dict[str, Any] = {}
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        made = [_short_call(call) for call in cast("list[Any]", calls)]  # type: ignore[redundant-cast]
        if any(new is not old for new, old in zip(made, cast("list[Any]", calls), strict=True)):  # type: ignore[redundant-cast]
            changed["tool_calls"] = made
    name = message.get("tool_call_id")
    if isinstance(name, str) and not _SHORT_ID.match(name):
        changed["tool_call_id"] = _short(name)
    return {**message, **changed} if changed else message


def _short_call(call: Any) -> Any:
    if not isinstance(call, dict):
        return call
    fields = cast("dict[str, Any]", call)
    name = fields.get("id")
    return {**fields, "id": _short(name)} if isinstance(name, str) and not _SHORT_ID.match(name) else fields


def _short(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:9]


def reader() -> Reader:
    """A reader of a stream's chunks."""
    return Reader()
