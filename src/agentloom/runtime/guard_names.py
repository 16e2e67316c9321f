"""Names: what stands in for a function of Python's wherever programs have it under a name already.

``from time import time`` keeps the function itself. So when the guard is installed, the globals of all loaded modules
are looked through, by identity; in the agent's own modules also defaults of parameters, closures, attributes of classes
and factories of dataclasses. Modules of the standard library are left alone, but for those listed: they measure their
own waiting for threads and sockets, which happens in real time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, CellType, FunctionType, MethodType, ModuleType
from typing import Any, cast

from agentloom.runtime.finding import STANDS_IN
from agentloom.runtime.places import is_library

__all__ = ["NAMES", "Names", "called_as", "stand_in"]

_BENEATH = {"os": "nt" if os.name == "nt" else "posix"}
"""The module of C that a module of Python's has its functions from, where it is not named as that with ``_`` before."""
_identity: Callable[[object], int] = object.__hash__
_DEEP_LIBRARY = ("sched", "timeit", "urllib.request")
"""Modules of the standard library that keep a clock, or a source of bytes, for the program that uses them."""


class _Origin:
    """Where a function is to be found: what a stand-in is bound to, so that it can be pickled, and that it is no
    function that a class would bind."""

    __slots__ = ("module",)

    def __init__(self, module: str) -> None:
        self.module = module

    def __reduce__(self) -> tuple[Any, ...]:
        return __import__("importlib").import_module, (self.module,)


def called_as(function: Any, original: Any) -> None:
    """Give ``function`` the names and the text of ``original``. Not ``functools.wraps``, which leaves a way back to the
    original on it: names are found by what they hold."""
    for attribute in ("__name__", "__qualname__", "__doc__"):
        setattr(function, attribute, getattr(original, attribute))


def stand_in(module: ModuleType, original: Any, function: Callable[..., Any]) -> Any:
    """``function`` (which takes an ignored first argument) in the form of a built-in one: with the name and text of
    ``original``, and not bound to the instances of a class that keeps it as an attribute."""
    made = cast("FunctionType", function)
    called_as(made, original)
    made.__module__ = module.__name__
    STANDS_IN.add(made.__code__.co_filename)
    return MethodType(made, _Origin(module.__name__))


