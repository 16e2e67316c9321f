"""A recorded request as the `model` call that somebody would write for it, and when two bodies say the same.

The call is in the chat form wherever that form has the words, so that what arrives shows how the adapters translate;
what only the provider's own form can say is passed in that form, as the product allows. Nothing is looked up by name.
"""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from agentloom.adapters.models_hosts import HOSTS
from agentloom.testing import Exchange
from tests.corpus.rebuild_native import converse, google, invoke, normal_converse, normal_google

Body = dict[str, Any]
GREETING = [{"role": "user", "content": "hello"}]


class Unsaid(Exception):
    """Why a recorded request is none that `model` can make; the message is the reason."""


class Call:
    """Arguments of `model`. ``tail``: what the client puts behind its base address. ``environ``: variables that send
    the named provider to the player ("{url}": its address); {} where ``base_url=`` does."""

    def __init__(self, name: str, body: Body, tail: str, environ: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.messages: Any = body.pop("messages")
        self.params = body
        self.tail = tail
        self.environ = environ or {}


def call_of(one: Exchange, api: str) -> Call:
    """The `model` call for an exchange of ``api``. Unsaid says why there is none."""
    if api not in APIS:
        raise Unsaid(f"another API: {api}")
    asked = one.request()
    if one.request_body is None or (asked == b"" and one.url == ""):
        asked = {"model": "m", "messages": GREETING, "input": "hello", "contents": [], "max_tokens": 9}
    if not isinstance(asked, dict):
        raise Unsaid("the request's body is no JSON object")
    try:
        return APIS[api](one, copy.deepcopy(asked))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise Unsaid(f"the request has not its API's form: {type(error).__name__} {error}") from error


def _chat(one: Exchange, body: Body) -> Call:
    body.pop("stream", None)
    if one.request_body is None:
        return Call("openai:m", {"messages": GREETING}, "/chat/completions")
    if not isinstance(body.get("messages"), list):
        raise Unsaid("the request has no messages")
    # A host that the product knows by name is asked by that name, so that its ways are tried too.
    known = [
        name for name, host in HOSTS.items() if urlsplit(host.url).hostname == one.host and "model" in body
    ]
    if known and not HOSTS[known[0]].keyless:
        host = HOSTS[known[0]]
        place = {host.urls[0]: "{url}", host.keys[0]: "unused"}
        return Call(f"{known[0]}:{body.pop('model')}", body, "/chat/completions", place)
    deployment = re.fullmatch(r"/openai/deployments/([^/]+)/chat/completions", one.path or "")
    version = dict(one.query).get("api-version")
    if deployment and version:  # an address of Azure of before its v1 API
        place = {
            "AZURE_OPENAI_ENDPOINT": "{url}",
            "AZURE_OPENAI_API_KEY": "unused",
            "OPENAI_API_VERSION": version,
        }
        body.pop("model", None)
        return Call(f"azure-openai:{deployment[1]}", body, str(one.path), place)
    if one.query:
        body["extra_query"] = dict(one.query)
    return Call(f"openai:{body.pop('model', 'm')}", body, "/chat/completions")


def _responses(one: Exchange, body: Body) -> Call:
    if one.request_body is None:
        return Call("openai:m", {"messages": GREETING, "api": "responses"}, "/responses")
    body.pop("stream", None)
    given = body.pop("input", None)
    if given is None:
        raise Unsaid("the request has no input")
    made: Body = {
        "api": "responses",
        "messages": given if isinstance(given, str) else list(_from_items(given)),
    }
    if isinstance(given, str):
        made["messages"] = [{"role": "user", "content": given}]
    if "max_output_tokens" in body:
        made["max_tokens"] = body.pop("max_output_tokens")
    if set(body.get("reasoning") or {}) == {"effort"}:
        made["reasoning_effort"] = body.pop("reasoning")["effort"]
    text = body.get("text") or {}
    if set(text) == {"format"} and text["format"].get("type") == "json_schema":
        body.pop("text")
        schema = {key: value for key, value in text["format"].items() if key != "type"}
        made["response_format"] = {"type": "json_schema", "json_schema": schema}
    if "tools" in body:
        made["tools"] = [_nested(tool) for tool in body.pop("tools")]
    return Call(f"openai:{body.pop('model', 'm')}", made | body, "/responses")


def _nested(tool: Body) -> Body:
    if tool.get("type") == "function" and "strict" in tool and "parameters" in tool:
        return {"type": "function", "function": {key: value for key, value in tool.items() if key != "type"}}
    return tool


_PARTS: dict[str, Callable[[Body], Body]] = {
    "input_text": lambda part: {"type": "text", "text": part["text"]},
    "input_image": lambda part: {
        "type": "image_url",
        "image_url": {"url": part["image_url"]} | ({"detail": part["detail"]} if "detail" in part else {}),
    },
    "input_file": lambda part: {"type": "file", "file": {key: v for key, v in part.items() if key != "type"}},
}


def _from_items(items: list[Body]) -> Iterator[Body]:
    for item in items:
        kind, content = item.get("type", "message"), item.get("content")
        if kind == "message" and set(item) <= {"type", "role", "content"} and item["role"] != "assistant":
            whole = isinstance(content, list) and all(part["type"] in _PARTS for part in content)
            parts = (
                [_PARTS[part["type"]](part) for part in content]
                if isinstance(content, list) and whole
                else content
            )
            yield {"role": item["role"], "content": parts}
        elif kind == "function_call" and set(item) == {"type", "call_id", "name", "arguments"}:
            function = {"name": item["name"], "arguments": item["arguments"]}
            calls = [{"id": item["call_id"], "type": "function", "function": function}]
            yield {"role": "assistant", "content": None, "tool_calls": calls}
        elif kind == "function_call_output" and isinstance(item["output"], str) and len(item) == 3:
            yield {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
        else:
            yield item


def _messages(one: Exchange, body: Body) -> Call:
    if one.request_body is None:
        return Call("anthropic:m", {"messages": GREETING, "max_tokens": 9}, "/v1/messages")
    body.pop("stream", None)
    messages: list[Body] = []
    if isinstance(body.get("system"), str) and body["system"]:
        messages.append({"role": "system", "content": body.pop("system")})
    given = body.pop("messages", [])
    if not isinstance(given, list):  # somebody's mistake, which the provider refused
        raise Unsaid("the request's messages are no list")
    if not all(isinstance(message, dict) for message in given):  # the same; `model` sends no such thing
        raise Unsaid("a message of the request is no mapping")
    for message in given:
        messages += _turns(message) if "content" in message else [message]
    made: Body = {"messages": messages}
    if "stop_sequences" in body:
        made["stop"] = body.pop("stop_sequences")
    if "tools" in body:
        made["tools"] = [_function(tool) for tool in body.pop("tools")]
    if "tool_choice" in body:
        made |= _choice(body.pop("tool_choice"))
    output = body.get("output_config") or {}
    if set(output) == {"format"}:
        schema = {"name": "answer", "schema": body.pop("output_config")["format"]["schema"]}
        made["response_format"] = {"type": "json_schema", "json_schema": schema}
    if one.query:
        made["extra_query"] = dict(one.query)
    return Call(f"anthropic:{body.pop('model')}", made | body, "/v1/messages")


def _turns(message: Body) -> Iterator[Body]:
    role, content = message["role"], message["content"]
    kinds = {block.get("type") for block in content} if isinstance(content, list) else set()
    if role == "system":
        yield message
    elif role == "user" and kinds == {"tool_result"}:
        for block in content:
            extra = {key: block[key] for key in ("is_error", "cache_control") if key in block}
            yield {
                "role": "tool",
                "tool_call_id": block["tool_use_id"],
                "content": block.get("content"),
            } | extra
    elif role == "user":
        yield {
            "role": "user",
            "content": [_image(part) for part in content] if isinstance(content, list) else content,
        }
    elif kinds and kinds <= {"text", "tool_use"} and _simple(content):
        texts = [block["text"] for block in content if block["type"] == "text"]
        calls = [
            {
                "id": block["id"],
                "type": "function",
                "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
            }
            for block in content
            if block["type"] == "tool_use"
        ]
        yield {"role": "assistant", "content": texts[0] if texts else None} | (
            {"tool_calls": calls} if calls else {}
        )
    elif isinstance(content, list):
        yield {"role": "assistant", "content": None, "blocks": content}
    else:
        yield message


def _simple(blocks: list[Body]) -> bool:
    plain = {"text": {"type", "text"}, "tool_use": {"type", "id", "name", "input"}}
    kinds = [block["type"] for block in blocks]
    return all(set(block) <= plain[block["type"]] for block in blocks) and "text" not in kinds[1:]


def _image(part: Body) -> Body:
    source = part.get("source") or {}
    if part.get("type") == "image" and set(part) == {"type", "source"} and source.get("type") == "base64":
        url = f"data:{source['media_type']};base64,{source['data']}"
        return {"type": "image_url", "image_url": {"url": url}}
    return part


def _function(tool: Body) -> Body:
    if tool.get("type", "custom") != "custom" or "input_schema" not in tool or "type" in tool:
        return tool
    said = {("parameters" if key == "input_schema" else key): value for key, value in tool.items()}
    return {"type": "function", "function": said}


def _choice(choice: Body) -> Body:
    made: Body = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") else {}
    if choice["type"] == "tool":
        return made | {"tool_choice": {"type": "function", "function": {"name": choice["name"]}}}
    return made | {"tool_choice": {"auto": "auto", "any": "required", "none": "none"}[choice["type"]]}


def _native(read: Callable[[Exchange, Body], tuple[str, Body, str]], one: Exchange, body: Body) -> Call:
    if one.path and one.path.endswith(":streamGenerateContent") and dict(one.query).get("alt") != "sse":
        raise Unsaid("a stream asked for as one JSON array, not as server-sent events")
    name, made, tail = read(one, body)
    return Call(name, made, tail)


def _invoke(one: Exchange, body: Body) -> Call:
    # Whose form it is shows in the body, whatever the address calls the model.
    if "messages" not in body or (one.request_body is not None and "anthropic_version" not in body):
        raise Unsaid("InvokeModel of a model that does not speak Anthropic's form")
    call = _native(invoke, one, body)
    turns = [
        _turns(turn) if "content" in turn and turn["role"] != "system" else [turn] for turn in call.messages
    ]
    call.messages = [made for turn in turns for made in turn]
    if "tools" in call.params:
        call.params["tools"] = [_function(tool) for tool in call.params["tools"]]
    return call


APIS: dict[str, Callable[[Exchange, Body], Call]] = {
    "generateContent": functools.partial(_native, google),
    "converse": functools.partial(_native, converse),
    "invoke": _invoke,
    "chat": _chat,
    "responses": _responses,
    "messages": _messages,
}
"""How each API's request is said; an API that is not here does not apply."""


def normal(body: Any, api: str) -> Any:
    """A request's body with what its API documents as another way to say the same said in one way."""
    if not isinstance(body, dict):
        return body
    said = {
        name: value
        for name, value in body.items()
        if value is not None and (name, value) != ("stream", False)
    }
    if api == "generateContent":
        return normal_google(said)
    if api == "converse":
        return normal_converse(said)
    if api in ("messages", "invoke"):
        said["messages"] = [_in_blocks(message) for message in said.get("messages") or []]
        said["system"] = _blocks(said.get("system"))
        if said.get("tools") == []:
            del said["tools"]
    if api == "responses":
        if said.get("tools") == []:
            del said["tools"]
        given = said.get("input")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given or []
        said["input"] = [_item(item) for item in items]
    return said


def _in_blocks(message: Mapping[str, Any]) -> Body:
    blocks = [
        block | {"content": _blocks(block["content"])}
        if block.get("type") == "tool_result" and "content" in block
        else block
        for block in _blocks(message["content"])
    ]
    return {**message, "content": blocks}


def _blocks(content: Any) -> list[Body]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _item(item: Mapping[str, Any]) -> Body:
    said = dict(item)
    if said.get("type") == "message":
        del said["type"]
    if isinstance(said.get("content"), str):
        kind = "output_text" if said.get("role") == "assistant" else "input_text"
        said["content"] = [{"type": kind, "text": said["content"]}]
    return said
