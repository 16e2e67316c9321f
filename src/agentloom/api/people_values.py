"""What a person may answer: choices and schemas, checked where the answer is given and again where it is taken."""

from __future__ import annotations

import dataclasses
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import unquote

from agentloom.errors import NotSupported
from agentloom.runtime.asks import OpenAsk
from agentloom.runtime.plain_json import read_json
from agentloom.runtime.registry import TYPES

__all__ = ["Reader", "as_json", "bare", "members", "problems_of", "schema_of", "value_of_text", "yes_or_no"]

Problem = dict[str, str]
Reader = Callable[[object], object]
"""Makes of what was answered a value of the type that was asked for; raises ``ValueError``."""

_SIMPLE: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
_TYPES: dict[str, tuple[type, ...]] = {
    "boolean": (bool,), "integer": (int,), "number": (int, float), "string": (str,), "null": (type(None),)
}  # fmt: skip
_WORDS = frozenset(("title", "description", "examples", "default", "$comment", "deprecated"))
_NAMED = frozenset(("properties", "$defs", "definitions", "patternProperties"))
_YES = frozenset(("yes", "y", "true", "approve", "approved", "ok"))
_NO = frozenset(("no", "n", "false", "deny", "denied", "reject", "rejected"))
_MOST = 8


# -- what is asked for -----------------------------------------------------------------------------------------------


def schema_of(schema: object) -> tuple[dict[str, Any], Reader | None]:
    """The JSON Schema of ``schema=`` (a JSON Schema, or a type), and what makes values of the type. ``TypeError`` for
    what is neither, ``ValueError`` for a schema that is wrong, ``NotSupported`` where a package is missing."""
    if isinstance(schema, Mapping):
        given = dict(cast("Mapping[str, Any]", schema))
        _check(given)
        return given, None
    if schema in _SIMPLE:
        return {"type": _SIMPLE[schema]}, _float if schema is float else None
    pydantic = _module("pydantic", f"schema={getattr(schema, '__name__', schema)}")
    TYPES.declare(schema)
    try:
        adapter = pydantic.TypeAdapter(schema)
        made = cast("dict[str, Any]", adapter.json_schema())
    except (
        pydantic.PydanticSchemaGenerationError,
        pydantic.PydanticInvalidForJsonSchema,
        pydantic.PydanticUserError,
    ) as error:
        reason = str(error).splitlines()[0]
        raise TypeError(f"schema={schema!r} is no type that somebody could answer with: {reason}") from None

    def read(value: object) -> object:
        return adapter.validate_json(json.dumps(value))

    return made, read


def _float(value: object) -> float:
    return float(cast(float, value))


def bare(schema: Any, *, named: bool = False) -> Any:
    """A schema without the words about it: what has to be the same for an answer to be one."""
    if isinstance(schema, Mapping):
        items = cast("Mapping[str, Any]", schema).items()
        return {
            word: bare(one, named=not named and word in _NAMED)
            for word, one in items
            if named or word not in _WORDS
        }
    return [bare(one) for one in _list(schema)] if isinstance(schema, list) else schema


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value)


def _is_simple(schema: Mapping[str, Any]) -> bool:
    return (
        isinstance(schema.get("type"), str)
        and schema["type"] in _TYPES
        and not set(schema) - _WORDS - {"type"}
    )


def _check(schema: Mapping[str, Any]) -> None:
    if not _is_simple(schema):
        jsonschema = _module("jsonschema", "a JSON Schema")
        checker = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        try:
            checker.check_schema(schema)
        except jsonschema.SchemaError as error:
            raise ValueError(f"schema= is no JSON Schema: {error.message}") from None
        for place in _references(schema):
            if not place.startswith("#"):
                raise ValueError(
                    f"schema= refers to {place!r}: references are to its own definitions (#/$defs/...)"
                )
            if place.startswith("#/") and not _leads_somewhere(schema, place):
                raise ValueError(f"schema= refers to {place!r}, which it does not hold")


