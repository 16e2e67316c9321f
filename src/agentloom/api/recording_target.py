"""What a recorded coroutine is a call of: the function, found by its name, and the arguments, read from its frame.

With both in the trace the run can be replayed in another process. Where one is missing the trace says why.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType, FrameType
from typing import Any, cast

from agentloom.errors import TargetError, ValueRefused
from agentloom.format.values import Tree, encode
from agentloom.runtime.agents import AgentFunction
from agentloom.runtime.guard import GuardPolicy
from agentloom.runtime.identity import code_identity
from agentloom.runtime.outputs_kept import NOT_KEPT, kept_output
from agentloom.runtime.places import is_library
from agentloom.runtime.redaction import hidden_name
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current

__all__ = [
    "KINDS",
    "Target",
    "as_recorded",
    "found_again",
    "found_function",
    "of_call",
    "plain",
    "plain_function",
    "target_of_block",
    "target_of_coroutine",
    "target_of_function",
    "target_of_object",
    "where_it_stands",
]

KINDS = frozenset(("function", "call", "block"))
"""What the entry point of a trace is called whose output is kept as plain data: a function with its arguments, a call
that only its program can make again, a block of code."""

GUARD: GuardPolicy = "virtual"
"""The policy of runs of code that was not written for agentloom."""


@dataclass(frozen=True, slots=True)
class Target:
    """``function``: to be called again with ``args`` and ``kwargs``; None where ``missing`` says what a replay needs.
    ``module`` and ``file`` are where the user's code is, ``qualname`` what was called."""

    name: str
    module: str
    qualname: str
    file: str | None
    function: Callable[..., Any] | None = None
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    wrapped: int = 0
    missing: str | None = None
    block: bool = False
    stock: bool = False

    def hidden(self) -> Target:
        """This one, with stars for what is secret in its name: names stand in the trace as they are, and that of a
        request comes from outside."""
        name = hidden_name(self.name)
        if name is self.name:
            return self
        return replace(self, name=name, qualname=name if self.block else self.qualname)

    def agent(self, main: Callable[..., Any], guard: str | None = None) -> AgentFunction:
        """What is run under a session: ``main``, in the place of the function."""
        policy = GUARD if guard is None else cast(GuardPolicy, guard)
        return AgentFunction(self.name, main, self.module, self.qualname, self.file, guard=policy)

    def again(self) -> AgentFunction | None:
        """What a replay runs: the function itself with its result as it is kept; None where it is not known."""
        return None if self.function is None else self.agent(plain_function(self.function))

    def code(self, agent: AgentFunction) -> dict[str, Tree]:
        """The code identity of the run."""
        code = code_identity(agent)
        entry = cast("dict[str, Tree]", code["entry"])
        if self.missing is None:
            entry["kind"] = "function"
            if self.wrapped:
                entry["wrapped"] = self.wrapped
        else:
            entry["kind"] = "block" if self.block else "call"
            entry["missing"] = self.missing
        if self.stock:
            entry["stock"] = True
        return code


