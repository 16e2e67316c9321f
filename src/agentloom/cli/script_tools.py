"""Tools of a script: what happens at the place of a function that was found by name."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import os
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from agentloom.errors import ValueRefused
from agentloom.runtime.contexts import put
from agentloom.runtime.refuse import Effect, Effects
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current
from agentloom.runtime.strays import stray
from agentloom.runtime.toolfind import Around
from agentloom.runtime.tools import Effect as ToolEffect
from agentloom.runtime.tools import wrap_tool
from agentloom.runtime.work import Work, doing

__all__ = ["Printed", "around"]

Emit = Callable[[str, str], None]
"""Takes a stream's name and a text that a tool printed to it."""

_ATTRIBUTE = "agentloom_printed"


@dataclass(frozen=True, slots=True)
class Printed:
    """A tool's result together with what the tool printed: ``[[stream, text], ...]``."""

    value: Any
    printed: list[list[str]]


TYPES.register(Printed)


def during(name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """``plain`` with what it prints handed on: in a ``Printed``, or on the exception that it raises."""
    if inspect.iscoroutinefunction(plain):

        @functools.wraps(plain)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with doing(Work(f"tool {name}", keep=True)) as work:
                try:
                    value = await plain(*args, **kwargs)
                except Exception as error:
                    _attach(error, work)
                    raise
            return _given(value, work)

        return awaited

    @functools.wraps(plain)
    def called(*args: Any, **kwargs: Any) -> Any:
        with doing(Work(f"tool {name}", keep=True)) as work:
            try:
                value = plain(*args, **kwargs)
            except Exception as error:
                _attach(error, work)
                raise
        return _given(value, work)

    return called


def _attach(error: Exception, work: Work) -> None:
    if work.printed:
        setattr(error, _ATTRIBUTE, [list(item) for item in work.printed])


def _given(value: Any, work: Work) -> Any:
    call = _under_way.get()
    if call is not None:
        call.value, call.printed = value, [list(item) for item in work.printed]
        call.performed = True
    return _with_printed(value, work)


def _with_printed(value: Any, work: Work) -> Any:
    return Printed(value, [list(item) for item in work.printed]) if work.printed else value


def around(effects: Effects, emit: Emit) -> Around:
    """What stands in a found function's place. ``emit`` takes what a tool printed, once its outcome is there.

    A call whose arguments cannot be recorded goes to ``effects``: a recorder notes it and the function runs as
    plain code; a replayer refuses it.
    """

    def make(name: str, plain: Callable[..., Any], effect: ToolEffect) -> Callable[..., Any]:
        recorded: Callable[..., Any] = wrap_tool(during(name, plain), effect=effect, name=name)
        if inspect.iscoroutinefunction(plain):

            async def awaited(*args: Any, **kwargs: Any) -> Any:
                if stray() is not None:
                    effects.attempt(_in_thread(name, plain))
                    return await plain(*args, **kwargs)
                with _handed_on(name, effects, emit) as call:
                    call.value = await recorded(*args, **kwargs)
                return await plain(*args, **kwargs) if call.passed else call.value

            return awaited

        def called(*args: Any, **kwargs: Any) -> Any:
            if stray() is not None:
                effects.attempt(_in_thread(name, plain))
                return plain(*args, **kwargs)
            with _handed_on(name, effects, emit) as call:
                call.value = recorded(*args, **kwargs)
            return plain(*args, **kwargs) if call.passed else call.value

        return called

    return make


@dataclass(slots=True)
class _Call:
    """``passed``: it is to run as plain code; ``performed``: it was, and returned ``value``."""

    value: Any = None
    passed: bool = False
    performed: bool = False
    printed: list[list[str]] = field(default_factory=list[list[str]])


_under_way: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("agentloom.toolcall", default=None)


@contextlib.contextmanager
def _handed_on(name: str, effects: Effects, emit: Emit) -> Generator[_Call]:
    """Around one recorded call: takes what was printed off its value or error; lets a call that cannot be recorded
    pass to the plain function (``passed``) unless ``effects`` refuses. Where it is the result that cannot be recorded,
    the program gets it as it is, unless ``effects`` refuses."""
    call, before = _Call(), _calls()
    token = put(_under_way, call)
    try:
        yield call
    except ValueRefused as refused:
        made = _calls() != before
        if made and not call.performed and not refused.path.startswith("result"):
            raise  # out of the tool itself
        effects.attempt(_unrecorded(name, refused))
        call.passed = not made
        _emit(call.printed, emit)
    except Exception as error:
        _emit(error.__dict__.pop(_ATTRIBUTE, []), emit)
        raise
    finally:
        _under_way.reset(token)
    if isinstance(call.value, Printed):
        _emit(call.value.printed, emit)
        call.value = call.value.value


def _in_thread(name: str, plain: Callable[..., Any]) -> Effect:
    """A thread of the program has no place in the recorded order: the call passes as plain code, or is refused."""
    code = plain.__code__
    where = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno} {plain.__name__}"
    return Effect("tool", f"calls tool {name} in a thread", where)


def _unrecorded(name: str, refused: ValueRefused) -> Effect:
    scope = current()
    where = "?" if scope is None else scope.session.engine.places.caller()
    return Effect("tool", f"tool {name}: {refused.path} is {refused.type_name}: {refused.reason}", where)


def _calls() -> int:
    scope = current()
    return 0 if scope is None else scope.session.engine.calls


def _emit(printed: list[list[str]], emit: Emit) -> None:
    for stream, text in printed:
        emit(stream, text)
