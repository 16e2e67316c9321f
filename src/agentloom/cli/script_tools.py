"""Tools of a script: what happens at the place of a function that was found by name.

A tool is given the script's own objects and the script gets what the tool returned, as without agentloom;
what the tool changed in place is kept beside its result (``script_objects``), and a replay does it again."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import sys
from collections.abc import Callable, Generator
from types import FunctionType, TracebackType
from typing import Any, Protocol, cast

from agentloom.adapters.framework_scopes import in_tool
from agentloom.cli.script_kinds import changeable, parts_of
from agentloom.cli.script_objects import Changes, put_back
from agentloom.cli.script_output import Place
from agentloom.cli.script_perform import RAISED, UNDER_WAY, Performed, Printed, ToolCall, taken_off
from agentloom.cli.script_raised import put_raised, raised_beside, set_context, without_ours
from agentloom.cli.script_state import Shares, put_state
from agentloom.errors import RecordedError, ValueRefused
from agentloom.format.values import encode
from agentloom.runtime.contexts import put
from agentloom.runtime.places import Places
from agentloom.runtime.refuse import Effect, Effects
from agentloom.runtime.registry import TYPES
from agentloom.runtime.scope import current, require, stays
from agentloom.runtime.strays import refuse_stray, stray
from agentloom.runtime.toolfind import Around
from agentloom.runtime.tools import Effect as ToolEffect
from agentloom.runtime.tools import wrap_tool

__all__ = ["Printed", "around"]


class Emit(Protocol):
    """Takes a stream's name, a text that a tool printed to it, and where, if that is known."""

    def __call__(self, name: str, text: str, place: Place | None = None, /) -> None: ...


def around(effects: Effects, emit: Emit, places: Places) -> Around:
    """What stands in a found function's place. ``emit`` takes what a tool printed, once its outcome is there.

    A call whose arguments cannot be recorded goes to ``effects``: a recorder notes it and the function runs as
    plain code; a replayer refuses it.
    """

    def make(name: str, plain: Callable[..., Any], effect: ToolEffect) -> Callable[..., Any]:
        tool = _Tool(name, cast("FunctionType", plain), effects, emit, places)
        recorded: Callable[..., Any] = wrap_tool(
            tool.performed.function(), effect=effect, name=name, as_given=True
        )
        if inspect.iscoroutinefunction(plain):

            async def awaited(*args: Any, **kwargs: Any) -> Any:
                arguments = tool.arguments(args, kwargs)
                if arguments is None:
                    return await plain(*args, **kwargs)
                call = ToolCall(arguments, tool.shares(), beside=True, handled=sys.exception())
                with tool.handed_on(call):
                    call.value = await recorded(*args, **kwargs)
                if call.error is not None:
                    try:
                        raise tool.on_its_way(call)
                    finally:
                        call.error = None
                return await plain(*args, **kwargs) if call.passed else call.value

            awaited.__wrapped__ = plain  # type: ignore[attr-defined]
            awaited.mend = tool.mend  # type: ignore[attr-defined]
            return awaited

        def called(*args: Any, **kwargs: Any) -> Any:
            arguments = tool.arguments(args, kwargs)
            if arguments is None:
                return plain(*args, **kwargs)
            call = ToolCall(
                arguments, tool.shares(), _is_beside(), alone=_is_alone(), handled=sys.exception()
            )
            with tool.handed_on(call), stays():
                call.value = recorded(*args, **kwargs)
            if call.error is not None:
                try:
                    raise tool.on_its_way(call)
                finally:
                    call.error = None
            return plain(*args, **kwargs) if call.passed else call.value

        called.__wrapped__ = plain  # type: ignore[attr-defined]
        called.mend = tool.mend  # type: ignore[attr-defined]
        return called

    return make


