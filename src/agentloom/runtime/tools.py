"""Tools: functions that touch the world, called normally. Outside a run a tool is just the function."""

from __future__ import annotations

import contextvars
import functools
import hashlib
import inspect
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar, cast, overload

from agentloom.errors import NotSupported
from agentloom.format.values import decode
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.changes import Change, change_of
from agentloom.runtime.contexts import put
from agentloom.runtime.fieldrules import steps_of
from agentloom.runtime.names import function_name
from agentloom.runtime.profiles import with_secrets
from agentloom.runtime.registry import TYPES, declare_annotations
from agentloom.runtime.scope import current, require
from agentloom.runtime.strays import refuse_stray
from agentloom.runtime.tool_arguments import ArgumentWatch
from agentloom.runtime.undoing import undone_by
from agentloom.runtime.work import under_way

__all__ = ["Effect", "idempotency_key", "tool", "wrap_tool"]

P = ParamSpec("P")
R = TypeVar("R")
Effect = Literal["pure", "read", "write"]
_EFFECTS = ("pure", "read", "write")
_key: contextvars.ContextVar[str | None] = contextvars.ContextVar("agentloom.idempotency_key", default=None)


def idempotency_key() -> str:
    """In the body of a tool that is declared ``idempotent``: a key of 40 hex digits for whoever performs it (a payment
    provider's ``Idempotency-Key``). The same for each attempt of the call, in each process that performs it; another
    one for every other call and in every other run.

    Outside of a run, where nothing is tried again, it is a fresh one. ``NotSupported`` in other tools.
    """
    key = _key.get()
    if key is None:
        if under_way() is not None or current() is not None:
            raise NotSupported(
                "idempotency_key() was asked for outside of a tool that is declared idempotent",
                hint="@tool(idempotent=True) says that performing a call twice with one key does it once",
            )
        return secrets.token_hex(20)
    return key


def _key_of(run: str, call: Call) -> str:
    logical = call.id.partition("~")[0]
    return hashlib.sha256(f"agentloom call/1\n{run}\n{logical}".encode()).hexdigest()[:40]


