"""The user types that a running program declared: only these are ever restored (docs/trace-format.md, User types)."""

from __future__ import annotations

import dataclasses
import enum
import typing
from typing import Any, Literal

from agentloom.errors import ValueRefused

__all__ = ["How", "Types", "how_of", "type_name"]

How = Literal["enum", "dataclass", "model", "namedtuple", "error"]


class Types:
    """The declared types of one program, tool or call. Nothing is ever looked up outside of it."""

    def __init__(self, *known: Types) -> None:
        """An empty set of types, or one that starts with everything in ``known``."""
        self._by_name: dict[str, type] = {}
        self._hows: dict[type, How] = {}
        for types in known:
            self._by_name.update(types._by_name)
            self._hows.update(types._hows)

    def register(self, cls: type) -> None:
        """Declare ``cls`` and the types of its fields. A type of the same name replaces an earlier one (a reload).

        Raises ``ValueRefused`` when instances of ``cls`` cannot be kept exactly.
        """
        if how_of(cls) is None:
            raise ValueRefused(
                "register",
                type_name(cls),
                "not an Enum, dataclass, pydantic model, NamedTuple or exception class",
                hint="make it one of these, or convert the value to plain data before it crosses the boundary",
            )
        self.declare(cls)

    def declare(self, annotation: object) -> None:
        """Declare every type that an annotation names, through containers and fields. Others are passed over."""
        todo: list[Any] = [annotation]
        seen: list[object] = []  # kept alive, so that no id is used twice
        ids: set[int] = set()
        while todo:
            item: object = todo.pop()
            if id(item) in ids:
                continue
            ids.add(id(item))
            seen.append(item)
            if isinstance(item, type):
                todo.extend(self._add(item))
            else:
                todo.extend(_parts(item))

    def _add(self, cls: type) -> list[object]:
        how = how_of(cls)
        if how is None or cls in self._hows:
            return []
        self._hows[cls] = how
        self._by_name[type_name(cls)] = cls
        return _field_annotations(cls, how)

    def how(self, cls: type[Any]) -> How | None:
        """How instances of ``cls`` are written, or None when it was not declared."""
        return self._hows.get(cls)

    def find(self, name: str, how: How) -> type | None:
        """The declared type of that ``module:qualname`` and kind."""
        cls = self._by_name.get(name)
        return cls if cls is not None and self._hows[cls] == how else None


def type_name(cls: type) -> str:
    """``module:qualname``, the name under which a type is written."""
    return f"{cls.__module__}:{cls.__qualname__}"


def how_of(cls: type[Any]) -> How | None:
    """What kind of type ``cls`` is, or None when the format has no exact form for its instances."""
    if issubclass(cls, BaseException):
        return "error"
    if issubclass(cls, enum.Enum):
        return "enum"
    if isinstance(getattr(cls, "__pydantic_fields__", None), dict):
        return "dataclass" if dataclasses.is_dataclass(cls) else "model"
    if issubclass(cls, (str, bytes, bytearray, int, float, list, dict, set, frozenset)):
        return None
    if tuple in cls.__mro__:
        return "namedtuple" if hasattr(cls, "_fields") else None
    return "dataclass" if dataclasses.is_dataclass(cls) else None


def _parts(annotation: Any) -> list[object]:
    """What an annotation that is not a class is made of. Text that was never evaluated names nothing."""
    if isinstance(annotation, typing.TypeVar):
        return [annotation.__bound__, *annotation.__constraints__]
    if isinstance(annotation, (list, tuple)):  # the parameters of a Callable
        return list(typing.cast("list[object]", annotation))
    alias = getattr(annotation, "__value__", None)  # `type X = ...`
    return [typing.get_origin(annotation), *typing.get_args(annotation), alias]


def _field_annotations(cls: type, how: How) -> list[object]:
    if how in ("enum", "error"):
        return []
    if how == "model":
        model: Any = cls
        return [field.annotation for field in model.__pydantic_fields__.values()]
    try:
        return list(typing.get_type_hints(cls).values())
    except (NameError, TypeError, AttributeError):
        # An annotation as text that names something this module cannot see: the fields that are evaluated still count.
        return [hint for hint in vars(cls).get("__annotations__", {}).values() if not isinstance(hint, str)]
