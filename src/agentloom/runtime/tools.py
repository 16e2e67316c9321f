"""Tools: functions that touch the world, called normally. Outside a run a tool is just the function."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from agentloom.errors import NotSupported
from agentloom.format.values import decode
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.registry import TYPES, declare_annotations
from agentloom.runtime.scope import current
from agentloom.runtime.strays import refuse_stray

__all__ = ["Effect", "tool", "wrap_tool"]

P = ParamSpec("P")
R = TypeVar("R")
Effect = Literal["pure", "read", "write"]
_EFFECTS = ("pure", "read", "write")


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(
    *, effect: Effect = "write", idempotent: bool = False, name: str | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    name: str | None = None,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a tool: inside a run each call is recorded, and on replay answered without running it.

    ``effect`` says what the tool does to the world: ``pure``, ``read`` or ``write``; ``idempotent`` that repeating a
    call is harmless. Sync tools are called, async tools awaited. Arguments and results must be values that can be
    kept exactly (``ValueRefused`` otherwise); user types in the annotations are declared.
    """
    if function is None:
        return lambda chosen: wrap_tool(chosen, effect=effect, idempotent=idempotent, name=name)
    return wrap_tool(function, effect=effect, idempotent=idempotent, name=name)


def wrap_tool(
    function: Callable[P, R],
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    name: str | None = None,
) -> Callable[P, R]:
    """The wrapper behind ``tool`` (see there), also for functions that are found by name."""
    if effect not in _EFFECTS:
        raise ValueError(f"a tool's effect is one of {', '.join(_EFFECTS)}, not {effect!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise NotSupported(
            f"tool {function.__qualname__} is a generator",
            hint="return a list, or make each item a call of its own",
        )
    maker = _Maker(function, name or function.__name__, effect, idempotent)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> object:
            if current() is None:
                refuse_stray(f"tool {maker.name}")
                return await cast("Callable[P, Awaitable[object]]", function)(*args, **kwargs)
            return await call_async(maker.spec(args, kwargs), maker.perform_async)

        wrapped: Callable[..., Any] = awaited
    else:

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> object:
            if current() is None:
                refuse_stray(f"tool {maker.name}")
                return function(*args, **kwargs)
            return call_inline(maker.spec(args, kwargs), maker.perform)

        wrapped = called
    setattr(wrapped, "__agentloom_tool__", maker)  # noqa: B010 - a function has no such attribute for the type checker
    return cast("Callable[P, R]", wrapped)


class _Maker:
    """Turns calls of one tool into call specs, and recorded requests back into calls."""

    __slots__ = ("_declared", "_function", "_names", "_signature", "effect", "idempotent", "name")

    def __init__(self, function: Callable[..., object], name: str, effect: Effect, idempotent: bool) -> None:
        self.name = name
        self.effect: Effect = effect
        self.idempotent = idempotent
        self._function = function
        self._signature = inspect.signature(function)
        self._declared = False
        parameters = self._signature.parameters
        simple = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters.values())
        self._names = tuple(parameters) if simple else ()

    def spec(self, args: tuple[object, ...], kwargs: dict[str, object]) -> CallSpec:
        """The call's arguments by parameter name, defaults included: a changed default is a changed call."""
        if not self._declared:
            declare_annotations(self._function)
            self._declared = True
        request: dict[str, object] = {"args": self._bound(args, kwargs)}
        return CallSpec("tool", self.name, request, profile="tool/1", effect=self.effect)

    def _bound(self, args: tuple[object, ...], kwargs: dict[str, object]) -> dict[str, object]:
        """The arguments by parameter name. Plain calls are taken apart here, ``inspect`` sees to all others."""
        names = self._names
        if names and not kwargs and len(args) == len(names):
            return dict(zip(names, args, strict=True))
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def perform(self, call: Call) -> object:
        """Run the real function with fresh copies of the recorded arguments."""
        arguments = _arguments(call)
        if self._names:
            return self._function(*[arguments[name] for name in self._names])
        bound = inspect.BoundArguments(self._signature, arguments)
        return self._function(*bound.args, **bound.kwargs)

    async def perform_async(self, call: Call) -> object:
        """As ``perform``, for a coroutine function."""
        return await cast("Awaitable[object]", self.perform(call))


def _arguments(call: Call) -> dict[str, object]:
    return cast("dict[str, object]", decode(call.tree["args"], TYPES))
