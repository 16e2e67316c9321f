"""Objects that can be changed in place and kept in a trace: what they hold, and how to give them other contents."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from types import ModuleType
from typing import Any, cast

from agentloom.cli.script_library import kind_of
from agentloom.errors import ValueRefused
from agentloom.format.canonical import canonical
from agentloom.format.declared import how_of
from agentloom.format.guards import class_of, slots_of
from agentloom.format.values import encode
from agentloom.runtime.places import is_library
from agentloom.runtime.registry import TYPES

__all__ = [
    "PLAIN",
    "Kept",
    "again",
    "become",
    "changeable",
    "contents",
    "filled",
    "in_order",
    "is_own",
    "kept_of",
    "parts_of",
    "watched",
]

PLAIN = frozenset((str, int, float, bool, bytes, type(None), complex))
"""What holds nothing else and cannot be changed."""

_BUILT_IN = frozenset((dict, list, set, bytearray))
_OF_MODELS = ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__", "__dict__")
"""What a pydantic model consists of; the last one last, for a class may have the others once for all."""

Kept = int | list[Any] | None
"""What of an object stays as it was. None: all. Of a list so many items at its front; of a mapping all members but
these; 0: nothing."""


def changeable(value: Any) -> bool:
    """Whether ``value`` is an object of a kind that can be changed in place, and then kept."""
    kind = class_of(value)
    return kind in _BUILT_IN or (kind not in PLAIN and how_of(kind) in ("dataclass", "model"))


def watched(value: Any) -> bool:
    """Whether ``value`` is an object that may be changed in place and has no exact form of its own: a mapping or list
    of a derived kind, an object or class of the program. Where it is known what it held, what is new can be kept."""
    kind = class_of(value)
    if kind in PLAIN or kind in _BUILT_IN or isinstance(value, (tuple, BaseException, enum.Enum)):
        return False
    if isinstance(value, (dict, list, deque)):
        return True
    if isinstance(value, type):
        return _is_own(value)
    if kind_of(value) is not None:
        return True
    held = type(getattr(value, "__dict__", None)) is dict or bool(slots_of(kind))
    return held and how_of(kind) is None and _is_own(kind)


def _is_own(cls: type[Any]) -> bool:
    return cls.__module__ in _OF_DATA or is_own(sys.modules.get(cls.__module__))


_OF_DATA = frozenset(("types", "argparse", "collections", "configparser", "optparse", "string", "subprocess"))
"""Modules of the library whose objects are data by their attributes."""


def is_own(module: ModuleType | None) -> bool:
    """Whether a module is of the program, and of no library."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and not is_library(file)


def parts_of(value: Any) -> Iterator[tuple[Any, Any]]:
    """What a value holds, each with the step that leads to it. Members of sets are not looked into."""
    kind = class_of(value)
    if kind is dict:
        yield from list(value.items())
    elif kind is list or issubclass(kind, tuple):
        yield from enumerate(list(value))
    elif kind in PLAIN or kind in _BUILT_IN:
        return
    elif (how := how_of(kind)) == "dataclass":
        for name in _fields(value):
            if hasattr(value, name):
                yield name, getattr(value, name)
    elif how == "model":
        yield from list(value.__dict__.items())
        for name in _OF_MODELS[1:3]:
            more: dict[str, Any] = getattr(value, name) or {}
            yield from list(more.items())
    elif watched(value):
        yield from _watched_parts(value)


def _base(value: Any) -> type[dict[Any, Any]]:
    """The class whose methods look into a mapping of a derived kind, past what that has of its own."""
    return OrderedDict[Any, Any] if issubclass(class_of(value), OrderedDict) else dict[Any, Any]


