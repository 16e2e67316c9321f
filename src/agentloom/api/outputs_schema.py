"""JSON Schemas as models are asked with them: from what pydantic writes to what providers take.

The common ground of the providers that hold an answer to a schema: every object is closed and all of its fields are
required (a field with a default is then always written), no ``oneOf``, no ``const``, no ``$ref`` with other words
beside it, and limits (``minimum``, ``pattern``) only said in the description, for Anthropic and fine-tuned models of
OpenAI refuse them. The answer is checked by the type itself, limits and all. Titles and defaults are left out: they
cost tokens and change with versions of pydantic, and a request is compared on replay.

Sources: structured outputs of OpenAI ("supported schemas") and of Anthropic (``output_config.format``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

__all__ = ["closed", "is_strict", "root_of"]

_Schema = dict[str, Any]

_DROPPED = frozenset(
    ["title", "default", "examples", "discriminator", "deprecated", "readOnly", "writeOnly", "$schema", "$id"]
)
_FORMATS = frozenset(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"])
_LIMITS = (
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength pattern minItems maxItems"
    " uniqueItems minProperties maxProperties"
).split()
_BELOW = ("items", "additionalProperties", "not", "contains", "propertyNames")
_BELOW_MANY = ("anyOf", "allOf", "prefixItems")
_BELOW_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_NOT_STRICT = frozenset(
    ["allOf", "not", "prefixItems", "patternProperties", "oneOf", "if", "then", "else", "contains", "propertyNames",
     "dependentRequired", "dependentSchemas", "unevaluatedProperties"]
)  # fmt: skip


def closed(schema: Mapping[str, Any]) -> _Schema:
    """``schema`` (of a Python type, as pydantic writes it) as providers take it; the original is not touched."""
    made = _closed(schema, schema, ())
    if "$defs" in made:
        kept = _reached(made, made["$defs"])
        made["$defs"] = {name: one for name, one in made["$defs"].items() if name in kept}
        if not kept:
            del made["$defs"]
    return made


def _reached(schema: _Schema, definitions: Mapping[str, Any]) -> set[str]:
    """The definitions that the schema still refers to."""
    found: set[str] = set()
    left: list[Mapping[str, Any]] = [{word: value for word, value in schema.items() if word != "$defs"}]
    while left:
        for node in _nodes(left.pop()):
            name = str(node.get("$ref", "")).removeprefix("#/$defs/")
            if name in definitions and name not in found:
                found.add(name)
                left.append(definitions[name])
    return found


def root_of(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the root of a schema says, also where it is but a reference."""
    ref = schema.get("$ref")
    return schema if ref is None else _resolved(schema, str(ref))


def _closed(node: Mapping[str, Any], root: Mapping[str, Any], within: tuple[str, ...]) -> _Schema:
    kept = {word: value for word, value in node.items() if word not in _DROPPED}
    ref = kept.get("$ref")
    if isinstance(ref, str) and (len(kept) > 1 or node is root):
        if ref in within:
            return {"$ref": ref}
        beside = {word: value for word, value in kept.items() if word != "$ref"}
        return _closed({**_resolved(root, ref), **beside}, root, (*within, ref))
    if len(kept.get("allOf", ())) == 1:
        only = kept.pop("allOf")[0]
        return _closed({**only, **kept}, root, within)
    if "oneOf" in kept:
        kept["anyOf"] = kept.pop("oneOf")
    if "const" in kept:
        kept["enum"] = [kept.pop("const")]
    if kept.get("format") not in _FORMATS:
        kept.pop("format", None)
    _tell_limits(kept)
    for word in _BELOW:
        if isinstance(kept.get(word), Mapping):
            kept[word] = _closed(kept[word], root, within)
    for word in _BELOW_MANY:
        if word in kept:
            kept[word] = [_closed(one, root, within) for one in kept[word]]
    for word in _BELOW_NAMED:
        if word in kept:
            kept[word] = {name: _closed(one, root, within) for name, one in kept[word].items()}
    if "properties" in kept:
        if not isinstance(kept.get("additionalProperties"), Mapping):
            kept["additionalProperties"] = False
        kept["required"] = list(kept["properties"])
    return kept


def _tell_limits(node: _Schema) -> None:
    limits = [f"{word}: {node.pop(word)}" for word in _LIMITS if word in node]
    if limits:
        told = f"({', '.join(limits)})"
        node["description"] = f"{node['description']} {told}" if node.get("description") else told


def _resolved(root: Mapping[str, Any], ref: str) -> Mapping[str, Any]:
    found: Any = root
    for part in ref.removeprefix("#/").split("/"):
        found = found[part.replace("~1", "/").replace("~0", "~")]
    return cast("Mapping[str, Any]", found)


def is_strict(schema: object) -> bool:
    """Whether a provider can hold an answer to the schema word by word (OpenAI's ``strict``)."""
    return all(_fits(node) for node in _nodes(schema))


def _fits(node: Mapping[str, Any]) -> bool:
    if node.keys() & _NOT_STRICT or ("$ref" in node and len(node) > 1):
        return False
    if node.get("type") != "object" and "properties" not in node:
        return bool(node)  # {}: anything
    fields = cast("Mapping[str, Any]", node.get("properties") or {})
    return node.get("additionalProperties") is False and set(node.get("required") or ()) == set(fields)


def _nodes(schema: object) -> Iterator[Mapping[str, Any]]:
    if not isinstance(schema, Mapping):
        return
    node = cast("Mapping[str, Any]", schema)
    yield node
    for word in _BELOW:
        yield from _nodes(node.get(word))
    for word in (*_BELOW_MANY, "oneOf"):
        for one in cast("list[object]", node.get(word) or []):
            yield from _nodes(one)
    for word in _BELOW_NAMED:
        for one in cast("Mapping[str, object]", node.get(word) or {}).values():
            yield from _nodes(one)
