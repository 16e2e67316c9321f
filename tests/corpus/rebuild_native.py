"""Recorded requests of Google and Amazon Bedrock as the `model` calls that somebody would write for them.

As `tests.corpus.rebuild`: in the chat form wherever it has the words, in the provider's own form where it has none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from agentloom.testing import Exchange

Body = dict[str, Any]
GREETING = [{"role": "user", "content": "hello"}]
_CONFIG = {
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "maxOutputTokens": "max_tokens",
    "maxTokens": "max_tokens",
    "stopSequences": "stop",
    "candidateCount": "n",
    "seed": "seed",
}


def google(one: Exchange, body: Body) -> tuple[str, Body, str]:
    """Name, arguments, and the tail of the address, of a generateContent request."""
    if not one.url:
        return "gemini:m", {"messages": GREETING, "api_key": "unused"}, "/models/m:generateContent"
    path = one.path or ""
    vertex = "/publishers/google/models/" in path
    _, _, rest = path.rpartition("/models/")
    name, _, verb = rest.partition(":")
    tail = f"{'/publishers/google' if vertex else ''}/models/{name}:{verb}"
    made: Body = {"messages": [*_system(body), *_contents(body.pop("contents", []))], "api_key": "unused"}
    config = body.pop("generationConfig", None)
    made |= _format(config or {}) | _config(config, "generationConfig")
    if "tools" in body:
        made["tools"] = [tool for given in body.pop("tools") for tool in _declared(given)]
    query = {key: value for key, value in one.query if key != "alt"}
    if query:
        made["extra_query"] = query
    return f"{'vertex' if vertex else 'gemini'}:{name}", made | body, tail


def _system(body: Body) -> Iterator[Body]:
    said = body.pop("systemInstruction", None)
    parts = (said or {}).get("parts") or []
    for part in parts if isinstance(parts, list) else [parts]:
        yield {"role": "system", "content": part["text"] if set(part) == {"text"} else [part]}


def _config(config: Body | None, name: str) -> Body:
    if config is None:
        return {}
    made = {_CONFIG[key]: config[key] for key in config if key in _CONFIG}
    rest = {key: value for key, value in config.items() if key not in _CONFIG}
    return made | ({name: rest} if rest or not made else {})


def _format(config: Body) -> Body:
    if config.get("responseMimeType") != "application/json" or "responseJsonSchema" not in config:
        return {}
    del config["responseMimeType"]
    schema = {"name": "answer", "schema": config.pop("responseJsonSchema")}
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


def _declared(tool: Body) -> Iterator[Body]:
    """Functions as the chat form has them; those whose parameters are in Google's own types stay in its form."""
    given: list[Body] = tool.get("functionDeclarations") or []
    if set(tool) != {"functionDeclarations"} or not all("parametersJsonSchema" in one for one in given):
        yield tool
        return
    for one in given:
        said = {("parameters" if key == "parametersJsonSchema" else key): value for key, value in one.items()}
        yield {"type": "function", "function": said}


def _contents(contents: list[Body]) -> Iterator[Body]:
    calls: list[Body] = []
    for number, content in enumerate(contents):
        parts = content.get("parts") or []
        if content.get("role") == "model":
            message = _model_turn(parts, number)
            calls = message.get("tool_calls") or []
            yield message
        elif parts and all(set(part) == {"functionResponse"} for part in parts):
            for place, part in enumerate(parts):
                yield _response(part["functionResponse"], calls[place]["id"])
        elif content.get("role") not in (None, "user", "function"):
            raise ValueError(f"the role {content.get('role')!r}, which exists in no conversation")
        else:
            yield {"role": "user", "content": _only_text(parts) or [_google_part(part) for part in parts]}


def _model_turn(parts: list[Body], number: int) -> Body:
    calls = [
        {
            "id": f"call_{number}_{place}",
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call.get("args") or {})},
        }
        for place, call in enumerate(part["functionCall"] for part in parts if "functionCall" in part)
    ]
    made: Body = {"role": "assistant", "content": _only_text(parts)} | (
        {"tool_calls": calls} if calls else {}
    )
    plain = all(
        set(part) == {"functionCall"} and set(part["functionCall"]) == {"name", "args"} for part in parts
    )
    return made if plain or made["content"] is not None else made | {"blocks": {"google": {"parts": parts}}}


def _response(said: Body, call: str) -> Body:
    response = said["response"]
    if "parts" in said:  # media beside the result
        return {"role": "tool", "tool_call_id": call, "content": [{"functionResponse": said}]}
    text = response.get("output") if set(response) == {"output"} else None
    return {
        "role": "tool",
        "tool_call_id": call,
        "content": text if isinstance(text, str) else json.dumps(response),
    }


def _only_text(parts: list[Body]) -> str | None:
    return parts[0]["text"] if len(parts) == 1 and set(parts[0]) == {"text"} else None


def _google_part(part: Body) -> Body:
    data = part.get("inlineData")
    if set(part) == {"text"}:
        return {"type": "text", "text": part["text"]}
    if data is not None and set(data) == {"mimeType", "data"}:
        url = f"data:{data['mimeType']};base64,{data['data']}"
        if data["mimeType"].startswith("image/"):
            return {"type": "image_url", "image_url": {"url": url}}
        return {"type": "file", "file": {"file_data": url}}
    return part