def _leads_somewhere(schema: Any, pointer: str) -> bool:
    """Whether a JSON pointer (RFC 6901) names a part of the schema."""
    found: Any = schema
    for step in pointer.removeprefix("#/").split("/"):
        name = unquote(step).replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name) < len(_list(found)):
            found = _list(found)[int(name)]
        elif isinstance(found, Mapping) and name in found:
            found = cast("Mapping[str, Any]", found)[name]
        else:
            return False
    return True


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for word, one in cast("Mapping[str, Any]", schema).items():
            if word in ("$ref", "$dynamicRef") and isinstance(one, str):
                yield one
            yield from _references(one)
    elif isinstance(schema, list):
        for one in _list(schema):
            yield from _references(one)


def _module(name: str, what: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise NotSupported(
            f"{what} needs the package {name}", hint="pip install 'agentloom-runtime[outputs]'"
        ) from error


# -- what was answered -----------------------------------------------------------------------------------------------


def problems_of(
    value: object, *, choices: Sequence[object] | None = None, schema: Mapping[str, Any] | None = None
) -> list[Problem]:
    """What is wrong with an answer: nothing where it is one of ``choices`` and of ``schema``."""
    if choices is not None and not any(_same(value, one) for one in choices):
        listed = ", ".join(json.dumps(one, ensure_ascii=False, default=repr) for one in choices)
        return [{"where": "", "what": f"it is none of the choices: {listed}", "got": _shown(value)}]
    if schema is None:
        return []
    try:
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        return [{"where": "", "what": f"it is no JSON: {error}", "got": _shown(value)}]
    if _is_simple(schema):
        kind = schema["type"]
        fits = isinstance(plain, _TYPES[kind]) and (kind == "boolean" or type(plain) is not bool)
        return [] if fits else [{"where": "", "what": f"it is not of type {kind}", "got": _shown(plain)}]
    jsonschema = _module("jsonschema", "a JSON Schema")
    checker = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    # An empty registry: a reference to an address is an error, never a request.
    validator = checker(schema, registry=_module("referencing", "a JSON Schema").Registry())
    try:
        found = sorted(
            validator.iter_errors(plain), key=lambda one: [str(step) for step in one.absolute_path]
        )
    except _module("referencing", "a JSON Schema").exceptions.Unresolvable as error:
        raise ValueError(f"the schema refers to {error.ref!r}, which it does not hold") from None
    return [{"where": _where(one.absolute_path), "what": str(one.message)[:240]} for one in found[:_MOST]]


def _same(value: object, choice: object) -> bool:
    """Equal, and of the same type all through: 1 is not True."""
    return json.dumps(value, sort_keys=True, default=repr) == json.dumps(choice, sort_keys=True, default=repr)


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 80 else text[:77] + "..."


def _where(place: Any) -> str:
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def as_json(value: object) -> object:
    """A model or a dataclass as the JSON that a schema is of; anything else as it is."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return value


def members(value: object) -> dict[str, Any]:
    """The members of a mapping, a dict of its own; of anything else none."""
    return dict(cast("dict[str, Any]", value)) if isinstance(value, dict) else {}


def yes_or_no(value: object) -> bool | None:
    """Whether a value says yes; None where it says neither."""
    if isinstance(value, bool):
        return value
    word = value.strip().casefold() if isinstance(value, str) else ""
    return True if word in _YES else False if word in _NO else None


def value_of_text(ask: OpenAsk, text: str) -> object:
    """What a line that somebody typed means as an answer to ``ask``: one of its choices, JSON where its schema is of
    something else than text, else the text itself. What fits nothing comes back as it is, to be refused."""
    text = text.strip()
    if ask.in_doubt or ask.approval is not None:
        return text if (word := yes_or_no(text)) is None else word
    if ask.choices is not None:
        spelt = [one for one in ask.choices if str(one) == text or _shown(one) == text]
        found = spelt or [one for one in ask.choices if str(one).casefold() == text.casefold()]
        return found[0] if len(found) == 1 else text
    if ask.schema is None or ask.schema.get("type") == "string":
        return text
    if ask.schema.get("type") == "boolean" and (word := yes_or_no(text)) is not None:
        return word
    try:
        value = read_json(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, float) and repr(value) != text and not problems_of(text, schema=ask.schema):
        return text  # a decimal, say: as a float it would be another number
    return value
