"""The work of a tool of a script, while it is recorded: with what it prints and changes handed on to its outcome."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, cast

from agentloom.cli.script_objects import ARGUMENTS, Before, Changes, place_of
from agentloom.cli.script_reach import Reach
from agentloom.errors import ValueRefused
from agentloom.format.values import encode
from agentloom.runtime.places import Places
from agentloom.runtime.registry import TYPES
from agentloom.runtime.work import Work, doing

__all__ = ["UNDER_WAY", "Performed", "Printed", "ToolCall", "printed_in", "taken_off"]

_PRINTED = "agentloom_printed"
_CHANGES = "agentloom_changes"


@dataclass(frozen=True, slots=True)
class Printed:
    """A tool's result together with what the tool printed: ``[[stream, text], ...]``, where other code of the program
    went on meanwhile ``[[stream, text, place], ...]`` (``Place``)."""

    value: Any
    printed: list[list[Any]]


Printed.__module__ = (
    "agentloom.cli.script_tools"  # its name in traces, from where it stood when the first were written
)
TYPES.register(Printed)


@dataclass(slots=True)
class ToolCall:
    """``passed``: it is to run as plain code; ``performed``: it was, and returned ``own``; ``beside``:
    other code of the program may go on meanwhile."""

    arguments: dict[str, Any]
    beside: bool = False
    value: Any = None
    passed: bool = False
    performed: bool = False
    own: Any = None
    error: Exception | None = None
    printed: list[list[Any]] = field(default_factory=list[list[Any]])
    remarks: list[str] = field(default_factory=list[str])


UNDER_WAY: contextvars.ContextVar[ToolCall | None] = contextvars.ContextVar(
    "agentloom.toolcall", default=None
)


class Performed:
    """One tool, performed for real. The call that it is performed for is in ``UNDER_WAY``."""

    def __init__(self, name: str, plain: FunctionType, places: Places) -> None:
        self._name = name
        self._plain = plain
        self._places = places

    @functools.cached_property
    def reach(self) -> Reach:
        """The variables that it can change."""
        return Reach(self._plain, self._places)

    def function(self) -> Callable[..., Any]:
        """The function, with what it prints and changes handed on: with its result, or on the exception it raises."""
        plain: Any = self._plain
        if inspect.iscoroutinefunction(plain):

            @functools.wraps(plain)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                call, before = self._begun()
                with doing(Work(f"tool {self._name}", keep=True)) as work:
                    try:
                        value = await plain(*args, **kwargs)
                    except Exception as error:
                        self._raised(call, before, error, work)
                        raise
                return self._given(call, before, value, work)

            return awaited

        @functools.wraps(plain)
        def called(*args: Any, **kwargs: Any) -> Any:
            call, before = self._begun()
            with doing(Work(f"tool {self._name}", keep=True)) as work:
                try:
                    value = plain(*args, **kwargs)
                except Exception as error:
                    self._raised(call, before, error, work)
                    raise
            return self._given(call, before, value, work)

        return called

    def _begun(self) -> tuple[ToolCall, Before]:
        call = UNDER_WAY.get()
        if call is None:
            raise RuntimeError(f"tool {self._name} is performed without a call of it")
        return call, Before(self.reach.roots(call.arguments))

    def _given(self, call: ToolCall, before: Before, value: Any, work: Work) -> Any:
        printed = _of_work(work, call)
        call.own, call.printed, call.performed = value, printed, True
        changes = self._changes(call, before, value, printed)
        if changes is not None:
            return changes
        return Printed(value, printed) if printed else value

    def _raised(self, call: ToolCall, before: Before, error: Exception, work: Work) -> None:
        printed = _of_work(work, call)
        call.error, call.printed, call.performed = error, printed, True
        changes = self._changes(call, before, None, printed)
        with contextlib.suppress(AttributeError):  # an exception that takes no attributes
            if changes is not None:
                setattr(error, _CHANGES, changes)
            elif printed:
                setattr(error, _PRINTED, printed)

    def _changes(
        self, call: ToolCall, before: Before, value: Any, printed: list[list[Any]]
    ) -> Changes | None:
        """What the trace is to hold beside the result, if anything. What cannot be kept of the variables is told and
        left out; what cannot be kept of the arguments is told, and a replay stops there."""
        seen = before.after(value, self.reach.roots(call.arguments))
        changes = seen.written(printed)
        if changes is None or _refused([changes.changed, changes.bound]) is None:
            return changes
        for bound in [*seen.bound]:
            if (why := _refused(bound[2])) is not None:
                seen.bound.remove(bound)
                call.remarks.append(f"sets {bound[1]} to {why}")
        lost = ""
        for one in [*seen.changed]:
            if (why := _refused(one[1])) is None:
                continue
            seen.changed.remove(one)
            words = f"changes {place_of(one[0])} in place ({why})"
            if one[0][0] == ARGUMENTS:
                lost = lost or words
            else:
                call.remarks.append(words)
        if lost:
            return Changes(value, printed, [], [], [], f"calls tool {self._name}, which {lost}")
        return seen.written(printed)


def _of_work(work: Work, call: ToolCall) -> list[list[Any]]:
    """What the work printed; with the places, where something else may have been printed meanwhile."""
    if not call.beside:
        return [list(item) for item in work.printed]
    return [[*item, list(place)] for item, place in zip(work.printed, work.places, strict=True)]


def printed_in(tree: Any) -> list[list[Any]]:
    """What a tool printed, from the recorded outcome of its call; nothing where it says nothing of it."""
    held = _members(tree)
    body = _members(held.get("$error", held.get("$obj")))
    data = _members(body.get("attrs", body.get("data")))
    if _CHANGES in data:
        return printed_in(data[_CHANGES])
    printed = data.get(_PRINTED, data.get("printed"))
    return cast("list[list[Any]]", printed) if isinstance(printed, list) else []


def _members(tree: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", tree) if isinstance(tree, dict) else {}


def taken_off(error: Exception) -> tuple[list[list[Any]], Changes | None]:
    """What a tool printed and changed before it raised ``error``, taken off it."""
    printed: Any = error.__dict__.pop(_PRINTED, [])
    changes: Any = error.__dict__.pop(_CHANGES, None)
    return printed, changes if isinstance(changes, Changes) else None


def _refused(value: Any) -> str | None:
    """In words, why ``value`` cannot be recorded, if it cannot."""
    try:
        encode(value, TYPES)
    except ValueRefused as refused:
        at = "" if refused.path == "value" else f"{refused.path} is "
        return f"{at}{refused.type_name}, {refused.reason}"
    return None
