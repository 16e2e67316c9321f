"""Amazon Bedrock's Converse: chat-completions requests in, answers out in the same mapping as OpenAI's.

What Converse has no word for is refused with its place in the request; nothing is dropped in silence, neither here nor
there (AWS ignores fields that it does not know, so an unknown one is refused here). Fields of its own
(``inferenceConfig``, ``guardrailConfig``, ``additionalModelRequestFields``, ...) and blocks without a ``type`` pass as
they are. Source of the forms: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from agentloom.adapters.models_anthropic_parts import Refused, check_form
from agentloom.adapters.models_bedrock_answer import Reader, whole
from agentloom.adapters.models_bedrock_errors import failure
from agentloom.adapters.models_bedrock_parts import conversation
from agentloom.adapters.models_json import as_list, as_mapping
from agentloom.adapters.models_openai import LOCAL_FIELDS
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_bedrock_wire import Decoder
    from agentloom.adapters.models_route import Route

__all__ = ["address", "answer", "body", "decoder", "failure", "reader", "request_id", "signed"]

# Of chat completions: the name in inferenceConfig.
_CONFIG = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxTokens",
    "max_completion_tokens": "maxTokens",
    "stop": "stopSequences",
}
_TRANSLATED = frozenset(
    [
        *_CONFIG,
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "response_format",
        "reasoning_effort",
        "stream_options",
        "metadata",
        "service_tier",
        "n",
        "logprobs",
        "system",
        "inferenceConfig",
        "outputConfig",
        "toolConfig",
    ]
)
_OWN = frozenset(
    [
        "additionalModelRequestFields",
        "additionalModelResponseFieldPaths",
        "guardrailConfig",
        "performanceConfig",
        "projectIdentifier",
        "promptVariables",
        "requestMetadata",
        "serviceTier",
    ]
)


def body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:  # noqa: ARG001 - it's the address
    """The request's body. ModelError (``bad_request``) for what Bedrock has no word for."""
    try:
        check_form(request.get("messages") or [])
        return _body(request)
    except Refused as refused:
        reason = str(refused)
    raise ModelError(
        "bad_request",
        f"bedrock {route.model}: the request cannot be said in Bedrock's Converse: {reason}",
        provider=route.provider,
        model=route.model,
        hint="change that field; what the model itself takes goes into additionalModelRequestFields",
    )


def _body(request: Mapping[str, Any]) -> dict[str, Any]:
    sent: dict[str, Any] = {}
    for name, value in request.items():
        if name in LOCAL_FIELDS or name in _TRANSLATED or value is None:
            continue
        if name not in _OWN:
            raise Refused(name, "Converse has no such parameter")
        sent[name] = value
    system, sent["messages"] = conversation(request.get("messages") or [])
    if system or request.get("system") is not None:
        sent["system"] = [*_given_system(request.get("system")), *system]
    config = _config(request)
    if config or request.get("inferenceConfig") is not None:
        sent["inferenceConfig"] = config
    tools = _tool_config(request)
    if tools:
        sent["toolConfig"] = tools
    output = _output(request)
    if output:
        sent["outputConfig"] = output
    if request.get("metadata"):
        _put(sent, "requestMetadata", request["metadata"], "metadata")
    if request.get("service_tier") is not None:
        _put(sent, "serviceTier", {"type": request["service_tier"]}, "service_tier")
    _nothing_else(request)
    return sent


def _put(sent: dict[str, Any], name: str, value: Any, said: str) -> None:
    if name in sent:
        raise Refused(name, f"{said} says the same: give one of them")
    sent[name] = value


def _given_system(system: Any) -> list[dict[str, Any]]:
    if isinstance(system, str):
        return [{"text": system}]
    return [dict(block) for block in as_list(system)]


def _nothing_else(request: Mapping[str, Any]) -> None:
    if request.get("n") not in (None, 1):
        raise Refused("n", "Converse gives one answer")
    if request.get("logprobs"):
        raise Refused("logprobs", "Converse gives none")
    if request.get("parallel_tool_calls") is False:
        raise Refused("parallel_tool_calls", "Converse has no such parameter")
    for name, value in as_mapping(request.get("stream_options")).items():
        if name != "include_usage" and value is not None:  # token counts come with every stream
            raise Refused(f"stream_options.{name}", "Converse has no such option")


