"""``wrap``: a framework's object whose run methods are runs. Generic: it asks what kind of method it is, not whose.

A proxy, so that the object itself stays as it was. ``isinstance``, attributes, ``repr``, equality, operators, copies
and pickles are those of the object.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import warnings
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from types import MethodType
from typing import Any, TypeVar, cast

from agentloom.adapters.wrapping_streams import (
    context_within,
    iterator_within,
    kind_of_method,
    recorded_context,
    recorded_iterator,
    recorded_stream,
    stream_within,
)
from agentloom.adapters.wrapping_unrecorded import called_within, unrecorded_method
from agentloom.api.recording import StoreLike, opened
from agentloom.api.recording_block import RecordedBlock
from agentloom.api.recording_call import record_call
from agentloom.api.recording_keep import Keep
from agentloom.api.recording_mode import left_alone_here, mode, ready, stand_by_unless_off
from agentloom.api.recording_run import RecordedRun
from agentloom.api.recording_target import target_of_object
from agentloom.api.recording_worker import Service
from agentloom.errors import NotSupported
from agentloom.format.words import kind_of
from agentloom.runtime.guard import GuardPolicy
from agentloom.runtime.left_out import NOT_SAMPLED, OFF, LeftOut, entered_left_out, left_out, left_out_here
from agentloom.runtime.recorder import RunOptions
from agentloom.runtime.scope import current
from agentloom.runtime.tool_use import ToolEffect

__all__ = ["METHODS", "wrap"]

T = TypeVar("T")

METHODS = frozenset(
    (
        "abatch", "achat", "ainvoke", "akickoff", "aquery", "arun", "astream", "astream_events", "batch", "chat",
        "invoke", "iter", "kickoff", "kickoff_async", "query", "run", "run_async", "run_stream", "run_stream_events",
        "run_sync", "stream",
    )
)  # fmt: skip
"""The methods that are runs, where an object has them and nobody names others."""

_BACKGROUND = {
    "run_streamed": "it returns at once and goes on in a task of its own: await agentloom.record(...) around the"
    " function that calls it and reads the events",
    "run_stream_sync": "it returns at once and goes on while it is read: use it in record(...)",
}
"""Methods whose end cannot be seen from outside, and what to do."""
_INSTEAD = "await agentloom.record(...) around what calls it, or name it: wrap(..., methods=(...))"

_SPECIAL = (
    "bool call contains delitem enter eq exit format ge getitem gt hash index int float iter le len lt matmul mul ne"
    " next or rmul ror setitem str sub add radd and aenter aexit aiter anext await"
).split()


def wrap(
    target: T,
    /,
    *,
    name: str | Callable[..., str] | None = None,
    methods: tuple[str, ...] | None = None,
    tags: Mapping[str, str] | Callable[..., Mapping[str, str]] | None = None,
    conversation: str | Callable[..., str | None] | None = None,
    rate: float = 1.0,
    keep: Keep = "all",
    store: StoreLike = None,
    guard: GuardPolicy | None = None,
    seed: int | None = None,
    tools: Mapping[str, ToolEffect] | None = None,
) -> T:
    """``target`` (a compiled graph, an agent, a runner class) as an object whose run methods are runs.

    Async methods run on the deterministic loop, streams too; sync ones where they stand. ``methods`` names others than
    the usual ones. The other options are those of ``instrument``. Raises ``NotSupported`` for an object without a run
    method, and for a method whose end cannot be seen.
    """
    if issubclass(_type(target), _Proxy):
        target = cast(T, _target(target))  # the options given now hold, not both
    chosen = METHODS if methods is None else frozenset(methods)
    there = sorted(one for one in chosen if _is_run(target, one, explicit=methods is not None))
    missing = [] if methods is None else [one for one in methods if one not in there]
    if not there or missing:
        said = f"has no {missing[0]}()" if missing else "has none of the methods that are runs"
        raise NotSupported(f"{kind_of(target)} {said}", hint='name them: wrap(target, methods=("answer",))')
    service = Service(name, tags, conversation, rate, keep, opened(store), guard, seed, tools)
    ready(service.store)
    stand_by_unless_off()
    return cast(
        T, _proxy_class(type(target))(target, frozenset(there), service, explicit=methods is not None)
    )


_ACTS = frozenset(("__aenter__", "__aexit__", "__anext__", "__call__", "__enter__", "__exit__", "__next__"))
"""Special methods that may well call something; the others are asked all the time."""


class _Proxy:
    """Stands for ``target``; every name but the run methods is the target's own."""

    __slots__ = ("__weakref__", "_agentloom")

    def __init__(self, target: Any, methods: frozenset[str], service: Service, *, explicit: bool) -> None:
        object.__setattr__(self, "_agentloom", (target, methods, service, explicit))

    def __getattr__(self, name: str) -> Any:
        target, methods, service, explicit = object.__getattribute__(self, "_agentloom")
        found = getattr(target, name)
        if name in methods:
            return _recorded(target, name, found, service)
        called, instead = f"{_named(target, ())}.{name}()", _BACKGROUND.get(name, _INSTEAD)
        method = unrecorded_method(
            target, called, found, instead, partial(_again, methods, service, explicit)
        )
        return _told(method, called, instead) if name in _BACKGROUND and not explicit else method

    def __getattribute__(self, name: str) -> Any:
        if name in _OWN:
            return object.__getattribute__(self, name)
        return _Proxy.__getattr__(self, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(_target(self), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_target(self), name)

    def __repr__(self) -> str:
        return repr(_target(self))

    def __dir__(self) -> list[str]:
        return dir(_target(self))

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _target(self).__reduce_ex__(protocol)


_OWN = frozenset(("__class__", "__dir__", "__reduce_ex__", "__repr__"))


_type: Callable[[object], type] = type
"""What an object really is, whatever it says."""


def _target(proxy: Any) -> Any:
    return object.__getattribute__(proxy, "_agentloom")[0]


def _class_of(proxy: Any) -> Any:
    return _target(proxy).__class__


_classes: weakref.WeakKeyDictionary[Any, type[_Proxy]] = weakref.WeakKeyDictionary()


def _proxy_class(cls: Any) -> type[_Proxy]:
    """A proxy with the special methods that instances of ``cls`` have: Python looks for these on the class."""
    found = _classes.get(cls)
    if found is None:
        made: dict[str, Any] = {
            f"__{name}__": _forwarding(f"__{name}__")
            for name in _SPECIAL
            if getattr(cls, f"__{name}__", None) is not None
        }
        made |= {"__slots__": (), "__module__": cls.__module__, "__doc__": cls.__doc__}
        made["__class__"] = property(_class_of)
        found = _classes[cls] = type(cls.__name__, (_Proxy,), made)
    return found


def _forwarding(name: str) -> Callable[..., Any]:
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        target, methods, service, _ = object.__getattribute__(self, "_agentloom")
        plain: list[Any] = [_target(arg) if issubclass(_type(arg), _Proxy) else arg for arg in args]
        method: Any = getattr(_type(target), name)
        if name in methods:
            return _recorded(target, name, MethodType(method, target), service)(*plain, **kwargs)
        work = partial(method, target, *plain, **kwargs)
        return called_within(work, f"{_named(target, ())}.{name}()", _INSTEAD) if name in _ACTS else work()

    forward.__name__ = name
    return forward


def _again(methods: frozenset[str], service: Service, explicit: bool, value: Any) -> Any:
    return _proxy_class(type(value))(value, methods, service, explicit=explicit)


def _told(found: Callable[..., Any], called: str, instead: str) -> Callable[..., Any]:
    """A method that cannot be recorded from here: it works as ever, and says so."""

    @functools.wraps(found)
    def told(*args: Any, **kwargs: Any) -> Any:
        if current() is None and left_out_here() is None and mode() != "off":
            warnings.warn(f"{called} is not recorded: {instead}", stacklevel=2)
        return found(*args, **kwargs)

    return told


def _named(target: Any, args: tuple[Any, ...]) -> str:
    """What a run is listed under: the name that the framework gives it."""
    holder = args[0] if isinstance(target, type) and args else target
    given = getattr(holder, "name", None)
    if isinstance(given, str) and given.strip():
        return given
    return target.__name__ if isinstance(target, type) else type(target).__name__


def _is_run(target: Any, name: str, *, explicit: bool) -> bool:
    if inspect.getattr_static(target, name, None) is None:
        return False
    found = getattr(target, name)
    return callable(found) and (explicit or name != "iter" or _kind(found) is not _call)


def _kind(found: Callable[..., Any]) -> Callable[[_Call], Any]:
    """How a method is called: by what it is, else by what it says that it gives."""
    kind = kind_of_method(found)
    if kind == "call":
        gives = str(getattr(inspect.unwrap(found), "__annotations__", {}).get("return", ""))
        return _enter if "AsyncContextManager[" in gives else _call
    return {"await": _await, "stream": _stream, "enter": _enter, "iterate": _iterate}[kind]


def _recorded(target: Any, method: str, found: Callable[..., Any], service: Service) -> Callable[..., Any]:
    make, kind = found, _kind(found)
    if kind is _call and method == "run_sync" and inspect.iscoroutinefunction(getattr(target, "run", None)):
        make, kind = target.run, _await_here

    @functools.wraps(found)
    def called(*args: Any, **kwargs: Any) -> Any:
        name = service.named(_named(target, args), *args, **kwargs)
        options = service.options(*args, **kwargs)
        made = functools.partial(make, *args, **kwargs)
        return kind(_Call(made, name, f"{type(target).__name__}.{method}", service, options))

    if kind is _await:
        return _as_coroutine_function(called)
    return called


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of a run method that is about to be made."""

    make: Callable[[], Any]
    name: str
    called: str
    service: Service
    options: RunOptions

    def left_out(self) -> LeftOut | None:
        """What it is a part of, if it is left alone: not sampled, in something that was not, or ``AGENTLOOM=off``."""
        if current() is not None:
            return None
        found = left_alone_here()
        if found is None and mode() == "off":
            found = LeftOut(OFF)
        if found is None and not self.service.chosen(self.options):
            found = LeftOut(NOT_SAMPLED)
        return found

    def within(self) -> Callable[[], AbstractContextManager[object]] | None:
        """What its steps are made in, if it is left alone."""
        found = self.left_out()
        return None if found is None else functools.partial(entered_left_out, found)

    def run(self, work: Any) -> RecordedRun[Any]:
        """``work`` as a run."""
        target = target_of_object(self.name, self.called, self.name)
        return RecordedRun(work, target, self.options, self.service.store, self.service.keep)

    def block(self) -> RecordedBlock:
        """A block for it."""
        target = replace(target_of_object(self.name, self.called, self.name), block=True)
        return RecordedBlock(target, self.options, self.service.store, self.service.keep)


def _as_coroutine_function(called: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(called)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        return await called(*args, **kwargs)

    return awaited


async def _left_alone(call: _Call, why: str) -> Any:
    with left_out(why):
        return await call.make()


def _await(call: _Call) -> Any:
    found = call.left_out()
    return call.run(call.make()) if found is None else _left_alone(call, found.why)


def _await_here(call: _Call) -> Any:
    """As the frameworks do it: on the loop of this thread, which keeps their connections between two calls."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            loop = asyncio.get_event_loop()
        except RuntimeError:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
    return loop.run_until_complete(_await(call))


def _call(call: _Call) -> Any:
    found = call.left_out()
    if found is not None:
        with left_out(found.why):
            return call.make()
    target = target_of_object(call.name, call.called, call.name, stock=True)
    return record_call(call.make, (), {}, target, call.options, call.service.store, call.service.keep)


def _stream(call: _Call) -> Any:
    if current() is not None:
        return call.make()
    within = call.within()
    return recorded_stream(call.make, call.run) if within is None else stream_within(call.make, within)


def _iterate(call: _Call) -> Any:
    if current() is not None:
        return call.make()
    within = call.within()
    return (
        recorded_iterator(call.make, call.block()) if within is None else iterator_within(call.make, within)
    )


def _enter(call: _Call) -> Any:
    if current() is not None:
        return call.make()
    within = call.within()
    return recorded_context(call.make, call.block()) if within is None else context_within(call.make, within)
