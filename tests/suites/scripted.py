"""Replies of a model that suits any agent: it calls the tools on offer once, hands off once, and answers in the form
that was asked for. Arguments and answers are the smallest values of their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agentloom.testing import Says, Seen, Wants

__all__ = ["reply", "value_of"]

MOST_AT_ONCE = 2
"""Tools that are called side by side."""

Schema = Mapping[str, Any]


def value_of(schema: Schema, root: Schema | None = None, depth: int = 0) -> Any:
    """The smallest value of a JSON Schema, as OpenAI's, Anthropic's and Google's APIs are given them."""
    root = root or schema
    if depth > 12:
        return None
    if "$ref" in schema:
        target: Any = root
        for part in str(schema["$ref"]).removeprefix("#/").split("/"):
            target = target.get(part, {}) if part else target
        return value_of(target, root, depth + 1)
    for name in ("const", "default"):
        if schema.get(name) is not None:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return value_of(schema[name][0], root, depth + 1)
    kind = schema.get("type") or ("object" if "properties" in schema else "string")
    return _of_kind(str(kind if isinstance(kind, str) else kind[0]).lower(), schema, root, depth)


def _of_kind(kind: str, schema: Schema, root: Schema, depth: int) -> Any:
    if kind == "object":
        given = schema.get("properties") or {}
        wanted = schema.get("required") or (given if depth == 0 else ())
        return {name: value_of(given.get(name, {}), root, depth + 1) for name in wanted}
    if kind == "array":
        count = max(1, int(schema.get("minItems") or 1))
        return [value_of(schema.get("items") or {}, root, depth + 1)] * count
    if kind in ("integer", "number"):
        least = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        return int(least) if kind == "integer" else float(least)
    return {"boolean": False, "null": None}.get(kind, "Lisbon" if depth else "")


def _offered(body: Schema) -> dict[str, Schema]:
    """The tools of a request of any of the APIs: name and schema of its arguments."""
    out: dict[str, Schema] = {}
    for tool in body.get("tools") or ():
        for one in tool.get("functionDeclarations") or (tool.get("function") or tool,):
            schema = one.get("parameters") or one.get("input_schema") or one.get("parametersJsonSchema")
            if one.get("name") and (schema is not None or "functionDeclarations" in tool):
                out[one["name"]] = schema or {}
    return out


def _done(body: Schema) -> list[str]:
    """What the conversation has had called already: names, as often as they were."""
    names: list[str] = []
    for message in body.get("messages") or body.get("input") or body.get("contents") or ():
        if not isinstance(message, Mapping):
            continue
        names += [call["function"]["name"] for call in message.get("tool_calls") or ()]
        names += [message["name"]] if message.get("type") == "function_call" else []
        parts = message.get("content") if isinstance(message.get("content"), list) else message.get("parts")
        for part in parts or ():
            if part.get("type") == "tool_use":
                names.append(part["name"])
            names += [part["functionCall"]["name"]] if "functionCall" in part else []
    return names


def _form(body: Schema) -> Schema | None:
    """The schema that the answer must have."""
    chat = (body.get("response_format") or {}).get("json_schema") or {}
    places = (
        chat.get("schema"),
        ((body.get("text") or {}).get("format") or {}).get("schema"),
        ((body.get("output_config") or {}).get("format") or {}).get("schema"),
        (body.get("output_format") or {}).get("schema"),
        (body.get("generationConfig") or {}).get("responseSchema"),
        (body.get("generationConfig") or {}).get("responseJsonSchema"),
    )
    return next((one for one in places if one), None)


def reply(seen: Seen) -> Says:
    """What the model says to a request."""
    body = seen.body
    offered, done = _offered(body), _done(body)
    handed = any(name.startswith("transfer_to") for name in done)
    last = [name for name in offered if name.startswith("final_result")]
    plain = [name for name in offered if name not in last and not name.startswith("transfer_to")]
    fresh = [name for name in plain if name not in done][:MOST_AT_ONCE]
    hand_off = [name for name in offered if name.startswith("transfer_to")][:1]
    # An answer that a validator did not like is not given again where there is another.
    final = [name for name in last if name not in done][:1] or last[-1:]
    chosen = fresh or final or ([] if handed else hand_off)
    if chosen:
        wanted = [
            Wants(name, value_of(offered[name]) or {}, id=f"call_{seen.number}_{number}")
            for number, name in enumerate(chosen)
        ]
        return Says(tools=wanted)
    form = _form(body)
    if form is not None:
        return Says(json.dumps(value_of(form)))
    return Says(
        f"Answer {len(done)} to {len(str(body.get('messages') or body.get('input') or ''))} characters."
    )
