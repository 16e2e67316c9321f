"""Anthropic messages: chat-completions requests in, answers out in the same mapping as OpenAI's.

What the other protocol cannot say is refused with its place in the request; nothing is dropped in silence. Content
blocks in Anthropic's own form (images, documents, cache marks, server tools) are passed as they are.
Source of the forms: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agentloom.adapters.models_anthropic_answer import Reader, answer
from agentloom.adapters.models_anthropic_parts import Refused, check_form, content_of, parts_of
from agentloom.adapters.models_openai import LOCAL_FIELDS
from agentloom.errors import ModelError

if TYPE_CHECKING:
    from agentloom.adapters.models_route import Route

__all__ = ["DEFAULT_MAX_TOKENS", "PATH", "answer", "body", "reader"]

PATH = "/v1/messages"
DEFAULT_MAX_TOKENS = 4096
"""Anthropic needs a limit; this one is within what every model of theirs allows."""

_TRANSLATED = frozenset(
    [
        "messages",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "user",
        "response_format",
        "reasoning_effort",
        "stream_options",
        "system",
    ]
)
_UNKNOWN_THERE = frozenset(
    [
        "seed",
        "logprobs",
        "top_logprobs",
        "n",
        "frequency_penalty",
        "presence_penalty",
        "logit_bias",
        "modalities",
        "audio",
        "prediction",
        "store",
        "functions",
        "function_call",
        "web_search_options",
        "verbosity",
    ]
)


def body(request: Mapping[str, Any], route: Route, *, stream: bool) -> dict[str, Any]:  # noqa: ARG001 - as OpenAI's
    """The request's body without ``stream``. ModelError (``bad_request``) for what Anthropic has no word for."""
    try:
        check_form(request.get("messages") or [])
        return _body(request, route)
    except Refused as refused:
        reason = str(refused)
    raise ModelError(
        "bad_request",
        f"anthropic {route.model}: the request cannot be said in Anthropic's protocol: {reason}",
        provider=route.provider,
        model=route.model,
        hint="change that field, or use a model of another provider",
    )


def _body(request: Mapping[str, Any], route: Route) -> dict[str, Any]:
    sent: dict[str, Any] = {"model": route.model}
    for name, value in request.items():
        if name in LOCAL_FIELDS or name in _TRANSLATED or value is None:
            continue
        if name in _UNKNOWN_THERE:
            raise Refused(name, "Anthropic has no such parameter")
        sent[name] = value
    sent["max_tokens"] = (
        request.get("max_completion_tokens") or request.get("max_tokens") or DEFAULT_MAX_TOKENS
    )
    system, sent["messages"] = _conversation(request.get("messages") or [])
    if not system and request.get("system") is not None:
        sent["system"] = request["system"]
    elif system:
        sent["system"] = [*_system(request.get("system"), "system"), *system]
    if request.get("tools"):
        sent["tools"] = [_tool(tool, f"tools[{place}]") for place, tool in enumerate(request["tools"])]
    choice = _tool_choice(request.get("tool_choice"), request.get("parallel_tool_calls"))
    if choice is not None:
        sent["tool_choice"] = choice
    if request.get("stop") is not None:
        stop = request["stop"]
        sent["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if request.get("user") is not None:
        sent["metadata"] = {"user_id": request["user"], **(sent.get("metadata") or {})}
    output = _output(request)
    if output:
        sent["output_config"] = {**output, **(sent.get("output_config") or {})}
    return sent


def _output(request: Mapping[str, Any]) -> dict[str, Any]:
    output: dict[str, Any] = {}
    if request.get("reasoning_effort") is not None:
        output["effort"] = request["reasoning_effort"]
    wanted: Mapping[str, Any] | None = request.get("response_format")
    if wanted is None or wanted.get("type") == "text":
        return output
    if wanted.get("type") != "json_schema":
        raise Refused("response_format", f"type {wanted.get('type')!r} does not exist there; use json_schema")
    schema: Mapping[str, Any] = wanted.get("json_schema") or {}
    output["format"] = {"type": "json_schema", "schema": schema.get("schema")}
    return output


def _tool(tool: Mapping[str, Any], place: str) -> dict[str, Any]:
    if tool.get("type") == "custom" and "custom" in tool:
        raise Refused(place, "custom tools (free text) do not exist there")
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict):
        return dict(tool)
    said = cast("dict[str, Any]", function)
    made = {**{name: value for name, value in tool.items() if name not in ("type", "function")}, **said}
    made["input_schema"] = made.pop("parameters", None) or {"type": "object", "properties": {}}
    return {name: value for name, value in made.items() if value is not None}


