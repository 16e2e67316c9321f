"""Tools found by name: plain functions of a program become host calls without a change to its source.

A function that the program offers to a model (by the names in ``tools=``) is replaced **in place**: its code object
gives way to a stub that makes the host call, and the old code lives on in a copy. Every reference to the function (a
from-import, a dispatch table, a local, a partial) keeps pointing to the same object and so reaches the stub.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, cast

from agentloom.errors import NotSupported
from agentloom.runtime.places import Places, in_site
from agentloom.runtime.registry import TYPES
from agentloom.runtime.tool_use import AGENT, ToolEffect
from agentloom.runtime.tools import Effect
from agentloom.runtime.work import in_work

__all__ = ["Around", "Finder", "Found", "Missing", "is_stub", "swap", "tool_names"]

Around = Callable[[str, Callable[..., Any], Effect], Callable[..., Any]]
"""``around(name, plain, effect)`` gives what the stub calls; ``plain`` is the function as it was."""


@dataclass(frozen=True, slots=True)
class Found:
    """A function that is a tool from now on, or (``place``: the framework) a tool that a framework runs."""

    name: str
    place: str
    effect: ToolEffect


@dataclass(frozen=True, slots=True)
class Missing:
    """A tool that cannot be recorded, and why."""

    name: str
    why: str


def tool_names(body: Mapping[str, Any]) -> list[str]:
    """The names in a request's ``tools`` (chat completions, responses, messages) or ``functions``, in order."""
    offered: list[Any] = []
    for field in ("tools", "functions"):
        value = body.get(field)
        if isinstance(value, list):
            offered += value
    names: list[str] = []
    for entry in offered:
        if not isinstance(entry, dict):
            continue
        tool = cast("dict[str, Any]", entry)
        inner: Any = tool.get("function")
        name: Any = cast("dict[str, Any]", inner).get("name") if isinstance(inner, dict) else tool.get("name")
        if isinstance(name, str) and name not in names:
            names.append(name)
    return names


class Finder:
    """Finds and replaces tools in the program's own modules: those of ``places`` root that nobody installed.

    ``effects`` says what a tool does to the world by name; ``write`` unless it is there, and an ``agent`` is left as it
    is. The classes of the program
    (dataclasses, enums, models, exceptions) are declared with the first tool, so that their values come back exactly.
    """

    def __init__(self, places: Places, effects: Mapping[str, ToolEffect], around: Around) -> None:
        self._places = places
        self._effects = effects
        self._around = around
        self._seen: set[str] = set()
        self.found: list[Found] = []
        self.missing: list[Missing] = []

    def offer(self, names: Iterable[str]) -> None:
        """The program offers tools of these names to a model: make those that are new into host calls."""
        new = [name for name in names if name not in self._seen and self._effects.get(name) != AGENT]
        if new:
            self._declare_types()
        for name in new:
            self._seen.add(name)
            self._one(name)

    def _declare_types(self) -> None:
        for module in self._modules():
            for value in list(vars(module).values()):
                if isinstance(value, type) and value.__module__ == module.__name__:
                    TYPES.declare(value)

    def used(self, name: str, effect: ToolEffect, framework: str) -> None:
        """``framework`` runs a tool of this name, and its adapter records it."""
        self.missing = [tool for tool in self.missing if tool.name != name]
        if effect != AGENT and not any(tool.name == name for tool in self.found):
            self.found.append(Found(name, framework, effect))

    def _one(self, name: str) -> None:
        functions: list[FunctionType] = []
        reasons: list[str] = []
        for value in self._values(name):
            if getattr(type(value), "__agentloom_tools__", False):
                return  # the adapter of the framework records it where it is run
            function = _plain(value)
            if function is None:
                reasons.append(f"{_kind(value)}, not a plain function")
            elif self._places.name(function.__code__) is None:
                reasons.append(f"a function of {function.__module__}, not of the program")
            elif _running(function.__code__):
                reasons.append("the function is running now")
            elif hasattr(function, "__agentloom_tool__"):
                return
            elif function not in functions:
                functions.append(function)
        for function in functions:
            try:
                self._replace(name, function)
            except NotSupported as error:
                reasons.append(error.message)
        if not any(tool.name == name for tool in self.found):
            self.missing.append(Missing(name, reasons[0] if reasons else self._elsewhere(name)))

    def _elsewhere(self, name: str) -> str:
        """Where a tool may be that is no global of the program."""
        for module in self._modules():
            for owner in list(vars(module).values()):
                if (
                    isinstance(owner, type)
                    and owner.__module__ == module.__name__
                    and callable(getattr(owner, name, None))
                ):
                    return f"a method of {owner.__name__}, not a plain function"
        return "no function of that name"

    def _values(self, name: str) -> Iterator[object]:
        """What the program's modules hold under ``name``, as a global or as a key of a global mapping."""
        for module in self._modules():
            space = vars(module)
            if name in space:
                yield space[name]
            for value in list(space.values()):
                if type(value) is dict and name in value:
                    entry: object = cast("dict[object, object]", value)[name]
                    if callable(entry):
                        yield entry

    def _modules(self) -> Iterator[ModuleType]:
        main = sys.modules.get("__main__")
        if main is not None:
            yield main
        prefix = os.path.join(self._places.root, "")
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if module is main or not isinstance(file, str) or not os.path.abspath(file).startswith(prefix):
                continue
            if not in_site(file):
                yield module

    def _replace(self, name: str, function: FunctionType) -> None:
        effect = cast("Effect", self._effects.get(name, "write"))
        code = function.__code__
        place = f"{self._places.name(code)}:{code.co_firstlineno}"
        self._places.hide(swap(function, lambda plain: self._around(name, plain, effect)))
        self.found.append(Found(name, place, effect))


