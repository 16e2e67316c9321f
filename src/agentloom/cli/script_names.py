"""Functions, classes and modules by name: what stands for them in a trace."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, cast

__all__ = ["Unkept", "found_by_name", "name_of"]


class Unkept(Exception):
    """What became of something has no exact form; says so in words that follow "calls tool NAME, which"."""


def name_of(value: Any) -> str | None:
    """``module:qualname`` of a function or class, ``module:`` of a module; None where that does not lead to it."""
    if isinstance(value, ModuleType):
        return f"{value.__name__}:" if sys.modules.get(value.__name__) is value else None
    if not isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return None
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(module, str) or "<" in qualname:
        return None
    name = f"{module}:{qualname}"
    try:
        return name if found_by_name(name) is value else None
    except LookupError:
        return None


def found_by_name(name: str) -> Any:
    """What a name stands for. ``LookupError`` where the program does not have it. Dictionaries only: no attribute hook
    of a module runs."""
    module, _, qualname = name.partition(":")
    value: Any = sys.modules[module]
    for part in qualname.split(".") if qualname else ():
        names = _names(value)
        value = names[part] if part in names else _inherited(value, part)
        if type(value) in (staticmethod, classmethod):
            value = value.__func__
    return value


def _names(value: object) -> Mapping[str, Any]:
    try:
        return cast("Mapping[str, Any]", object.__getattribute__(value, "__dict__"))
    except AttributeError:
        return {}


def _inherited(value: Any, part: str) -> Any:
    bases: tuple[type, ...] = getattr(value, "__mro__", ())
    for base in bases[1:]:
        if part in vars(base):
            return vars(base)[part]
    raise LookupError(part)
