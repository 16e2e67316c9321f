"""``encode``: a Python value to a tree, captured at once, or ``ValueRefused`` with the path of what cannot be kept."""

from __future__ import annotations

import base64
import dataclasses
import enum
import functools
import re
from collections.abc import Callable, Collection
from typing import Any, cast

import orjson

from agentloom.errors import ValueRefused
from agentloom.format.canonical import EXACT, Tree, canonical
from agentloom.format.declared import Types, how_of, type_name
from agentloom.format.guards import class_of, slots_of
from agentloom.format.limits import DEPTH, INT_MAX, INT_MIN
from agentloom.format.marks import is_plain
from agentloom.format.scalars import SCALARS, pack_float, pack_int, pack_str
from agentloom.format.small import small_copy

__all__ = ["TAG_LIKE", "Path", "encode", "encode_apart", "path_of", "plain_items"]

Path = (
    tuple[Any, str] | None
)  # (path of the parent, ".name" or "[3]"), linked so that a deep value costs nothing
TAG_LIKE = re.compile(
    rb'\{"\$'
)  # only ever matches at the first key of an object: inside a string the quote is escaped
_NONE = Types()
_ORJSON_DEPTH = 254  # orjson refuses to write deeper; probed by a test


def encode(value: object, types: Types | None = None) -> Tree:
    """The tree of ``value``, sharing nothing with it: later changes of ``value`` change nothing.

    ``types`` are the user types that can be restored. Raises ``ValueRefused`` with path, type and reason for whatever
    would not come back exactly: functions, open files, subclasses of builtin types, undeclared types, cycles.
    """
    return encode_apart(value, types)[0]


def encode_apart(value: object, types: Types | None = None) -> tuple[Tree, bool, bytes | None]:
    """As ``encode``; whether the tree is its own value (nothing in it is tagged), so that decoding it gives an equal
    one; and its JSON, where that is at hand."""
    plain, text = _encode_plain(value)
    if plain is _NOT_PLAIN:
        return _Encoder(types or _NONE).encode(value, None, 0), False, None
    return cast("Tree", plain), True, text


_NOT_PLAIN: Any = object()
_REFUSED: tuple[Any, None] = (_NOT_PLAIN, None)


def _encode_plain(value: Any) -> tuple[Any, bytes | None]:
    """A value of only exact JSON types, copied, and its JSON where it was made; ``_REFUSED`` when it holds anything
    else.

    Three checks that cost microseconds where a walk in Python would cost milliseconds: orjson must accept it (no
    other types, surrogates, integers over 64 bits), it must have a mark (`marks`: Enums and subclasses, which orjson
    writes silently, have none), and what orjson reads back must be equal (tuples and NaN are not).
    """
    if value is None or value is True or value is False:
        return value, None
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind is not dict and kind is not list:
        return _REFUSED
    small = small_copy(value)
    if small is not None:
        return small, None
    try:
        data = orjson.dumps(value, option=EXACT)
    except TypeError:
        return _REFUSED
    if not is_plain(value, len(data)):
        return _REFUSED
    copy = orjson.loads(data)
    if copy != value or (b"$" in data and TAG_LIKE.search(data)):
        return _REFUSED
    if data.count(b"[") + data.count(b"{") > DEPTH and not _fits_depth(value):
        return _REFUSED
    return copy, data


def plain_items(items: list[Any]) -> tuple[list[Any], list[bytes]] | None:
    """Copies of ``items`` and the JSON of each; None when one holds anything but exact JSON types, or would nest too
    deep in a field of a request.

    For items that have a mark (``marks``): there is no value of a user's own type among them, and a subclass neither.
    """
    try:
        texts = [orjson.dumps(item, option=EXACT) for item in items]
    except TypeError:
        return None
    copies = [orjson.loads(text) for text in texts]
    if copies != items:
        return None
    for text in texts:
        if b"$" in text and TAG_LIKE.search(text):
            return None
        if text.count(b"[") + text.count(b"{") > DEPTH - 2 and not _fits_depth([items]):
            return None
    return copies, texts


