"""The variables of a script that one of its functions can change: those that its code names, directly or in functions,
classes and modules of the program that it names."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, cast

from agentloom.cli.script_kinds import changeable, is_own, watched
from agentloom.cli.script_library import kind_of
from agentloom.cli.script_objects import ARGUMENTS
from agentloom.runtime.places import Places

__all__ = ["Reach"]

_MOST = 500
"""How many functions are followed."""


class Reach:
    """``roots`` gives what the variables hold now, ``bind`` gives one another value."""

    def __init__(self, function: FunctionType, places: Places) -> None:
        self._places = places
        self._spaces: dict[str, tuple[dict[str, Any], dict[str, None]]] = {}
        self._cells: dict[str, dict[str, CellType]] = {}
        self._stored: set[str] = set()
        self._todo: list[FunctionType] = [function]
        seen: set[CodeType] = set()
        while self._todo and len(seen) < _MOST:
            one = self._todo.pop(0)
            if one.__code__ not in seen:
                seen.add(one.__code__)
                self._of(one)

    def roots(self, arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
        """What can be reached by name now: the arguments of a call, and the variables that are set and hold data."""
        found: dict[str, dict[str, Any]] = {ARGUMENTS: arguments}
        for root, (space, names) in self._spaces.items():
            found[root] = {name: space[name] for name in names if name in space and _is_data(space[name])}
        for root, cells in self._cells.items():
            held = {name: cell for name, cell in cells.items() if _is_set(cell)}
            found[root] = {
                name: cell.cell_contents for name, cell in held.items() if _is_data(cell.cell_contents)
            }
        return found

    def bind(self, root: str, name: str, value: Any) -> None:
        """Give a variable another value. ``LookupError`` where the program has no such place for one."""
        if root in self._cells:
            self._cells[root][name].cell_contents = value
        else:
            self._spaces[root][0][name] = value

    def _of(self, function: FunctionType) -> None:
        names = set(_names(function.__code__))
        self._stored |= set(_stored(function.__code__))
        module = str(function.__globals__.get("__name__"))
        self._variables(module, function.__globals__, names)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if not _is_set(cell) or not self._follow(cell.cell_contents, names):
                root = f"closure:{module}.{function.__qualname__}"
                self._cells.setdefault(root, {})[name] = cell

    def _variables(self, module: str, space: dict[str, Any], names: set[str]) -> None:
        root = f"module:{module}"
        known = self._spaces.setdefault(root, (space, {}))[1]
        for name in sorted(names):
            if name in known or (name not in space and hasattr(builtins, name)):
                continue
            if name not in space or not self._follow(space[name], names):
                known[name] = None
            if name in space:
                self._attributes(f"{module}.{name}", space[name])

    def _attributes(self, name: str, value: Any) -> None:
        """Attributes that the code sets on a module or an object of a library."""
        held = getattr(value, "__dict__", None)
        if type(held) is not dict or isinstance(value, FunctionType) or kind_of(value) is not None:
            return
        if isinstance(value, ModuleType):
            if is_own(value):
                return
            name = value.__name__
        elif watched(value) or changeable(value):
            return
        root = f"{'module' if isinstance(value, ModuleType) else 'object'}:{name}"
        known = self._spaces.setdefault(root, (cast("dict[str, Any]", held), {}))[1]
        known.update(dict.fromkeys(sorted(self._stored)))

    def _follow(self, value: Any, names: set[str]) -> bool:
        """Go on with a function, class or module of the program. Whether the value is none of the program's data."""
        if isinstance(value, FunctionType):
            plain = getattr(getattr(value, "__agentloom_tool__", value), "__wrapped__", value)
            is_ours = isinstance(plain, FunctionType) and self._places.name(plain.__code__) is not None
            if is_ours:
                self._todo.append(plain)
            return not is_ours
        inner = getattr(value, "__wrapped__", None) if hasattr(value, "cache_info") else None
        if isinstance(inner, FunctionType) and self._places.name(inner.__code__) is not None:
            self._todo.append(inner)
            return False
        if isinstance(value, ModuleType):
            if is_own(value) and f"module:{value.__name__}" not in self._spaces:
                self._variables(value.__name__, vars(value), names)
            return True
        if isinstance(value, type):
            for member in list(vars(value).values()):
                inner = getattr(member, "__func__", member)
                if isinstance(inner, FunctionType) and self._places.name(inner.__code__) is not None:
                    self._todo.append(inner)
            return not watched(value)
        return False


def _names(code: CodeType) -> Iterator[str]:
    """The names in a function's code and in the code inside of it."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _names(const)


def _stored(code: CodeType) -> Iterator[str]:
    """The attributes that a function's code sets."""
    for one in dis.get_instructions(code):
        if one.opname in ("STORE_ATTR", "DELETE_ATTR"):
            yield str(one.argval)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from _stored(const)


def _is_data(value: Any) -> bool:
    if isinstance(value, type):
        return watched(value)
    return not isinstance(value, ModuleType) and not _is_builtin(value)


def _is_builtin(value: Any) -> bool:
    return type(cast(object, value)).__name__ in ("builtin_function_or_method", "method")


def _is_set(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
