"""A conversation in the chat form as the input items of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from agentloom.adapters.models_anthropic_parts import Refused

__all__ = ["FORM", "items_of"]

FORM = "responses"
"""The name of this form in ``blocks`` (`agentloom.runtime.assembly`)."""

_ROLES = ("system", "developer", "user")


def items_of(messages: Any) -> Any:
    """The items of a conversation. Refused for what the API has no word for, with its place in the request."""
    if not isinstance(messages, list):
        return messages  # no conversation in any protocol: the provider says so
    items: list[dict[str, Any]] = []
    free: set[str] = set()  # ids of calls of custom tools, whose results have a type of their own
    for number, message in enumerate(cast("list[dict[str, Any]]", messages)):
        place = f"messages[{number}]"
        role = message.get("role")
        if "type" in message or role is None:
            items.append(message)  # an item in the API's own form
        elif role in _ROLES:
            _only(message, ("role", "content"), place)
            items.append({"role": role, "content": _content(message.get("content"), place)})
        elif role == "assistant":
            items += _assistant(message, place, free)
        elif role == "tool":
            items.append(_result(message, place, free))
        else:
            raise Refused(place, f"role {role!r} does not exist there")
    return items


def _only(message: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name, value in message.items():
        if name not in known and value is not None:
            raise Refused(f"{place}.{name}", "messages have no such field there")


def _content(content: object, place: str) -> Any:
    if not isinstance(content, list):
        return "" if content is None else content
    parts = cast("list[dict[str, Any]]", content)
    return [_part(part, f"{place}.content[{number}]") for number, part in enumerate(parts)]


def _part(part: Mapping[str, Any], place: str) -> dict[str, Any]:
    kind = part.get("type")
    if kind == "text":
        return {**part, "type": "input_text"}
    if kind == "image_url":
        image: Any = part.get("image_url")
        fields = {"url": image} if isinstance(image, str) else cast("dict[str, Any]", image or {})
        if not isinstance(fields.get("url"), str):
            raise Refused(place, "it has no url")
        detail = {"detail": fields["detail"]} if fields.get("detail") is not None else {}
        return {"type": "input_image", "image_url": fields["url"], **detail}
    if kind == "file":
        return {"type": "input_file", **cast("dict[str, Any]", part.get("file") or {})}
    if kind == "video_url":
        raise Refused(place, f"{kind} does not exist there")
    return dict(part)


def _assistant(message: Mapping[str, Any], place: str, free: set[str]) -> list[dict[str, Any]]:
    blocks: Any = message.get("blocks")
    mine = cast("dict[str, Any]", blocks).get(FORM) if isinstance(blocks, dict) else None
    if isinstance(mine, list):  # an answer of this API, given back as it came: reasoning must not change
        items = cast("list[dict[str, Any]]", mine)
        free.update(str(item.get("call_id")) for item in items if item.get("type") == "custom_tool_call")
        return items
    known = ("role", "content", "tool_calls", "refusal", "reasoning", "reasoning_content", "blocks")
    _only(message, known, place)
    items = _said(message, place)
    calls: list[dict[str, Any]] = message.get("tool_calls") or []
    return items + [_call(call, f"{place}.tool_calls[{number}]", free) for number, call in enumerate(calls)]


def _said(message: Mapping[str, Any], place: str) -> list[dict[str, Any]]:
    content = message.get("content")
    parts: list[dict[str, Any]] = []
    if isinstance(content, str) and content:
        parts.append({"type": "output_text", "text": content})
    elif isinstance(content, list):
        for number, part in enumerate(cast("list[dict[str, Any]]", content)):
            kind = part.get("type")
            if kind not in ("text", "refusal", "output_text"):
                raise Refused(f"{place}.content[{number}]", f"an assistant's {kind} does not exist there")
            parts.append({**part, "type": "output_text"} if kind == "text" else part)
    elif content not in (None, ""):
        raise Refused(f"{place}.content", f"it is {type(content).__name__}, neither text nor a list of parts")
    if message.get("refusal") is not None:
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    if not parts and message.get("tool_calls"):
        return []
    return [{"role": "assistant", "content": parts or ""}]


def _call(call: Mapping[str, Any], place: str, free: set[str]) -> dict[str, Any]:
    made = {"call_id": call.get("id")}
    custom: Mapping[str, Any] | None = call.get("custom")
    if custom is not None:
        free.add(str(call.get("id")))
        return {"type": "custom_tool_call", **made, "name": custom.get("name"), "input": custom.get("input")}
    function: Mapping[str, Any] | None = call.get("function")
    if function is None:
        raise Refused(place, "only calls of functions and of custom tools exist there")
    arguments = function.get("arguments")
    return {"type": "function_call", **made, "name": function.get("name"), "arguments": arguments}


def _result(message: Mapping[str, Any], place: str, free: set[str]) -> dict[str, Any]:
    _only(message, ("role", "content", "tool_call_id", "name"), place)
    name = message.get("tool_call_id")
    kind = "custom_tool_call_output" if str(name) in free else "function_call_output"
    return {"type": kind, "call_id": name, "output": _content(message.get("content"), place)}
