"""Google's generateContent, of the Gemini API and of Vertex AI: chat-completions requests in, answers out in the same
mapping as OpenAI's.

What Google has no word for is refused with its place in the request; nothing is dropped in silence. Fields of its own
(``generationConfig``, ``safetySettings``, ``cachedContent``, tools such as ``{"googleSearch": {}}``, parts without a
``type``) pass as they are. Source of the forms: https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

from agentloom.adapters.models_anthropic_parts import Refused, check_form
from agentloom.adapters.models_google_answer import Reader, whole
from agentloom.adapters.models_google_errors import failure
from agentloom.adapters.models_google_parts import conversation
from agentloom.adapters.models_json import as_list, as_mapping
from agentloom.adapters.models_openai import LOCAL_FIELDS
from agentloom.adapters.models_sse import Decoder
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["address", "answer", "body", "decoder", "failure", "reader", "request_id", "signed"]

# Of chat completions: the name in generationConfig.
_CONFIG = {
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "max_tokens": "maxOutputTokens",
    "max_completion_tokens": "maxOutputTokens",
    "stop": "stopSequences",
    "n": "candidateCount",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
    "logprobs": "responseLogprobs",
    "top_logprobs": "logprobs",
    "modalities": "responseModalities",
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
        "generationConfig",
    ]
)
_UNKNOWN_THERE = frozenset(
    [
        "audio",
        "function_call",
        "functions",
        "logit_bias",
        "metadata",
        "prediction",
        "prompt_cache_key",
        "safety_identifier",
        "service_tier",
        "store",
        "system",
        "user",
        "verbosity",
        "web_search_options",
    ]
)
# Models before 3 think by a budget of tokens; these are the budgets of Google's own OpenAI-compatible endpoint.
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_BY_BUDGET = re.compile(r"gemini-[12]\.")


def body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:  # noqa: ARG001 - it's the address
    """The request's body. ModelError (``bad_request``) for what Google has no word for."""
    try:
        check_form(request.get("messages") or [])
        return _body(request, route)
    except Refused as refused:
        reason = str(refused)
    raise ModelError(
        "bad_request",
        f"{route.provider} {route.model}: the request cannot be said in Google's protocol: {reason}",
        provider=route.provider,
        model=route.model,
        hint="change that field, or use a model of another provider",
    )


