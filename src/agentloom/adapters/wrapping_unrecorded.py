"""Methods of a wrapped object that are no runs: they work as ever. What they call for real is told by their name, and
refused on a replay.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import MethodType
from typing import Any

from agentloom.adapters.wrapping_streams import (
    Kind,
    Within,
    context_within,
    iterator_within,
    kind_of_method,
    stream_within,
)
from agentloom.api.recording_mode import left_alone_here, mode
from agentloom.errors import Diverged, NotSupported
from agentloom.runtime.scope import current
from agentloom.runtime.unrecorded import Unrecorded, entered_unrecorded

__all__ = ["called_within", "unrecorded_method"]

Again = Callable[[Any], Any]
"""Wraps an object as the one was wrapped that gave it."""


def unrecorded_method(target: Any, called: str, found: Any, instead: str, again: Again) -> Any:
    """``found``, if it is a method of ``target``'s own, with the calls that it makes as those of ``called``
    (``bot.iter()``). ``instead`` says how to record them. Another object of the same class that it gives is wrapped."""
    if not inspect.ismethod(found) or found.__self__ is not target:
        return found
    function = found.__func__
    within = functools.partial(_within, called, instead)
    kind = kind_of_method(function)
    if kind == "await":
        return MethodType(functools.wraps(function)(_awaiting(found, within)), target)
    how = _HOW.get(kind, _called)

    @functools.wraps(function)
    def made(_: Any, *args: Any, **kwargs: Any) -> Any:
        value = how(functools.partial(found, *args, **kwargs), within)
        return again(value) if type(value) is type(target) else value

    return MethodType(made, target)


def called_within(work: Callable[[], Any], called: str, instead: str) -> Any:
    """``work()``, a call of a special method, as one of ``unrecorded_method``; what is to be awaited of it too."""
    return _called(work, functools.partial(_within, called, instead))


def _awaiting(found: Callable[..., Any], within: Within) -> Callable[..., Any]:
    async def made(_: Any, *args: Any, **kwargs: Any) -> Any:
        with within():
            return await found(*args, **kwargs)

    return made


def _called(make: Callable[[], Any], within: Within) -> Any:
    with within():
        value = make()
    return _awaited(value, within) if inspect.iscoroutine(value) else value


async def _awaited(work: Any, within: Within) -> Any:
    with within():
        return await work


_HOW: dict[Kind, Callable[[Callable[[], Any], Within], Any]] = {
    "stream": stream_within,
    "enter": context_within,
    "iterate": iterator_within,
}


@contextmanager
def _within(called: str, instead: str) -> Generator[None]:
    """In a run, and where everything is left alone, there is nothing to tell."""
    chosen = "off" if current() is not None or left_alone_here() is not None else mode()
    if chosen == "off":
        yield
        return
    try:
        with entered_unrecorded(Unrecorded(called, instead, refuses=chosen == "replay")):
            yield
    except Diverged as refused:
        raise NotSupported(str(refused)) from None