def _held(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", getattr(value, "__dict__", {}))


def _watched_parts(value: Any) -> Iterator[tuple[Any, Any]]:
    kind: Any = class_of(value)
    if (library := kind_of(value)) is not None:
        yield from library.parts(value)
    elif issubclass(kind, dict):
        yield from list(_base(value).items(value))
    elif issubclass(kind, (list, deque)):
        yield from enumerate(list(value))
    elif issubclass(kind, type):
        for name, part in list(_held(value).items()):
            if not name.startswith("__") and not hasattr(class_of(part), "__get__"):
                yield name, part
    else:
        yield from list(_held(value).items())
        yield from ((name, getattr(value, name)) for name in slots_of(kind) if hasattr(value, name))


def _fields(value: Any) -> list[str]:
    return [one.name for one in dataclasses.fields(value)]


def contents(value: Any) -> Any:
    """What an object holds now, to be compared by ``kept_of``."""
    kind = class_of(value)
    if kind is bytearray:
        return bytes(value)
    if kind is list or kind is set:
        return list(value)
    if kind is dict:
        return dict(value)
    if isinstance(value, (list, deque)):
        return list(cast("list[Any]", value))
    held = dict(parts_of(value))
    if watched(value):
        return held
    return (held, sorted(value.__pydantic_fields_set__)) if how_of(kind) == "model" else (held, [])


def kept_of(value: Any, before: Any) -> Kept:
    """What of an object is the very same as ``before``."""
    now = contents(value)
    if kind_of(value) is not None:
        return _others(now, before)
    if class_of(now) is bytes:
        return None if now == before else 0
    if class_of(now) is tuple:
        return None if now[1] == before[1] and _members(now[0], before[0]) == [] else 0
    if class_of(now) is dict:
        members = _members(now, before)
        return 0 if members is None else members or None
    same = 0
    for one, other in zip(now, before, strict=False):
        if one is not other:
            break
        same += 1
    if same == len(now) == len(before):
        return None
    return same if isinstance(value, (list, deque)) else 0


def _others(now: dict[Any, Any], before: dict[Any, Any]) -> Kept:
    """As ``_members`` for parts that are made when they are asked for: those count as the same where they are equal."""
    if now.keys() - before.keys() or len(now) < len(before):
        return 0
    changed = [
        step
        for step, part in now.items()
        if before[step] is not part
        and not (type(part) in PLAIN and type(part) is type(before[step]) and part == before[step])
    ]
    return changed or None


def _members(now: dict[Any, Any], before: dict[Any, Any]) -> list[Any] | None:
    """The members that are new or others. None: some are gone, or the order is another."""
    if len(now) < len(before) or any(
        one is not other and one != other for one, other in zip(now, before, strict=False)
    ):
        return None
    return [step for step, part in now.items() if step not in before or before[step] is not part]


def filled(value: Any, parts: dict[Any, Any]) -> Any:
    """An object of the kind of ``value`` that holds ``parts``."""
    kind = class_of(value)
    if kind is dict:
        return parts
    if kind is list:
        return list(parts.values())
    if kind is set or kind is bytearray:
        return cast(Any, kind)(value)
    if watched(value):  # what is new in it, for an object that is there
        return list(parts.values()) if isinstance(value, (list, deque)) else parts
    made = object.__new__(kind)
    if how_of(kind) == "dataclass":
        for name, part in parts.items():
            object.__setattr__(made, name, part)
        return made
    object.__setattr__(made, _OF_MODELS[0], set(value.__pydantic_fields_set__))
    for name in _OF_MODELS[1:3]:
        held = getattr(value, name)
        object.__setattr__(made, name, None if held is None else {step: parts[step] for step in held})
    object.__setattr__(made, _OF_MODELS[3], {step: parts[step] for step in value.__dict__})
    return made


def become(value: Any, new: Any, kept: Any = 0, *, merging: bool = False) -> None:
    """Give ``value`` the contents of ``new``, an object of the same kind, beside what stays: ``kept`` items at the
    front of a list; True: the other members of a mapping. ``merging``: what it holds and is such an object as the new
    one stays too, for other code of the program has put it there. ``LookupError`` where the kinds are different."""
    chosen = either if merging else _new
    kind = class_of(value)
    if watched(value):
        _become_watched(value, new, kept)
        return
    if kind is not type(new):
        raise LookupError(f"{kind.__qualname__}, not {type(new).__qualname__}")
    if kind is dict:
        held = {step: chosen(value.get(step), part) for step, part in new.items()}
        if kept is not True:
            value.clear()
        value.update(held)
    elif kind is list:
        front = int(kept)
        old = value[front:]
        value[front:] = [chosen(old[at] if at < len(old) else None, part) for at, part in enumerate(new)]
    elif kind is bytearray:
        value[:] = new
    elif kind is set:
        members = list(new)
        value.clear()
        value.update(members)
    elif how_of(kind) == "dataclass":
        for name in _fields(value):
            if hasattr(new, name):
                object.__setattr__(value, name, getattr(new, name))
            elif hasattr(value, name):
                object.__delattr__(value, name)
    else:
        for name in _OF_MODELS:
            object.__setattr__(value, name, getattr(new, name))


def _become_watched(value: Any, new: Any, kept: Any) -> None:
    kind: Any = class_of(value)
    if (library := kind_of(value)) is not None:
        library.put(value, new)
        return
    if issubclass(kind, (list, deque)):
        if class_of(new) is not list:
            raise LookupError(class_of(new).__qualname__)
        items = [*list(value)[: int(kept)], *new]
        value.clear()
        value.extend(items)
        return
    if class_of(new) is not dict:
        raise LookupError(class_of(new).__qualname__)
    if issubclass(kind, dict):
        base = _base(value)
        if kept is not True:
            base.clear(value)
        base.update(value, new)
    elif issubclass(kind, type):
        for name, part in new.items():
            setattr(value, name, part)
    else:
        slots = slots_of(kind)
        if kept is not True:
            _held(value).clear()
            for name in slots:
                if name not in new and hasattr(value, name):
                    object.__delattr__(value, name)
        _held(value).update({name: part for name, part in new.items() if name not in slots})
        for name in slots:
            if name in new:
                object.__setattr__(value, name, new[name])


def _new(_old: Any, new: Any) -> Any:
    return new


def either(old: Any, new: Any) -> Any:
    """``old`` where it is such an object as ``new``, else ``new``."""
    if old is new or type(old) is not type(new) or type(new) in PLAIN:
        return new
    try:
        return old if canonical(encode(old, TYPES)) == canonical(encode(new, TYPES)) else new
    except ValueRefused:
        return new


def again(value: Any, parts: list[Any]) -> Any:
    """A tuple of the kind of ``value`` that holds ``parts``; any other value as it is."""
    if not issubclass(class_of(value), tuple):
        return value
    if all(one is other for one, other in zip(value, parts, strict=True)):
        return value
    return cast(Any, tuple).__new__(class_of(value), parts)


def in_order(value: Any) -> None:
    """Give a set the order that it will have when it is read from the trace."""
    if class_of(value) is not set or len(value) < 2:
        return
    whole: set[Any] = value
    try:
        members = sorted(whole, key=lambda one: canonical(encode(one, TYPES)))
    except ValueRefused:
        return  # the whole value will be refused
    whole.clear()
    whole.update(members)