def _body(request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    sent: dict[str, Any] = {}
    for name, value in request.items():
        if name in LOCAL_FIELDS or name in _TRANSLATED or value is None:
            continue
        if name in _UNKNOWN_THERE:
            raise Refused(name, "Google has no such parameter")
        sent[name] = value
    system, contents = conversation(request.get("messages") or [], route.provider)
    _put(sent, "contents", contents, "messages")
    if system:
        _put(sent, "systemInstruction", {"parts": system}, "a system message")
    tools, strict = _tools(request.get("tools") or [])
    if tools:
        sent["tools"] = tools
    choice = _tool_choice(request.get("tool_choice"), strict=strict)
    if choice:
        _put(sent, "toolConfig", choice, "tool_choice")
    if request.get("parallel_tool_calls") is False:
        raise Refused("parallel_tool_calls", "Google's models call as many tools as they like")
    _stream_options(request.get("stream_options"))
    config = _config(request, route)
    if config or request.get("generationConfig") is not None:
        sent["generationConfig"] = config
    _no_partial_calls(sent.get("toolConfig"))
    return sent


def _put(sent: dict[str, Any], name: str, value: Any, said: str) -> None:
    if name in sent:
        raise Refused(name, f"{said} says the same: give one of them")
    sent[name] = value


def _config(request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    config: dict[str, Any] = dict(request.get("generationConfig") or {})
    for name, target in _CONFIG.items():
        value = request.get(name)
        if value is None:
            continue
        if name == "stop" and isinstance(value, str):
            value = [value]
        elif name == "modalities":
            value = [str(one).upper() for one in value]
        elif name == "logprobs" and not value:
            continue
        _put(config, target, value, name)
    for name, value in _format(request.get("response_format")).items():
        _put(config, name, value, "response_format")
    effort = request.get("reasoning_effort")
    if effort is not None:
        thinking = dict(config.get("thinkingConfig") or {})
        name, value = _thinking(str(effort), route.model)
        _put(thinking, name, value, "reasoning_effort")
        config["thinkingConfig"] = thinking
    return config


def _thinking(effort: str, model: str) -> tuple[str, Any]:
    if _BY_BUDGET.match(model.rpartition("/")[2]) is None:
        return "thinkingLevel", effort
    if effort not in _BUDGETS:
        raise Refused(
            "reasoning_effort", f"{effort!r} does not exist there; use thinkingConfig.thinkingBudget"
        )
    return "thinkingBudget", _BUDGETS[effort]


def _format(wanted: Any) -> dict[str, Any]:
    if wanted is None or wanted.get("type") == "text":
        return {}
    if wanted.get("type") == "json_object":
        return {"responseMimeType": "application/json"}
    if wanted.get("type") != "json_schema":
        raise Refused("response_format", f"type {wanted.get('type')!r} does not exist there")
    schema: Mapping[str, Any] = wanted.get("json_schema") or {}
    if schema.get("description"):
        raise Refused("response_format.json_schema.description", "put it into the schema itself")
    # The field for JSON Schema as it is written; responseSchema knows a part of OpenAPI's only.
    return {"responseMimeType": "application/json", "responseJsonSchema": schema.get("schema")}


def _tools(tools: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """Google's tools, functions that follow one another in one of them; and whether one is to be strict."""
    made: list[dict[str, Any]] = []
    strict, own = False, True
    for number, tool in enumerate(tools):
        place = f"tools[{number}]"
        if "type" not in tool:
            made.append(dict(tool))
            own = True
            continue
        said = as_mapping(tool.get("function"))
        if tool.get("type") != "function" or not said:
            raise Refused(
                place, f"{tool.get('type')} does not exist there; tools of Google's own have no type"
            )
        if own:
            made.append({"functionDeclarations": []})
            own = False
        strict = strict or said.get("strict") is True
        made[-1]["functionDeclarations"].append(_declaration(said))
    return made, strict


def _declaration(function: Mapping[str, Any]) -> dict[str, Any]:
    made = {name: value for name, value in function.items() if name != "strict" and value is not None}
    if "parameters" in made:
        made["parametersJsonSchema"] = made.pop("parameters")
    return made


def _tool_choice(choice: Any, *, strict: bool) -> dict[str, Any] | None:
    """``VALIDATED`` is the mode in which calls are held to their schema, as ``strict`` asks; ``ANY`` does so anyway."""
    if isinstance(choice, dict):
        given = cast("dict[str, Any]", choice)
        if given.get("type") == "function":
            name = as_mapping(given.get("function")).get("name")
            return {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
        if "type" not in given:
            return given
        if given.get("type") != "allowed_tools":
            raise Refused("tool_choice", f"type {given.get('type')!r} does not exist there")
        allowed = as_mapping(given.get("allowed_tools"))
        tools = [as_mapping(tool) for tool in as_list(allowed.get("tools"))]
        names = [as_mapping(tool.get("function")).get("name") for tool in tools]
        mode = "ANY" if allowed.get("mode") == "required" else "VALIDATED"
        return {"functionCallingConfig": {"mode": mode, "allowedFunctionNames": names}}
    modes = {"auto": "VALIDATED" if strict else "AUTO", "none": "NONE", "required": "ANY"}
    if choice is None:
        return {"functionCallingConfig": {"mode": "VALIDATED"}} if strict else None
    if choice not in modes:
        raise Refused("tool_choice", f"{choice!r} does not exist there")
    return {"functionCallingConfig": {"mode": modes[choice]}}


def _stream_options(options: Any) -> None:
    """Token counts come with every stream; there is nothing to ask for."""
    for name, value in as_mapping(options).items():
        if name != "include_usage" and value is not None:
            raise Refused(f"stream_options.{name}", "Google has no such option")


def _no_partial_calls(choice: Any) -> None:
    if as_mapping(as_mapping(choice).get("functionCallingConfig")).get("streamFunctionCallArguments"):
        place = "toolConfig.functionCallingConfig.streamFunctionCallArguments"
        raise Refused(place, "arguments in pieces are not supported")


def address(route: Route, *, stream: bool) -> str:
    """The whole address: of a Gemini model by its bare name, or of any resource by its path."""
    model = route.model
    if "/" not in model:
        model = f"publishers/google/models/{model}" if route.provider == "vertex" else f"models/{model}"
    base = route.base_url or ""
    if model.startswith("projects/"):
        base = base.partition("/projects/")[0]
    what = "streamGenerateContent?alt=sse" if stream else "generateContent"
    return f"{base}/{quote(model, safe='/@')}:{what}"


def signed(route: Route, url: str, headers: dict[str, str], content: bytes) -> dict[str, str]:  # noqa: ARG001
    """The headers with the credential: a key, or a token of Google's application default credentials."""
    if route.api_key is not None:
        return {"x-goog-api-key": route.api_key, **headers}
    if not route.bearer:
        return headers
    from agentloom.adapters import models_google_token  # google-auth: only when a token is asked for

    return {**models_google_token.authorization(route), **headers}


def answer(body: Mapping[str, Any], route: Route) -> dict[str, Any]:
    """The answer mapping of a whole response body. ValueError when it is none."""
    return whole(body, route)


def reader(route: Route) -> Reader:
    """A reader of a stream's events."""
    return Reader(route)


def decoder() -> Decoder:
    return Decoder()


def request_id(headers: Mapping[str, str]) -> str | None:
    """Google gives the id of an exchange in the answer alone; gateways in front of it may give one."""
    return headers.get("x-request-id") or headers.get("x-goog-request-id")