def _plain(value: object) -> FunctionType | None:
    """The Python function behind ``value``: itself, or under ``functools`` wrappers (lru_cache, partial)."""
    for _ in range(20):
        if isinstance(value, FunctionType):
            return value
        if isinstance(value, functools.partial):
            value = value.func
        elif not isinstance(value, type) and hasattr(value, "__wrapped__"):
            value = cast(Any, value).__wrapped__
        else:
            return None
    return None


def _kind(value: object) -> str:
    if inspect.ismethod(value):
        return "a bound method"
    if isinstance(value, type):
        return "a class"
    if inspect.isbuiltin(value):
        return "a built-in function"
    return f"an object of type {type(value).__name__}"


def _running(code: CodeType) -> bool:
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


_MARK = "agentloom: here goes what is to be done: "


def _as_it_is(_: BaseException) -> None:
    """An error that goes on with the traceback that it has."""


_stubs: set[CodeType] = set()


def is_stub(code: CodeType) -> bool:
    """Whether ``code`` is what ``swap`` put in a function's place."""
    return code in _stubs


def swap(function: FunctionType, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> CodeType:
    """Let ``function`` call ``make(copy)`` from now on, where ``copy`` is the function as it was. Returns the stub.

    Name, signature, defaults, source place and identity stay. What it raises goes through ``mend`` of what ``make``
    gives, where that has such an attribute. Raises ``NotSupported`` for generator functions.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise NotSupported("a generator function", hint="let the tool return a list")
    plain = _copy(function)
    target = make(plain)
    signature = inspect.signature(function)
    function.__code__ = _stub(function, plain, target)
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__agentloom_tool__ = target  # type: ignore[attr-defined]
    _stubs.add(function.__code__)
    return function.__code__


def _copy(function: FunctionType) -> FunctionType:
    copy = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = function.__annotations__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    copy.__doc__ = function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy


def _stub(function: FunctionType, plain: FunctionType, target: Callable[..., Any]) -> CodeType:
    """Code that passes everything to ``target``, with as many free variables as the function has cells for."""
    free = function.__code__.co_freevars
    is_async = inspect.iscoroutinefunction(function)
    wait = "await " if is_async else ""
    # The names stand in code that never runs: that is enough to make them free variables of the stub. Names of its own
    # begin with ``_loom_``, so that none is one of these.
    unused = [f"        if False: {name}" for name in free]
    lines = [
        f"def outer({', '.join(free)}):",
        f"    {'async ' if is_async else ''}def stub(*_loom_args, **_loom_kwargs):",
        *unused,
        *(f"        _loom_{name} = {_MARK + name!r}" for name in ("call", "plain", "work", "mend")),
        "        try:",
        "            if _loom_work() is not None:",  # in a tool: a part of its work
        f"                return {wait}_loom_plain(*_loom_args, **_loom_kwargs)",
        f"            return {wait}_loom_call(*_loom_args, **_loom_kwargs)",
        "        except BaseException as _loom_error:",
        "            try:",
        "                _loom_mend(_loom_error)",
        "            except RecursionError:",  # further out there is room for it
        "                pass",
        "            raise",  # which adds no frame: what ``mend`` has given the error as its traceback stays
    ]
    outer = cast(CodeType, compile("\n".join(lines), "<agentloom>", "exec", dont_inherit=True).co_consts[0])
    stub = next(const for const in outer.co_consts if isinstance(const, CodeType))
    old = function.__code__
    found = {"call": target, "plain": plain, "work": in_work, "mend": getattr(target, "mend", _as_it_is)}
    parts: dict[str, Any] = {_MARK + name: part for name, part in found.items()}
    return stub.replace(
        co_consts=tuple(
            parts.get(const, const) if isinstance(const, str) else const for const in stub.co_consts
        ),
        co_filename=old.co_filename,
        co_name=old.co_name,
        co_qualname=old.co_qualname,
        co_firstlineno=old.co_firstlineno,
    )