def plain_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` with its result as plain data: what the output of a recorded call is compared with."""
    if inspect.iscoroutinefunction(function):

        async def awaited(*args: Any, **kwargs: Any) -> object:
            return plain(await function(*args, **kwargs))

        return awaited

    def called(*args: Any, **kwargs: Any) -> object:
        return plain(function(*args, **kwargs))

    return called


def plain(value: object) -> object:
    """``value`` as it is kept in the trace of the running run, which notes where it cannot be."""
    kept, why = kept_output(value)
    scope = current()
    if why is not None and scope is not None:
        scope.session.engine.mark("note", {NOT_KEPT: why})
    return kept


def where_it_stands(*_: object, **__: object) -> None:
    """In the place of the function of a block, which nobody calls."""
    raise RuntimeError("a block is run where it stands")


def as_recorded(agent: AgentFunction, entry: Mapping[str, Any]) -> AgentFunction:
    """``agent``, to replay a trace with this entry point: its result is taken as it was when recorded."""
    return replace(agent, function=plain_function(agent.function)) if entry.get("kind") in KINDS else agent


def found_again(entry: Mapping[str, Any], module: object) -> AgentFunction | None:
    """The function that this entry point names in ``module``, as ``as_recorded``; None where it is not there, and for
    entry points of other kinds."""
    if module is None or entry.get("kind") != "function":
        return None
    function = found_function(module, str(entry.get("qualname")), int(entry.get("wrapped") or 0))
    return None if function is None else as_recorded(AgentFunction.of(function), entry)


def of_call(call: Callable[[], object], name: str, entry: Mapping[str, Any]) -> AgentFunction:
    """What replays a trace by ``call()``, a value or something to await; the arguments in the trace are not used."""
    made = AgentFunction.of(call, name)
    kept = plain if entry.get("kind") in KINDS else _as_it_is
    if inspect.iscoroutinefunction(call) or not entry.get("stock"):

        async def awaited(*_: object, **__: object) -> object:
            value = call()
            return kept(await value if inspect.isawaitable(value) else value)

        return replace(made, function=awaited)

    def called(*_: object, **__: object) -> object:
        return kept(call())

    return replace(made, function=called)


def _as_it_is(value: object) -> object:
    return value


def target_of_coroutine(coroutine: Coroutine[Any, Any, Any], name: str | None) -> Target:
    """Describe the call that made ``coroutine``. ``TargetError`` for one that has begun."""
    code, frame = getattr(coroutine, "cr_code", None), getattr(coroutine, "cr_frame", None)
    called = str(getattr(coroutine, "__qualname__", type(coroutine).__qualname__))
    chosen = name if name is not None else called.rpartition(".")[2]
    if not isinstance(code, CodeType):
        return _elsewhere(chosen, called, f"{called} is no plain coroutine")
    if (
        not isinstance(frame, FrameType)
        or inspect.getcoroutinestate(cast(Any, coroutine)) != inspect.CORO_CREATED
    ):
        raise TargetError(
            f"the coroutine {called} has begun or ended already",
            hint="give record() the call itself: record(main())",
        )
    module = str(frame.f_globals.get("__name__", "?"))
    found = _function_called(module, called, code)
    if found is None:
        where = (
            "is defined inside a function"
            if "<locals>" in called
            else f"is not found in {module} by that name"
        )
        return _of_code(chosen, called, module, code, f"{called} {where}")
    function, wrapped = found
    args, kwargs = _arguments(code, frame.f_locals)
    described = AgentFunction.of(function)  # declares the types in its annotations
    why = _not_exact(args, kwargs, code)
    if why is not None:
        return _of_code(chosen, called, module, code, f"{called} was given {why}")
    return Target(chosen, module, called, described.file, function, args, kwargs, wrapped)


def target_of_block(name: str, given: Mapping[str, Any] | None = None) -> Target:
    """Describe a block of the user's code that runs now; ``given`` is what it was given, if anything."""
    return replace(_elsewhere(name, name, "it is a block of code"), block=True, kwargs=given or {})


def target_of_object(name: str, called: str, what: str, *, stock: bool = False) -> Target:
    """Describe a call of a method of ``what``, an object that no trace gives back."""
    why = f"{called} is called on {what}, which is not in the trace"
    return replace(_elsewhere(name, called, why), stock=stock)


def target_of_function(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], name: str
) -> Target:
    """Describe a call of a plain function, which is run where it stands."""
    module, called = str(getattr(function, "__module__", "?")), str(getattr(function, "__qualname__", name))
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return replace(_elsewhere(name, called, f"{called} is no plain function"), stock=True)
    found = _function_called(module, called, code)
    if found is None:
        why = f"{called} is not found in {module} by that name"
        return replace(_of_code(name, called, module, code, why), stock=True)
    described = AgentFunction.of(function)
    given = _not_exact(args, kwargs, code)
    if given is not None:
        return replace(_of_code(name, called, module, code, f"{called} was given {given}"), stock=True)
    return Target(name, module, called, described.file, function, args, kwargs, found[1], stock=True)


def _of_code(name: str, called: str, module: str, code: CodeType, why: str) -> Target:
    if is_library(code.co_filename):
        return _elsewhere(name, called, why)
    return Target(name, module, called, os.path.abspath(code.co_filename), missing=why)


def _elsewhere(name: str, called: str, why: str) -> Target:
    """A call into a library: what belongs to the run is the code of the user that makes it."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return Target(name, "__main__", called, None, missing=why)
    file = os.path.abspath(frame.f_code.co_filename)
    return Target(name, str(frame.f_globals.get("__name__", "?")), called, file, missing=why)


def _arguments(code: CodeType, values: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call whose frame has not begun."""
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    args = [values[name] for name in names[:count]]
    kwargs = {name: values[name] for name in names[count : count + only]}
    at = count + only
    if code.co_flags & inspect.CO_VARARGS:
        args += values[names[at]]
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kwargs |= values[names[at]]
    return tuple(args), kwargs


def _not_exact(args: tuple[Any, ...], kwargs: Mapping[str, Any], code: CodeType) -> str | None:
    names = [*code.co_varnames[: code.co_argcount], *("an argument" for _ in args[code.co_argcount :])]
    for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
        try:
            encode(value, TYPES)
        except ValueRefused as refused:
            return f"{name} ({refused.type_name}), which has no exact form in a trace"
    return None


def _function_called(module: str, qualname: str, code: CodeType) -> tuple[Callable[..., Any], int] | None:
    """The function of that name whose code is ``code``, and how many wrappers it is under."""
    if "<" in qualname:
        return None
    for depth, function in enumerate(_chain(sys.modules.get(module), qualname)):
        if getattr(function, "__code__", None) is code:
            return function, depth
    return None


def found_function(module: object, qualname: str, wrapped: int) -> Callable[..., Any] | None:
    """The function ``qualname`` of a module, under so many wrappers; None where it is not there."""
    for depth, function in enumerate(_chain(module, qualname)):
        if depth == wrapped:
            return function
    return None


def _chain(module: object, qualname: str) -> Iterator[Callable[..., Any]]:
    """What stands under the name, and what that wraps, from the outside to the inside."""
    found = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    seen: list[object] = []
    while found is not None and not any(found is one for one in seen) and len(seen) < 100:
        seen.append(found)
        if isinstance(found, AgentFunction):
            found = found.function
            continue
        if callable(found):
            yield found
        found = _inside(found)


def _inside(wrapper: object) -> object:
    function = getattr(wrapper, "function", None)
    if isinstance(function, AgentFunction):
        return function
    return getattr(wrapper, "__wrapped__", None) or getattr(wrapper, "__func__", None)