class _Tool:
    """One tool: what is done before a call of it, and with its outcome, in both modes."""

    def __init__(self, name: str, plain: FunctionType, effects: Effects, emit: Emit, places: Places) -> None:
        self._name = name
        self._plain = plain
        self._effects = effects
        self._emit = emit
        self._signature = inspect.signature(plain)
        self._root = places.root
        self._raised: dict[int, tuple[BaseException, TracebackType | None, BaseException | None]] = {}
        self.performed = Performed(name, plain, places)

    def shares(self) -> Shares:
        """What a call that is made here shares with the run."""
        return Shares(require(f"tool {self._name}"))

    def on_its_way(self, call: ToolCall) -> BaseException:
        """The exception of a call, to be raised; ``mend`` will give it the traceback and the context that it
        has without agentloom."""
        error = cast("BaseException", call.error)
        set_context(error, call.context)
        raised_beside(error, call.handled)
        self._raised[id(error)] = error, call.traceback, error.__context__
        return error

    def mend(self, error: BaseException) -> None:
        """Take the frames of agentloom off an exception that leaves the tool."""
        kept = self._raised.pop(id(error), None)
        if kept is None:
            error.__traceback__ = without_ours(error.__traceback__)
        else:
            error.__traceback__ = kept[1]
            set_context(error, kept[2])

    def arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """The arguments by name. None: the call is no part of the record, or is an error that Python itself
        raises."""
        if in_tool():
            return None  # a tool of a framework, whose call is recorded there
        if stray() is not None:
            self._effects.attempt(_in_thread(self._name, self._plain))
            return None
        if current() is None:  # in another tool, of whose work it is a part
            refuse_stray(f"tool {self._name}")
            return None
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError:
            return None
        bound.apply_defaults()
        return dict(bound.arguments)

    @contextlib.contextmanager
    def handed_on(self, call: ToolCall) -> Generator[None]:
        """Around one recorded call: takes what was printed and changed off its value or error; lets a call
        that cannot be recorded pass to the plain function (``passed``) unless ``effects`` refuses. Where it
        is the result that cannot be recorded, the program gets it as it is, unless ``effects`` refuses."""
        before = _calls()
        token = put(UNDER_WAY, call)
        try:
            yield
        except ValueRefused as refused:
            made = _calls() != before
            if made and call.error is refused:
                self._failed(call, refused)
                return
            self._effects.attempt(self._unrecorded(refused))
            call.passed = not made
            call.value = call.own
            self._show(call.printed)
        except asyncio.CancelledError:
            call.remarks.append(
                "is cancelled under way: what it does from then on is not waited for, nor recorded"
            )
            self._remark(call)
            raise
        except RAISED as error:  # raised again by who called, at the same place in both modes
            self._failed(call, error)
        else:
            self._ended(call)
        finally:
            UNDER_WAY.reset(token)
            for variable, now in call.contexts:
                if variable.get(None) is not now:
                    variable.set(now)

    def _ended(self, call: ToolCall) -> None:
        found = call.value
        if isinstance(found, Printed):
            self._show(found.printed)
            call.value = found.value
        elif isinstance(found, Changes):
            call.value = self._done_again(call, found, found.value)
        self._remark(call)
        if call.performed and _holds_objects(call.own):
            call.value = call.own

    def _done_again(self, call: ToolCall, found: Changes, value: Any) -> Any:
        """Show what was printed; on replay, change what was changed. The result, which is ``value``."""
        self._show(found.printed)
        if found.lost is not None:
            self._effects.attempt(Effect("tool", found.lost, _caller()))
        if call.performed:
            return call.own
        reach = self.performed.reach
        value, gone = put_back(found, reach.roots(call.arguments), reach.bind, value)
        call.remarks += [f"changed {place} when recorded, which is not there now" for place in gone]
        call.remarks += found.told or []
        if found.state:
            call.remarks += put_state(require(f"tool {self._name}"), found.state)
        return value

    def _failed(self, call: ToolCall, error: BaseException) -> None:
        """The tool raised ``error``, or the machinery did. The program gets its own exception."""
        printed, changes = taken_off(error)
        self._show(printed)
        held: list[Any] = [error.args, dict(vars(error))]
        if changes is not None:
            held = self._done_again(call, changes, held) or held
        if call.error is None:
            if changes is not None:
                error.args = held[0]
                vars(error).update(held[1])
                put_raised(error, changes.raised or [], self._root)
                call.traceback, call.context = error.__traceback__, error.__context__
            call.error = error
            self._remark(call)
            return
        own = call.error
        taken_off(own)
        for what in _lost_of(own, error):
            call.remarks.append(what)
        self._remark(call)

    def _remark(self, call: ToolCall) -> None:
        for what in call.remarks:
            self._effects.attempt(Effect("detail", f"calls tool {self._name}, which {what}", _caller()))

    def _show(self, printed: list[list[Any]]) -> None:
        for stream, text, *place in printed:
            self._emit(stream, text, cast("Place", tuple(place[0])) if place else None)

    def _unrecorded(self, refused: ValueRefused) -> Effect:
        what = f"tool {self._name}: {refused.path} is {refused.type_name}: {refused.reason}"
        return Effect("tool", what, _caller())


def _holds_objects(value: Any) -> bool:
    """Whether there is something in ``value`` that the program may change in place, or compare by identity."""
    return changeable(value) or (
        isinstance(value, tuple) and any(_holds_objects(part) for _, part in parts_of(value))
    )


def _lost_of(own: BaseException, decoded: BaseException) -> list[str]:
    """In words, what of a tool's exception a replay does not have."""
    if isinstance(decoded, RecordedError) and not isinstance(own, RecordedError):
        return [f"raises {type(own).__qualname__}, which a replay does not find"]
    tree = cast("dict[str, Any]", encode(own, TYPES))
    lost: list[str] = tree["$error"].get("lost") or []
    return (
        [f"raises {type(own).__qualname__} with {', '.join(lost)}, which cannot be recorded"] if lost else []
    )


def _caller() -> str:
    scope = current()
    return "?" if scope is None else scope.session.engine.places.caller()


def _is_alone() -> bool:
    """Whether nothing else of the program goes on while a blocking call is performed."""
    scope = current()
    return scope is None or scope.session.baton is None or not scope.session.baton.beside


def _is_beside() -> bool:
    """Whether calls of the program's may be under way beside a blocking one: in tasks or in threads."""
    scope = current()
    if scope is None:
        return False
    session = scope.session
    return session.loop is not None or (session.baton is not None and session.baton.beside)


def _in_thread(name: str, plain: Callable[..., Any]) -> Effect:
    """A thread of the program has no place in the recorded order: the call passes as plain code, or is refused."""
    code = plain.__code__
    where = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno} {plain.__name__}"
    return Effect("tool", f"calls tool {name} in a thread", where)


def _calls() -> int:
    scope = current()
    return 0 if scope is None else scope.session.engine.calls
