"""The work of a tool of a script, while it is recorded: with what it prints and changes handed on to its outcome."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType, TracebackType
from typing import Any, cast

from agentloom.cli.script_library import kind_of
from agentloom.cli.script_objects import ARGUMENTS, Before, Changes, Seen, place_of
from agentloom.cli.script_raised import kept_of_raised, without_ours
from agentloom.cli.script_reach import Reach
from agentloom.cli.script_state import Shares, State, of_libraries
from agentloom.errors import ValueRefused
from agentloom.format.values import encode
from agentloom.runtime.places import Places
from agentloom.runtime.registry import TYPES
from agentloom.runtime.work import Work, doing

__all__ = ["RAISED", "UNDER_WAY", "Performed", "Printed", "ToolCall", "printed_in", "taken_off"]

_PRINTED = "agentloom_printed"
_CHANGES = "agentloom_changes"

RAISED = (Exception, SystemExit, KeyboardInterrupt)
"""What a tool raises itself; all else comes from who waits for it."""


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
    other code of the program may print meanwhile; ``alone``: none goes on meanwhile. ``handled``: the
    exception that the script handles where it makes the call. ``traceback`` and ``context``: of the exception
    that it raised, as the script is to see them; ``contexts``: the context variables that it has set."""

    arguments: dict[str, Any]
    shares: Shares
    beside: bool = False
    alone: bool = False
    handled: BaseException | None = None
    traceback: TracebackType | None = None
    context: BaseException | None = None
    contexts: list[tuple[contextvars.ContextVar[Any], Any]] = field(
        default_factory=list[tuple[contextvars.ContextVar[Any], Any]]
    )
    value: Any = None
    passed: bool = False
    performed: bool = False
    own: Any = None
    error: BaseException | None = None
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
                begun = self._begun()
                with doing(Work(f"tool {self._name}", keep=True, shares=begun.call.shares)) as work:
                    try:
                        value = await plain(*args, **kwargs)
                    except RAISED as error:
                        self._raised(begun, error, work)
                        raise
                return self._given(begun, value, work)

            return awaited

        @functools.wraps(plain)
        def called(*args: Any, **kwargs: Any) -> Any:
            begun = self._begun()
            with doing(Work(f"tool {self._name}", keep=True, shares=begun.call.shares)) as work:
                try:
                    value = plain(*args, **kwargs)
                except RAISED as error:
                    self._raised(begun, error, work)
                    raise
            return self._given(begun, value, work)

        return called

    def _begun(self) -> _Begun:
        call = UNDER_WAY.get()
        if call is None:
            raise RuntimeError(f"tool {self._name} is performed without a call of it")
        return _Begun(call, Before(self.reach.roots(call.arguments)), State(call.shares, alone=call.alone))

    def _given(self, begun: _Begun, value: Any, work: Work) -> Any:
        call = begun.call
        printed = _of_work(work, call)
        call.own, call.printed, call.performed = value, printed, True
        changes = self._changes(begun, value, printed)
        if changes is not None:
            return changes
        return Printed(value, printed) if printed else value

    def _raised(self, begun: _Begun, error: BaseException, work: Work) -> None:
        call = begun.call
        printed = _of_work(work, call)
        call.error, call.printed, call.performed = error, printed, True
        call.traceback, call.context = without_ours(error.__traceback__), error.__context__
        held = [error.args, dict(vars(error))]
        changes = self._changes(begun, held, printed) or Changes(None, printed, [], [], [])
        changes = dataclasses.replace(
            changes, value=None, raised=kept_of_raised(error, self._places.root, call.handled)
        )
        with contextlib.suppress(AttributeError):  # an exception that takes no attributes
            setattr(error, _CHANGES, changes)

    def _changes(self, begun: _Begun, value: Any, printed: list[list[Any]]) -> Changes | None:
        """What the trace is to hold beside the result, if anything. What cannot be kept of the variables is told and
        left out; what cannot be kept of the arguments is told, and a replay stops there."""
        call = begun.call
        seen = begun.before.after(value, self.reach.roots(call.arguments))
        lost = self._unkept(call, seen, printed)
        state, told = begun.state.kept()
        call.remarks += told
        call.contexts = begun.state.context()
        of_context, told = of_libraries(call.contexts, begun.before.ways)
        call.remarks += told
        if of_context:
            state["context"] = of_context
        if lost:
            lost = f"calls tool {self._name}, which {lost}"
            return Changes(value, printed, [], [], [], lost, told=[*call.remarks] or None)
        changes = seen.written(printed)
        if changes is None and not state and not call.remarks:
            return None
        changes = changes or Changes(value, printed, [], [], [])
        return dataclasses.replace(changes, state=state or None, told=[*call.remarks] or None)

    @staticmethod
    def _unkept(call: ToolCall, seen: Seen, printed: list[list[Any]]) -> str:
        """Take out of ``seen`` what cannot be kept, and tell it; in words what of it was an argument."""
        for one in [*seen.changed]:
            kind = kind_of(one[1])
            if kind is not None and kind.seen is not None:
                seen.changed.remove(one)
                call.remarks.append(f"{kind.seen} {place_of(one[0])}")
        changes = seen.written(printed)
        if changes is None or _refused([changes.changed, changes.bound]) is None:
            return ""
        lost = ""
        known = len(seen.changed)
        met_twice = _refused(changes.changed[known:])
        for bound, written in zip([*seen.bound], changes.bound, strict=True):
            if (why := _refused(written[2]) or (met_twice and _refused(bound[2]))) is not None:
                seen.bound.remove(bound)
                call.remarks.append(f"sets {bound[1]} to {why}")
        for one, written in zip([*seen.changed], changes.changed[:known], strict=True):
            why = _refused(written[2]) or (met_twice and (_refused(one[1]) or met_twice))
            if why is None:
                continue
            seen.changed.remove(one)
            words = f"changes {place_of(one[0])} in place ({why})"
            if one[0][0] == ARGUMENTS:
                lost = lost or words
            else:
                call.remarks.append(words)
        return lost


@dataclass(frozen=True, slots=True)
class _Begun:
    """A call that is performed, and what there was before."""

    call: ToolCall
    before: Before
    state: State


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


def taken_off(error: BaseException) -> tuple[list[list[Any]], Changes | None]:
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
