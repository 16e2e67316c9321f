"""``decode``: a tree to a Python value. Plain data and declared types only, whatever a hostile file says."""

from __future__ import annotations

import dataclasses
from typing import Any, cast

import orjson

from agentloom.errors import FormatError
from agentloom.format.canonical import Tree
from agentloom.format.declared import Types
from agentloom.format.encoding import TAG_LIKE
from agentloom.format.failures import decode_error
from agentloom.format.guards import is_list, is_map, tag_of
from agentloom.format.scalars import UNPACK, unpack_bytes
from agentloom.format.small import small_copy

__all__ = ["decode"]

# What a malformed payload of a tag can raise inside the decoders.
_BAD = (ValueError, TypeError, KeyError, AttributeError, ArithmeticError, LookupError, NotImplementedError)


def decode(tree: Tree, types: Types | None = None) -> Any:
    """The value of ``tree``, a fresh object each time.

    With ``types``, user types come back as declared and ``FormatError`` says what cannot come back. With None
    the result is plain data for people and tools: user types become mappings, unknown tags stay, and nothing fails.
    """
    kind = type(tree)
    if kind is not dict and kind is not list:
        return tree
    small = small_copy(tree)
    if small is not None:
        return small
    try:
        data = orjson.dumps(tree)
    except TypeError:  # deeper than orjson writes
        data = b"$"
    if b"$" not in data or (len(data) > 1 and not TAG_LIKE.search(data)):
        return orjson.loads(data)
    return _Decoder(types).decode(tree)


class _Decoder:
    def __init__(self, types: Types | None) -> None:
        self.strict = types is not None
        self.types = types or Types()

    def decode(self, tree: Any) -> Any:
        if is_list(tree):
            return [self.decode(item) for item in tree]
        if not is_map(tree):
            return tree
        tag = tag_of(tree)
        return self._tag(*tag) if tag else {key: self.decode(item) for key, item in tree.items()}

    def _tag(self, tag: str, payload: Any) -> Any:
        try:
            return self._known(tag, payload)
        except _BAD as error:
            if not self.strict:
                return {tag: payload}
            raise FormatError("value.tag", f"a {tag} that cannot be read: {error}") from error

    def _known(self, tag: str, payload: Any) -> Any:
        unpack = UNPACK.get(tag)
        if unpack is not None:
            return unpack(payload)
        if tag == "$bytes":
            return unpack_bytes(payload)
        if tag == "$bytearray":
            return bytearray(unpack_bytes(payload))
        if tag == "$map":
            return {self.decode(key): self.decode(item) for key, item in payload}
        if tag in ("$tuple", "$set", "$frozenset"):
            items = [self.decode(item) for item in _list(payload)]
            return tuple(items) if tag == "$tuple" else set(items) if tag == "$set" else frozenset(items)
        if tag == "$error":
            return (
                decode_error(self.decode, payload, self.types) if self.strict else self._plain_error(payload)
            )
        if tag == "$obj":
            return self._object(payload) if self.strict else self._plain_object(payload)
        if not self.strict:
            return {tag: payload}
        raise FormatError(
            "value.unknown", f"the tag {tag} is not known to this version", hint="upgrade agentloom"
        )

    def _object(self, payload: dict[str, Any]) -> Any:
        name, how, data = payload["type"], payload["how"], payload["data"]
        cls: Any = self.types.find(name, how)
        if cls is None:
            raise FormatError(
                "value.undeclared",
                f"the trace holds a {how} {name}, which this program did not declare",
                hint="register it, or declare it in the annotations of the tool",
            )
        if how == "enum":
            return cls(self.decode(data[0])) if type(data) is list else cls[self.decode(data)]
        if how == "namedtuple":
            if len(data) != len(cls._fields):
                raise ValueError(
                    f"{cls.__qualname__} has {len(cls._fields)} fields now, and {len(data)} were written"
                )
            return cast("type[tuple[object, ...]]", tuple).__new__(cls, [self.decode(item) for item in data])
        value = object.__new__(cls)
        if how == "dataclass":
            names = {field.name for field in dataclasses.fields(cls)}
            for name, item in data.items():
                if name not in names:
                    raise ValueError(f"{cls.__qualname__} has no field {name!r} any more")
                object.__setattr__(value, name, self.decode(item))
            return value
        # A pydantic model: the four attributes that its own __setstate__ sets. No validator runs.
        object.__setattr__(
            value, "__dict__", {key: self.decode(item) for key, item in data["fields"].items()}
        )
        object.__setattr__(value, "__pydantic_fields_set__", set(data["set"]))
        for name, kept in (("__pydantic_extra__", "extra"), ("__pydantic_private__", "private")):
            if kept in data or not _is_none_of(cls, name):
                object.__setattr__(value, name, self.decode(data.get(kept)))
        return value

    def _plain_object(self, payload: dict[str, Any]) -> Any:
        how, data = payload["how"], payload["data"]
        if how == "enum":
            return (
                f"{payload['type'].partition(':')[2]}.{data}" if type(data) is str else self.decode(data[0])
            )
        if how == "model":
            fields = cast("dict[str, Any]", self.decode(data["fields"]))
            fields.update(self.decode(data.get("extra")) or {})
            return fields
        return self.decode(data)

    def _plain_error(self, payload: dict[str, Any]) -> Any:
        return {key: self.decode(item) for key, item in payload.items()}


def _is_none_of(cls: type, name: str) -> bool:
    """Whether a class has the attribute once for all its instances, as None: a pydantic RootModel's."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), ...) is None


def _list(payload: Any) -> list[Any]:
    if is_list(payload):
        return payload
    raise ValueError("not a list")