def _fits_depth(value: Any) -> bool:
    """Whether ``value`` nests at most ``DEPTH`` levels: orjson still writes it inside as many lists as are left."""
    for _ in range(_ORJSON_DEPTH - DEPTH):
        value = [value]
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


def path_of(path: Path) -> str:
    """``messages[2].content`` from the linked form."""
    parts: list[str] = []
    while path is not None:
        path, part = path
        parts.append(part)
    return "".join(reversed(parts)).removeprefix(".") or "value"


def _key_part(key: object) -> str:
    if type(key) is str and key.isidentifier():
        return f".{key}"
    return (
        f"[{key!r}]"
        if type(key) in (str, int, float, bool, bytes, type(None))
        else f"[{type(key).__qualname__}]"
    )


def _undefined(item: object) -> bool:
    """Whether a private attribute of a pydantic model was never set (pydantic is not imported here)."""
    return type(item).__name__ == "PydanticUndefinedType"


class _Encoder:
    """The walk for values that are not plain. ``stack`` holds the ids of the containers around the current value."""

    def __init__(self, types: Types) -> None:
        self.types = types
        self.stack: set[int] = set()

    def encode(self, value: Any, path: Path, depth: int) -> Tree:
        kind = class_of(value)
        if value is None or kind is bool or (kind is int and INT_MIN <= value <= INT_MAX):
            return cast("Tree", value)
        if kind is str:
            return pack_str(value)
        if kind is float:
            return pack_float(value)
        if kind is int or kind in SCALARS:
            return self._scalar(value, kind, path, depth)
        if kind is bytes or kind is bytearray:
            return {f"${kind.__name__}": base64.b64encode(value).decode()}
        return self._nested(value, kind, path, depth)

    def _scalar(self, value: Any, kind: type, path: Path, depth: int) -> Tree:
        if (
            depth + (1 if kind is int else 4) > DEPTH
        ):  # a zone nests four levels: {"$datetime": {"offset": [...]}}
            raise self._refused(value, path, f"nested more than {DEPTH} levels deep")
        try:
            if kind is int:
                return pack_int(value)
            tag, pack, _ = SCALARS[kind]
            payload = pack(value)
        except ValueError as error:
            raise self._refused(value, path, str(error)) from error
        return {tag: payload}

    def _nested(self, value: Any, kind: type, path: Path, depth: int) -> Tree:
        write = self._writer(kind)
        if write is None:
            raise self._refused(value, path, self._why(kind))
        if id(value) in self.stack:
            raise self._refused(value, path, "it contains itself")
        # A tag adds up to three levels: {"$obj": {"data": [...]}}.
        if depth + (1 if kind in (dict, list) else 3) > DEPTH:
            raise self._refused(value, path, f"nested more than {DEPTH} levels deep")
        self.stack.add(id(value))
        try:
            return write(value, path, depth)
        finally:
            self.stack.discard(id(value))

    def _writer(self, kind: type[Any]) -> Callable[[Any, Path, int], Tree] | None:
        if kind is dict:
            return self._dict
        if kind is list:
            return self._items
        if kind is tuple:
            return self._tuple
        if kind is set or kind is frozenset:
            return self._set
        if issubclass(kind, BaseException):
            from agentloom.format.failures import encode_error  # mutual recursion: errors hold values

            return functools.partial(encode_error, self.encode)
        writers: dict[str | None, Callable[[Any, Path, int], Tree]] = {
            "enum": self._enum,
            "dataclass": self._dataclass,
            "model": self._model,
            "namedtuple": self._named,
        }
        return writers.get(self.types.how(kind))

    def _dict(self, value: dict[Any, Any], path: Path, depth: int) -> Tree:
        keys = value.keys()
        plain = all(type(key) is str for key in keys) and not (len(keys) == 1 and next(iter(keys))[:1] == "$")
        if plain and all(key.isascii() or type(pack_str(key)) is str for key in keys):
            return {key: self.encode(item, (path, _key_part(key)), depth + 1) for key, item in value.items()}
        if depth + 3 > DEPTH:
            raise self._refused(value, path, f"nested more than {DEPTH} levels deep")
        pairs: list[Tree] = []
        for key, item in value.items():
            part = (path, _key_part(key))
            pairs.append(
                [
                    self.encode(key, (path, f"[key {_key_part(key)[1:]}"), depth + 3),
                    self.encode(item, part, depth + 3),
                ]
            )
        return {"$map": pairs}

    def _items(self, value: Any, path: Path, depth: int) -> list[Tree]:
        return [self.encode(item, (path, f"[{index}]"), depth + 1) for index, item in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], path: Path, depth: int) -> Tree:
        return {"$tuple": self._items(value, path, depth + 1)}

    def _set(self, value: set[Any] | frozenset[Any], path: Path, depth: int) -> Tree:
        members = [self.encode(item, (path, "{}"), depth + 2) for item in value]
        return {f"${type(value).__name__}": sorted(members, key=canonical)}

    def _object(self, cls: type, how: str, data: Tree) -> Tree:
        return {"$obj": {"type": type_name(cls), "how": how, "data": data}}

    def _enum(self, value: enum.Enum, path: Path, depth: int) -> Tree:
        cls = type(value)
        if isinstance(value, enum.Flag):
            return self._object(cls, "enum", [self.encode(value.value, path, depth + 3)])
        if cls.__members__.get(value.name) is not value:
            raise self._refused(value, path, "no member of its Enum, which made it up as it was asked for it")
        return self._object(cls, "enum", pack_str(value.name))

    def _named(self, value: tuple[Any, ...], path: Path, depth: int) -> Tree:
        self._refuse_more(value, path, ())
        return self._object(cast("type", type(value)), "namedtuple", self._items(value, path, depth + 2))

    def _dataclass(self, value: Any, path: Path, depth: int) -> Tree:
        cls = class_of(value)
        self._refuse_more(value, path, {field.name for field in dataclasses.fields(value)})
        fields = {
            name: self.encode(getattr(value, name), (path, f".{name}"), depth + 3)
            for name in (field.name for field in dataclasses.fields(value))
            if hasattr(value, name)
        }
        return self._object(cls, "dataclass", fields)

    def _refuse_more(self, value: Any, path: Path, names: Collection[str]) -> None:
        """Refuse an object that holds more than its fields; what a class computes and keeps is computed again."""
        cls = class_of(value)
        held = [*getattr(value, "__dict__", {}), *(name for name in slots_of(cls) if hasattr(value, name))]
        for extra in held:
            if extra not in names and not isinstance(getattr(cls, extra, None), functools.cached_property):
                raise self._refused(value, (path, f".{extra}"), "an attribute that is not a field")

    def _model(self, value: Any, path: Path, depth: int) -> Tree:
        """A pydantic model by its four state attributes, without importing pydantic and without running validators."""
        cls = class_of(value)
        data: dict[str, Tree] = {"fields": self._dict_or_refuse(self._state(value), path, depth)}
        extra = value.__pydantic_extra__
        if extra is not None:
            data["extra"] = self.encode(extra, path, depth + 3)
        data["set"] = sorted(value.__pydantic_fields_set__)
        private: dict[str, Any] | None = value.__pydantic_private__
        if private is not None:
            kept = {name: item for name, item in private.items() if not _undefined(item)}
            data["private"] = self.encode(kept, path, depth + 3)
        return self._object(cls, "model", data)

    def _state(self, value: Any) -> dict[str, Any]:
        cls = class_of(value)
        return {
            name: item
            for name, item in value.__dict__.items()
            if not isinstance(getattr(cls, name, None), functools.cached_property)
        }

    def _dict_or_refuse(self, state: dict[str, Any], path: Path, depth: int) -> Tree:
        return {name: self.encode(item, (path, f".{name}"), depth + 4) for name, item in state.items()}

    def _why(self, kind: type) -> str:
        if how_of(kind) is not None:
            return "a type that this program did not declare"
        for base in (bool, int, float, str, bytes, list, dict, tuple, set, frozenset):
            if issubclass(kind, base):
                return f"a subclass of {base.__name__} would come back as something else"
        return "it has no exact form in a trace"

    def _refused(self, value: object, path: Path, reason: str) -> ValueRefused:
        cls = type(value)
        name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
        hint = None if how_of(cls) else "convert it to plain data before it crosses the boundary"
        return ValueRefused(path_of(path), name, reason, hint=hint)
