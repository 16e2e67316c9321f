"""What a tool takes, as plain data: names and types of its parameters. Descriptions are no part of it.

An approval holds for a tool as it was when somebody looked at the call: with other types the same arguments may mean
something else.
"""

from __future__ import annotations

import enum
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, cast

from agentloom.errors import ValueRefused
from agentloom.format.canonical import Tree, canonical
from agentloom.format.values import encode
from agentloom.runtime.registry import TYPES

__all__ = ["schema_of_tool"]

_DEPTH = 6
_NONE = type(None)
_HOLD_MORE = (tuple, list, dict, set, frozenset)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def schema_of_tool(function: Callable[..., object]) -> dict[str, Tree]:
    """Parameters by name: ``type``, and ``optional`` or ``kind`` where it is not a plain one that must be given."""
    try:
        hints = typing.get_type_hints(function)
    except (NameError, TypeError, AttributeError):
        hints = dict(inspect.get_annotations(function))  # as they are written
    made: dict[str, Tree] = {}
    for name, one in inspect.signature(function).parameters.items():
        facts: dict[str, Tree] = {"type": _type(hints.get(name, Any), ())}
        if one.default is not one.empty:
            facts["optional"] = True
        if one.kind is not one.POSITIONAL_OR_KEYWORD:
            facts["kind"] = one.kind.description
        made[name] = facts
    return made


def _type(annotation: Any, seen: tuple[Any, ...]) -> Tree:
    """A type as plain data: classes of fields with their fields."""
    if annotation in (None, _NONE):
        return "None"
    if annotation is Any:
        return "Any"
    if isinstance(annotation, str):
        return annotation
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _type(typing.get_args(annotation)[0], seen)
    if origin is typing.Literal:
        return {"literal": [_constant(one) for one in typing.get_args(annotation)]}
    if origin in (typing.Union, types.UnionType):
        return {"any of": [_type(one, seen) for one in typing.get_args(annotation)]}
    if origin is not None:
        items: list[Tree] = [
            "..."
            if one is ...
            else _type(one, seen)
            if not isinstance(one, list)
            else repr(cast(object, one))
            for one in typing.get_args(annotation)
        ]
        return {"of": _name(origin), "items": items}
    if not isinstance(annotation, type):
        return _constant(annotation)
    cls = cast("type[Any]", annotation)
    if cls in seen or len(seen) >= _DEPTH:
        return _name(cls)
    if issubclass(cls, enum.Enum):
        return {"type": _name(cls), "members": {one.name: _constant(one.value) for one in cls}}
    fields = _fields(cls)
    if fields is None:
        return _name(cls)
    within = (*seen, cls)
    return {"type": _name(cls), "fields": {name: _type(one, within) for name, one in fields.items()}}


def _fields(given: type[Any]) -> Mapping[str, Any] | None:
    """Fields with their types: of a dataclass, a TypedDict, a NamedTuple, a pydantic model; None for other classes."""
    models: object = getattr(given, "model_fields", None)
    if isinstance(models, dict):
        named = cast("dict[str, Any]", models)
        return {name: getattr(one, "annotation", Any) for name, one in named.items()}
    marks = ("_fields", "__dataclass_fields__", "__total__")  # NamedTuple, dataclass, TypedDict
    if not any(hasattr(given, mark) for mark in marks):
        return None
    try:
        return typing.get_type_hints(given)
    except (NameError, TypeError, AttributeError):
        return dict(inspect.get_annotations(given))


def _constant(value: object) -> str:
    """A value as text that is the same in each process: sets have an order, and nothing has an address."""
    if type(value) in _HOLD_MORE:
        try:
            return canonical(encode(value, TYPES)).decode()
        except ValueRefused:
            pass  # it holds others than plain values
    return _ADDRESS.sub("", repr(value))


def _name(cls: Any) -> str:
    module, name = getattr(cls, "__module__", ""), getattr(cls, "__qualname__", None)
    if name is None:
        return repr(cls)
    return name if module == "builtins" else f"{module}.{name}"