def _tool_choice(choice: object, parallel: object) -> dict[str, Any] | None:
    made: dict[str, Any] | None = None
    if isinstance(choice, str):
        kinds = {"auto": "auto", "none": "none", "required": "any"}
        if choice not in kinds:
            raise Refused("tool_choice", f"{choice!r} does not exist there")
        made = {"type": kinds[choice]}
    elif isinstance(choice, dict):
        given = cast("dict[str, Any]", choice)
        function: Mapping[str, Any] | None = given.get("function")
        made = dict(given) if function is None else {"type": "tool", "name": function.get("name")}
    if parallel is False:
        made = {**(made or {"type": "auto"}), "disable_parallel_tool_use": True}
    return made


def _system(content: object, place: str) -> list[dict[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if isinstance(content, list):
        return [dict(part) for part in cast("list[dict[str, Any]]", content)]
    raise Refused(place, f"content is {type(content).__name__}, not text")


def _conversation(messages: Any) -> tuple[list[dict[str, Any]], Any]:
    if not isinstance(messages, list):
        return [], messages
    items = cast("list[object]", messages)
    if not all(isinstance(message, dict) for message in items):
        return [], items  # no conversation in any protocol: the provider says so
    return _messages(cast("list[dict[str, Any]]", items))


def _messages(messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """System blocks, and the conversation. Results of tools become user turns; neighbours share one."""
    system: list[dict[str, Any]] = []
    turns: list[dict[str, Any]] = []
    for number, message in enumerate(messages):
        place = f"messages[{number}]"
        role = message.get("role")
        if role in ("system", "developer"):
            blocks = _system(message.get("content"), place)
            if turns:  # models that do not take instructions in mid-conversation say so themselves
                turns.append({"role": "system", "content": blocks})
            else:
                system += blocks
        elif role == "tool":
            block = _tool_result(message, place)
            if turns and turns[-1]["role"] == "user" and _is_results(turns[-1]["content"]):
                turns[-1]["content"].append(block)
            else:
                turns.append({"role": "user", "content": [block]})
        elif role == "assistant":
            turns.append({"role": "assistant", "content": _assistant(message, place)})
        elif role == "user":
            _only(message, ("role", "content"), place)
            turns.append({"role": "user", "content": content_of(message.get("content"), place)})
        else:
            raise Refused(place, f"role {role!r} does not exist there")
    return system, turns


def _only(message: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name, value in message.items():
        if name not in known and value is not None:
            raise Refused(f"{place}.{name}", "messages have no such field there")


def _is_results(content: object) -> bool:
    if not isinstance(content, list):
        return False
    parts = cast("list[Any]", content)  # type: ignore[redundant-cast]
    return all(part.get("type") == "tool_result" for part in parts)


def _tool_result(message: Mapping[str, Any], place: str) -> dict[str, Any]:
    _only(message, ("role", "content", "tool_call_id", "name", "is_error", "cache_control"), place)
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.get("tool_call_id")}
    if message.get("content") is not None:
        block["content"] = content_of(message["content"], place)
    for name in ("is_error", "cache_control"):
        if message.get(name) is not None:
            block[name] = message[name]
    return block


def _assistant(message: Mapping[str, Any], place: str) -> Any:
    blocks = message.get("blocks")
    if isinstance(blocks, list) and blocks:
        # An answer of Anthropic's, given back as it came: signed thinking must not change.
        return list(cast("list[Any]", blocks))  # type: ignore[redundant-cast]
    _only(
        message,
        ("role", "content", "tool_calls", "refusal", "reasoning", "reasoning_content", "blocks"),
        place,
    )
    content = message.get("content")
    if content is None and message.get("refusal"):
        content = message["refusal"]
    calls: list[dict[str, Any]] = message.get("tool_calls") or []
    if not calls:
        return content_of("" if content is None else content, place)
    blocks = parts_of(content, place)
    for number, call in enumerate(calls):
        where = f"{place}.tool_calls[{number}]"
        function: Mapping[str, Any] | None = call.get("function")
        if function is None:
            raise Refused(where, "only function calls exist there")
        given = _arguments(function.get("arguments"), where)
        blocks.append(
            {"type": "tool_use", "id": call.get("id"), "name": function.get("name"), "input": given}
        )
    return blocks


def _arguments(text: object, place: str) -> dict[str, Any]:
    try:
        value = json.loads(str(text or "{}"))
    except ValueError as error:
        raise Refused(f"{place}.function.arguments", f"they must be a JSON object there: {error}") from None
    if not isinstance(value, dict):
        raise Refused(f"{place}.function.arguments", "they must be a JSON object there")
    return cast("dict[str, Any]", value)


def reader() -> Reader:
    """A reader of a stream's events."""
    return Reader()