def converse(one: Exchange, body: Body) -> tuple[str, Body, str]:
    """Name, arguments, and the tail of the address, of a Converse request."""
    if not one.url:
        return "bedrock:m", {"messages": GREETING, "api_key": "unused"}, "/model/m/converse"
    path = one.path or ""
    name, _, verb = path.partition("/model/")[2].rpartition("/")
    messages = [made for message in body.pop("messages") for made in _bedrock_turns(message)]
    system = body.pop("system", None)
    made: Body = {"api_key": "unused"}
    if system and all(set(block) == {"text"} for block in system):
        messages = [*({"role": "system", "content": block["text"]} for block in system), *messages]
    elif system is not None:
        made["system"] = system
    made["messages"] = messages
    made |= _config(body.pop("inferenceConfig", None), "inferenceConfig")
    tools = body.pop("toolConfig", {})
    if "tools" in tools:
        made["tools"] = [_spec(tool) for tool in tools["tools"]]
    choice = tools.get("toolChoice")
    if choice:
        named = {"type": "function", "function": choice.get("tool")}
        made["tool_choice"] = {"auto": "auto", "any": "required"}.get(next(iter(choice)), named)
    made |= _text_format(body)
    return f"bedrock:{unquote(name)}", made | body, f"/model/{unquote(name)}/{verb}"


def invoke(one: Exchange, body: Body) -> tuple[str, Body, str]:
    """Name, arguments, and the tail of the address, of an InvokeModel request in Anthropic's form."""
    path = one.path or ""
    name, _, verb = path.partition("/model/")[2].rpartition("/")
    made: Body = {"api": "invoke", "api_key": "unused", "messages": body.pop("messages")}
    if isinstance(body.get("system"), str):
        made["messages"] = [{"role": "system", "content": body.pop("system")}, *made["messages"]]
    return f"bedrock:{unquote(name)}", made | body, f"/model/{unquote(name)}/{verb}"


def _text_format(body: Body) -> Body:
    output = body.get("outputConfig") or {}
    if set(output) != {"textFormat"}:
        return {}
    body.pop("outputConfig")
    asked = dict(output["textFormat"]["structure"]["jsonSchema"])
    asked["schema"] = json.loads(asked["schema"])
    return {"response_format": {"type": "json_schema", "json_schema": asked}}


def _spec(tool: Body) -> Body:
    if "toolSpec" not in tool:
        return tool
    said = dict(tool["toolSpec"])
    said["parameters"] = said.pop("inputSchema")["json"]
    return {"type": "function", "function": said}


def _bedrock_turns(message: Body) -> Iterator[Body]:
    role, blocks = message["role"], message["content"]
    kinds = [next(iter(block)) for block in blocks]
    if role == "user" and set(kinds) == {"toolResult"}:
        for block in blocks:
            yield _tool_result(block["toolResult"])
    elif role == "user":
        yield {"role": role, "content": _only_text(blocks) or [_bedrock_part(block) for block in blocks]}
    elif set(kinds) <= {"text", "toolUse"} and "text" not in kinds[1:]:
        calls = [
            {
                "id": use["toolUseId"],
                "type": "function",
                "function": {"name": use["name"], "arguments": json.dumps(use["input"])},
            }
            for use in (block["toolUse"] for block in blocks if "toolUse" in block)
        ]
        text = blocks[0]["text"] if kinds[:1] == ["text"] else None
        yield {"role": role, "content": text} | ({"tool_calls": calls} if calls else {})
    else:
        yield {"role": role, "content": None, "blocks": {"bedrock": {"content": blocks}}}


def _tool_result(result: Body) -> Body:
    made: Body = {"role": "tool", "tool_call_id": result["toolUseId"]}
    made["content"] = _only_text(result["content"]) or result["content"]
    return made | ({"is_error": result["status"] == "error"} if "status" in result else {})


def _bedrock_part(block: Body) -> Body:
    image = block.get("image")
    if set(block) == {"text"}:
        return {"type": "text", "text": block["text"]}
    if image is not None and set(image["source"]) == {"bytes"}:
        url = f"data:image/{image['format']};base64,{image['source']['bytes']}"
        return {"type": "image_url", "image_url": {"url": url}}
    return block


def normal_converse(body: Mapping[str, Any]) -> Body:
    """A request's body with the schema of its answer, which is a text of JSON, as what it says."""
    said: Any = json.loads(json.dumps(body))
    structure = said.get("outputConfig", {}).get("textFormat", {}).get("structure", {})
    schema = structure.get("jsonSchema", {})
    if isinstance(schema.get("schema"), str):
        schema["schema"] = json.loads(schema["schema"])
    return dict(said)


def normal_google(body: Mapping[str, Any]) -> Body:
    """A request's body without what Google fills in: whose the first content is; a system instruction has no
    role, and says nothing when it is empty."""
    said = dict(body)
    said["contents"] = [{"role": "user", **content} for content in said.get("contents") or []]
    if isinstance(said.get("systemInstruction"), dict):
        given = said.pop("systemInstruction").get("parts") or []
        parts = given if isinstance(given, list) else [given]  # a list of one may be written without its list
        if any(part != {"text": ""} for part in parts):
            said["systemInstruction"] = {"parts": parts}
    return said