class Names:
    """Pairs of an original and what stands in for it."""

    def __init__(self) -> None:
        self._pairs: dict[int, tuple[object, object]] = {}
        self._methods: dict[tuple[int, str], type] = {}
        self._stand_ins: set[int] = set()
        """Identities of what stands in for something: it holds the original, and is to go on holding it."""

    def put(self, module: ModuleType, name: str, replacement: object, original: object) -> None:
        """From now on ``module.name`` is ``replacement``, also in the module of C beneath, and so is every name that
        holds ``original``."""
        self.note(original, replacement)
        setattr(module, name, replacement)
        beneath = sys.modules.get(_BENEATH.get(module.__name__, f"_{module.__name__}"))
        if getattr(beneath, name, None) is original:
            setattr(beneath, name, replacement)

    def note(self, original: object, replacement: object) -> None:
        """Every name that holds ``original`` is to hold ``replacement``."""
        self._pairs[_identity(original)] = (original, replacement)
        self._stand_ins.add(_identity(replacement))

    def method(self, owner: type, name: str) -> None:
        """A class method of a built-in type was replaced in the type: bound ones from before are to be bound anew."""
        self._methods[_identity(owner), name] = owner

    def replacement(self, value: object) -> object:
        """What stands in for ``value``; ``value`` itself where nothing does."""
        kind = type(value)
        if kind is BuiltinFunctionType:
            bound = cast(Any, value)
            owner = self._methods.get((_identity(bound.__self__), bound.__name__))
            if owner is not None:
                return getattr(owner, bound.__name__)
        elif kind is not FunctionType and kind is not MethodType and kind is not type:
            return value
        pair = self._pairs.get(_identity(value))
        return pair[1] if pair is not None and pair[0] is value else value

    # -- modules ------------------------------------------------------------------------------------------------------

    def sweep(self) -> None:
        """Look through all loaded modules, agentloom and the standard library left out; deeper into those that are
        nobody's library."""
        for name, module in sys.modules.copy().items():
            top = name.partition(".")[0]
            found: Any = getattr(module, "__dict__", None)
            if top == "agentloom" or type(found) is not dict:
                continue
            names = cast("dict[str, Any]", found)
            if top in sys.stdlib_module_names and name != "__main__":
                if name in _DEEP_LIBRARY:
                    self._deep(name, names)
                continue
            file = names.get("__file__")
            if type(file) is str and not is_library(file):
                self._deep(name, names)
            else:
                self._mapping(names)

    def _mapping(self, names: dict[str, Any]) -> None:
        for name, value in names.copy().items():
            found = self.replacement(value)
            if found is not value:
                names[name] = found

    def _deep(self, module: str, names: dict[str, Any]) -> None:
        self._mapping(names)
        seen: set[int] = set()
        for value in list(names.values()):
            # Not getattr: objects of a program may do anything when they are asked for an attribute.
            ours = isinstance(value, type | FunctionType) or type(value).__module__.startswith("agentloom.")
            if ours and getattr(value, "__module__", None) == module:
                self._look(value, seen)

    def _look(self, value: object, seen: set[int]) -> None:
        """Into a function or a class of an own module."""
        if isinstance(value, staticmethod | classmethod):
            value = cast(Any, value).__func__
        if isinstance(value, property):
            for part in (value.fget, value.fset, value.fdel):
                if part is not None:
                    self._look(part, seen)
            return
        if _identity(value) in seen or _identity(value) in self._stand_ins:
            return
        seen.add(_identity(value))
        if isinstance(value, FunctionType):
            self._function(value, seen)
        elif isinstance(value, type):
            self._class(value, seen)
        else:
            for inner in _wrapped(value):
                self._look(inner, seen)

    def _function(self, function: FunctionType, seen: set[int]) -> None:
        if function.__defaults__:
            function.__defaults__ = tuple(self.replacement(item) for item in function.__defaults__)
        if function.__kwdefaults__:
            self._mapping(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            self._cell(cell, seen)
        for inner in _wrapped(function):
            self._look(inner, seen)

    def _cell(self, cell: CellType, seen: set[int]) -> None:
        try:
            held = cell.cell_contents
        except ValueError:
            return  # not filled yet
        found = self.replacement(held)
        if found is not held:
            cell.cell_contents = found
        elif isinstance(held, FunctionType):
            self._look(held, seen)

    def _class(self, owner: type, seen: set[int]) -> None:
        for name, value in list(vars(owner).items()):
            static = isinstance(value, staticmethod)
            inner: Any = cast(Any, value).__func__ if static else value
            found: Any = self.replacement(inner)
            if found is not inner:
                setattr(owner, name, staticmethod(found) if static else found)
            else:
                self._look(cast("object", value), seen)
        rebuild = False
        for field in _fields(owner):
            found = self.replacement(field.default_factory)
            if found is not field.default_factory:
                field.default_factory = found
                rebuild = True
        if rebuild and hasattr(owner, "model_rebuild"):
            cast(Any, owner).model_rebuild(force=True)  # pydantic keeps the factory in compiled form


def _wrapped(value: object) -> Iterator[object]:
    """What a decorated object stands for: ``functools.wraps``, an agent, a tool."""
    inner = getattr(value, "__wrapped__", None)
    if isinstance(inner, FunctionType):
        yield inner


def _fields(owner: type) -> Iterator[Any]:
    """The fields of a dataclass or a pydantic model that have a factory."""
    for name in ("__dataclass_fields__", "__pydantic_fields__"):
        fields = vars(owner).get(name)
        if type(fields) is dict:
            for field in cast("dict[str, Any]", fields).values():
                if callable(getattr(field, "default_factory", None)):
                    yield field


NAMES = Names()