@overload
def tool(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def tool(
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    name: str | None = None,
    noted: Iterable[str] = (),
    secret: Iterable[str] = (),
    normalise: str | Mapping[str, str] | None = None,
    undo: Callable[..., object] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    name: str | None = None,
    noted: Iterable[str] = (),
    secret: Iterable[str] = (),
    normalise: str | Mapping[str, str] | None = None,
    undo: Callable[..., object] | None = None,
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a tool: inside a run each call is recorded, and on replay answered without running it.

    ``effect`` says what the tool does to the world: ``pure``, ``read`` or ``write``; ``idempotent`` that repeating a
    call is harmless. Sync tools are called, async tools awaited. Arguments and results must be values that can be
    kept exactly (``ValueRefused`` otherwise); user types in the annotations are declared.

    ``noted`` names arguments (or places in them: ``order.trace``) that may differ on replay and are then reported,
    ``secret`` those that are never written; with ``normalise="whitespace"`` (or a mapping from arguments to it) spacing
    in texts does not count. ``undo`` takes back what a call has done (``rollback``): a function, or another tool, that
    takes any of the tool's arguments by their names, and ``result``, what the call returned. ``ValueError`` for an
    argument that the function does not have.
    """

    def made(chosen: Callable[P, R]) -> Callable[P, R]:
        function_name("a tool", chosen, name)
        change = _change(chosen, noted, secret, normalise)
        if undo is not None:
            undone_by(function_name("a tool", chosen, name), chosen, undo)
        return wrap_tool(chosen, effect=effect, idempotent=idempotent, name=name, change=change)

    return made if function is None else made(function)


def _change(
    function: Callable[..., object],
    noted: Iterable[str],
    secret: Iterable[str],
    normalise: str | Mapping[str, str] | None,
) -> Change | None:
    """What a tool changes of the profile of tools: its arguments are the fields below ``args``."""
    if isinstance(normalise, Mapping):
        normalise = {
            path: how for given, how in normalise.items() for path in _places(function, "normalise", [given])
        }
    change = change_of(
        noted=_places(function, "noted", noted),
        secret=_places(function, "secret", secret),
        normalise=normalise,
    )
    return change if change.rule else None


def _places(function: Callable[..., object], what: str, names: Iterable[str]) -> list[str]:
    if isinstance(names, str) or not isinstance(cast("object", names), Iterable):
        raise TypeError(f"{what}={names!r}: give a list of arguments, such as {what}=[{names!r}]")
    parameters = inspect.signature(function).parameters
    more = [name for name, one in parameters.items() if one.kind is one.VAR_KEYWORD]
    places: list[str] = []
    for path in names:
        first = steps_of(path)[0]
        if first not in parameters and not more:
            raise ValueError(
                f"tool {function.__name__} has no argument {first!r} ({what}); it has {', '.join(parameters)}"
            )
        places.append(f"args.{path}" if first in parameters else f"args.{more[0]}.{path}")
    return places


def wrap_tool(
    function: Callable[P, R],
    *,
    effect: Effect = "write",
    idempotent: bool = False,
    name: str | None = None,
    change: Change | None = None,
    as_given: bool = False,
) -> Callable[P, R]:
    """The wrapper behind ``tool`` (see there), also for functions that are found by name. ``as_given``: the function
    gets the very arguments of the call, and not copies of them."""
    if effect not in _EFFECTS:
        raise ValueError(f"a tool's effect is one of {', '.join(_EFFECTS)}, not {effect!r}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise NotSupported(
            f"tool {function.__qualname__} is a generator",
            hint="return a list, or make each item a call of its own",
        )
    maker = _Maker(function, function_name("a tool", function, name), effect, idempotent, change)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> object:
            if current() is None:
                refuse_stray(f"tool {maker.name}")
                return await cast("Callable[P, Awaitable[object]]", function)(*args, **kwargs)
            if as_given:
                plain = cast("Callable[P, Awaitable[object]]", function)
                return await call_async(maker.spec(args, kwargs), lambda _: plain(*args, **kwargs))
            return await call_async(maker.spec(args, kwargs), maker.performs_async())

        wrapped: Callable[..., Any] = awaited
    else:

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> object:
            if current() is None:
                refuse_stray(f"tool {maker.name}")
                return function(*args, **kwargs)
            if as_given:
                return call_inline(maker.spec(args, kwargs), lambda _: function(*args, **kwargs))
            return call_inline(maker.spec(args, kwargs), maker.performs())

        wrapped = called
    setattr(wrapped, "__agentloom_tool__", maker)  # noqa: B010 - a function has no such attribute for the type checker
    return cast("Callable[P, R]", wrapped)


class _Maker:
    """Turns calls of one tool into call specs, and recorded requests back into calls."""

    __slots__ = (
        "_change", "_declared", "_function", "_names", "_signature", "_watch", "effect", "idempotent", "name",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., object],
        name: str,
        effect: Effect,
        idempotent: bool,
        change: Change | None,
    ) -> None:
        self.name = name
        self._watch = ArgumentWatch(name)
        self.effect: Effect = effect
        self.idempotent = idempotent
        self._change = change
        self._function = function
        self._signature = inspect.signature(function)
        self._declared = False
        parameters = self._signature.parameters
        simple = all(one.kind is one.POSITIONAL_OR_KEYWORD for one in parameters.values())
        self._names = tuple(parameters) if simple else ()

    @property
    def change(self) -> Change | None:
        """What the tool changes of the profile of tools."""
        return self._change

    def spec(self, args: tuple[object, ...], kwargs: dict[str, object]) -> CallSpec:
        """The call's arguments by parameter name, defaults included: a changed default is a changed call."""
        if not self._declared:
            declare_annotations(self._function)
            self._declared = True
        request: dict[str, object] = {"args": self._bound(args, kwargs)}
        return CallSpec(
            "tool", self.name, request, profile="tool/1", effect=self.effect, change=self._change,
            idempotent=self.idempotent,
        )  # fmt: skip

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
        watched = self._watch.wanted(call, arguments)
        value = self._made(arguments)
        if watched:
            self._watch.look(call, arguments)
        return value

    def perform_async(self, call: Call) -> Awaitable[object]:
        """As ``perform``, for a coroutine function."""
        arguments = _arguments(call)
        made = cast("Awaitable[object]", self._made(arguments))
        return self._looked(call, made, arguments) if self._watch.wanted(call, arguments) else made

    def _made(self, arguments: dict[str, object]) -> object:
        if self._names:
            return self._function(*[arguments[name] for name in self._names])
        bound = inspect.BoundArguments(self._signature, arguments)
        return self._function(*bound.args, **bound.kwargs)

    async def _looked(self, call: Call, made: Awaitable[object], arguments: dict[str, object]) -> object:
        value = await made
        self._watch.look(call, arguments)
        return value

    def performs(self) -> Callable[[Call], object]:
        """``perform``, with the key of the call where the tool is idempotent."""
        return (
            partial(self._perform_keyed, require(self.name).session.run_id)
            if self.idempotent
            else self.perform
        )

    def performs_async(self) -> Callable[[Call], Awaitable[object]]:
        """As ``performs``, for a coroutine function."""
        if not self.idempotent:
            return self.perform_async
        return partial(self._perform_keyed_async, require(self.name).session.run_id)

    def _perform_keyed(self, run: str, call: Call) -> object:
        token = put(_key, _key_of(run, call))
        try:
            return self.perform(call)
        finally:
            _key.reset(token)

    async def _perform_keyed_async(self, run: str, call: Call) -> object:
        token = put(_key, _key_of(run, call))
        try:
            return await self.perform_async(call)
        finally:
            _key.reset(token)


def _arguments(call: Call) -> dict[str, object]:
    if call.rule is None:
        return cast("dict[str, object]", decode(call.tree["args"], TYPES))
    recorded = cast("dict[str, object]", decode(call.tree, TYPES))
    return cast("dict[str, object]", with_secrets(call.rule, call.spec.request, recorded)["args"])