def _config(request: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = dict(request.get("inferenceConfig") or {})
    for name, target in _CONFIG.items():
        value = request.get(name)
        if value is not None:
            _put(config, target, [value] if name == "stop" and isinstance(value, str) else value, name)
    return config


def _tool_config(request: Mapping[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = dict(request.get("toolConfig") or {})
    tools = as_list(request.get("tools"))
    if tools:
        made = [made for place, tool in enumerate(tools) for made in _tool(tool, f"tools[{place}]")]
        _put(config, "tools", made, "tools")
    choice = request.get("tool_choice")
    if choice is not None:
        _put(config, "toolChoice", _tool_choice(choice), "tool_choice")
    return config


def _tool(tool: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    if "type" not in tool:
        return [dict(tool)]
    function = as_mapping(tool.get("function"))
    if tool.get("type") != "function" or not function:
        raise Refused(place, f"{tool.get('type')} does not exist there; tools of Bedrock's own have no type")
    said = {name: value for name, value in function.items() if value is not None}
    schema: Any = said.pop("parameters", None) or {"type": "object", "properties": {}}
    mark = [{"cachePoint": {"type": "default"}}] if tool.get("cache_control") else []
    return [{"toolSpec": {**said, "inputSchema": {"json": schema}}}, *mark]


def _tool_choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, dict):
        given = cast("dict[str, Any]", choice)
        if given.get("type") == "function":
            return {"tool": {"name": as_mapping(given.get("function")).get("name")}}
        if "type" in given:
            raise Refused("tool_choice", f"type {given['type']!r} does not exist there")
        return given
    if choice not in ("auto", "required"):
        raise Refused("tool_choice", f"{choice!r} does not exist there")
    return {"any": {}} if choice == "required" else {"auto": {}}


def _output(request: Mapping[str, Any]) -> dict[str, Any]:
    output: dict[str, Any] = dict(request.get("outputConfig") or {})
    if request.get("reasoning_effort") is not None:
        _put(output, "effort", request["reasoning_effort"], "reasoning_effort")
    wanted: Mapping[str, Any] | None = request.get("response_format")
    if wanted is None or wanted.get("type") == "text":
        return output
    if wanted.get("type") != "json_schema":
        raise Refused("response_format", f"type {wanted.get('type')!r} does not exist there; use json_schema")
    asked: Mapping[str, Any] = wanted.get("json_schema") or {}
    said = {name: asked[name] for name in ("name", "description") if asked.get(name) is not None}
    # Converse takes the schema as text.
    text = json.dumps(asked.get("schema"), ensure_ascii=False, separators=(",", ":"))
    structure = {"jsonSchema": {**said, "schema": text}}
    _put(output, "textFormat", {"type": "json_schema", "structure": structure}, "response_format")
    return output


def address(route: Route, *, stream: bool) -> str:
    """The whole address; a model's id or ARN is one segment of the path."""
    return (
        f"{route.base_url}/model/{quote(route.model, safe='')}/{'converse-stream' if stream else 'converse'}"
    )


def signed(route: Route, url: str, headers: dict[str, str], content: bytes) -> dict[str, str]:
    """The headers with the credential: a Bedrock API key, or a signature with AWS's chain of credentials."""
    if route.api_key is not None:
        return {"authorization": f"Bearer {route.api_key}", **headers}
    from agentloom.adapters import models_bedrock_wire  # botocore: only when a call is made

    return models_bedrock_wire.signed(route, url, headers, content)


def answer(body: Mapping[str, Any], route: Route) -> dict[str, Any]:  # noqa: ARG001 - as Google's
    """The answer mapping of a whole response body. ValueError when it is none."""
    return whole(body)


def reader(route: Route) -> Reader:
    """A reader of a stream's events."""
    return Reader(route)


def decoder() -> Decoder:
    """Takes AWS's event stream apart."""
    from agentloom.adapters import models_bedrock_wire

    return models_bedrock_wire.Decoder()


def request_id(headers: Mapping[str, str]) -> str | None:
    return headers.get("x-amzn-requestid")
