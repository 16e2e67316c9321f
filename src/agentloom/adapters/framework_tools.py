"""What the adapters of frameworks share: a tool of a framework as a host call.

A framework validates what the model asked for, runs the tool, and makes a message of what comes back. Only the tool
itself is a host call; everything around it is the agent's own code, and runs again on replay.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast
from weakref import WeakSet

from agentloom.adapters.framework_scopes import inside, tool_runs
from agentloom.adapters.framework_state import Before, put_back
from agentloom.adapters.framework_values import can_be_kept
from agentloom.errors import ValueRefused
from agentloom.runtime.boundary import call_async, call_inline
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.effects import Effect
from agentloom.runtime.host import request_of
from agentloom.runtime.passed import passes
from agentloom.runtime.registry import TYPES, declare_annotations
from agentloom.runtime.scope import Scope, current
from agentloom.runtime.strays import stray
from agentloom.runtime.tool_use import AGENT, ToolEffect
from agentloom.runtime.work import Work, doing

__all__ = ["Also", "Performed", "Tool", "call_tool", "call_tool_async", "declare_once"]

_log = logging.getLogger("agentloom.frameworks")
_ATTRIBUTE = "agentloom_performed"


@dataclass(frozen=True, slots=True)
class Performed:
    """A tool's result, with what it printed (``[[stream, text], ...]``) and what it changed in the objects that the
    framework shares with the agent."""

    value: Any
    printed: list[list[str]]
    changed: dict[str, Any]


TYPES.register(Performed)


class Also(Protocol):
    """What a framework has a tool do beside returning something."""

    def before(self) -> None:
        """Look at it before the tool runs."""
        ...

    def after(self, error: BaseException | None) -> Any:
        """What the tool did before it returned, or raised ``error``, as a value that can be kept; None for nothing."""
        ...

    def again(self, done: Any, *, ran: bool) -> None:
        """Make it count, with the tool's result; ``ran``: the tool itself ran, and this is no replay."""
        ...


@dataclass(slots=True)
class Tool:
    """One call of a tool that a framework is about to make.

    ``args`` are what the model gave it; ``effect`` what the tool itself declares (None: nothing). ``shared`` are
    objects by name that the framework hands to the tool and to the agent's other code alike. ``pack`` makes of a result
    one that has an exact form, ``unpack`` the result again.
    """

    framework: str
    name: str
    args: Mapping[str, Any]
    effect: ToolEffect | None = None
    shared: Mapping[str, object] = field(default_factory=dict[str, object])
    also: Also | None = None
    pack: Callable[[Any], Any] | None = None
    unpack: Callable[[Any], Any] | None = None


Perform = Callable[[Mapping[str, Any]], Any]
_declared: WeakSet[Any] = WeakSet()


def declare_once(function: Callable[..., Any] | None) -> None:
    """Declare the types in the annotations of a tool's function, so that its results come back exactly."""
    if function is None:
        return
    try:
        if function in _declared:
            return
        _declared.add(function)
    except TypeError:  # a callable object without hash or weak references: declared anew each time
        pass
    declare_annotations(function)


def call_tool(tool: Tool, perform: Perform) -> Any:
    """Make the call where the framework blocks for it. ``perform`` runs the tool with the arguments that it gets."""
    scope = _scope_of(tool)
    if scope is None:
        return perform(tool.args)
    effect = _effect(scope, tool)
    if effect == AGENT:
        with inside(scope, tool.name):
            return perform(tool.args)
    made = _Made(tool)

    def performed(call: Call) -> object:
        with made.performing():
            return made.finished(perform(_arguments(call)))

    try:
        return made.given(scope, call_inline(made.spec(effect), performed))
    except ValueRefused as refused:
        if made.passes(scope, refused):
            return perform(tool.args)
        return made.value
    except BaseException as error:
        made.failed(scope, error)
        raise


async def call_tool_async(tool: Tool, perform: Callable[[Mapping[str, Any]], Awaitable[Any]]) -> Any:
    """As ``call_tool``, where the framework awaits it."""
    scope = _scope_of(tool)
    if scope is None:
        return await perform(tool.args)
    effect = _effect(scope, tool)
    if effect == AGENT:
        with inside(scope, tool.name):
            return await perform(tool.args)
    made = _Made(tool)

    async def performed(call: Call) -> object:
        with made.performing():
            return made.finished(await perform(_arguments(call)))

    try:
        return made.given(scope, await call_async(made.spec(effect), performed))
    except ValueRefused as refused:
        if made.passes(scope, refused):
            return await perform(tool.args)
        return made.value
    except BaseException as error:
        made.failed(scope, error)
        raise


def _scope_of(tool: Tool) -> Scope | None:
    """Where the call is made; None where it belongs to no run. Then it passes: quietly in host work, told else."""
    scope = current()
    if scope is not None:
        return scope
    session = stray()
    if session is not None and session.effects is not None:
        where = session.engine.places.caller()
        session.effects.attempt(Effect("tool", f"calls tool {tool.name} in a thread of its own", where))
    else:
        passes(f"tool {tool.name} ({tool.framework})")
    return None


def _effect(scope: Scope, tool: Tool) -> ToolEffect:
    """What the user of the run said, else what the tool says of itself, else ``write``."""
    use = scope.session.tools
    said = None if use is None else use.effects.get(tool.name)
    effect = said or tool.effect or "write"
    if use is not None and use.used is not None:
        use.used(tool.name, effect, tool.framework)
    return effect


def _arguments(call: Call) -> Mapping[str, Any]:
    """Fresh copies of the arguments as recorded."""
    return cast("Mapping[str, Any]", request_of(call)["args"])


class _Made:
    """One call under way. ``value`` is what the tool gave, where it ran."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.value: Any = None
        self._ran = self._raised = False
        for one in tool.shared.values():
            TYPES.declare(type(one))  # what it changes in their fields comes back, on replay too
        self._before: Before | None = None
        self._agents: list[str] = []
        self._work = Work(f"tool {tool.name}", keep=True)

    def spec(self, effect: ToolEffect) -> CallSpec:
        """The host call."""
        return CallSpec(
            "tool", self.tool.name, {"args": dict(self.tool.args)}, profile="tool/1", effect=effect
        )

    @contextmanager
    def performing(self) -> Generator[None]:
        """The block in which the tool runs."""
        if self.tool.shared:
            self._before = Before(self.tool.shared)
        if self.tool.also is not None:
            self.tool.also.before()
        try:
            with doing(self._work), tool_runs(self._agents):
                yield
        except Exception as error:
            self._raised = True
            if (more := self._more(error)) is not None:
                _attach(error, Performed(None, *more))
            raise
        finally:
            self._tell_agents()

    def finished(self, value: Any) -> Any:
        """What is recorded of a tool that returned ``value``."""
        self._ran, self.value = True, value
        kept = value if self.tool.pack is None else self.tool.pack(value)
        more = self._more(None)
        return kept if more is None else Performed(kept, *more)

    def _more(self, error: BaseException | None) -> tuple[list[list[str]], dict[str, Any]] | None:
        """What it printed and changed, if anything."""
        changed = {} if self._before is None else self._before.changes()
        if self.tool.also is not None and (done := self.tool.also.after(error)) is not None:
            changed["$also"] = done
        printed = [list(item) for item in self._work.printed]
        return (printed, changed) if printed or changed else None

    def given(self, scope: Scope, value: Any) -> Any:
        """What the framework gets of a recorded result."""
        if isinstance(value, Performed):
            self._again(scope, value)
            value = value.value
        return value if self.tool.unpack is None else self.tool.unpack(value)

    def failed(self, scope: Scope, error: BaseException) -> None:
        """The tool's error on its way to the framework."""
        done = getattr(error, "__dict__", {}).pop(_ATTRIBUTE, None)
        if isinstance(done, Performed):
            self._again(scope, done)

    def _again(self, scope: Scope, done: Performed) -> None:
        use = scope.session.tools
        if use is not None and use.emit is not None:
            for stream, text in done.printed:
                use.emit(stream, text)
        changed, ran = dict(done.changed), self._ran or self._raised
        also = changed.pop("$also", None)
        if not ran:
            put_back(self.tool.shared, changed)
        if also is not None and self.tool.also is not None:
            self.tool.also.again(also, ran=ran)

    def passes(self, scope: Scope, refused: ValueRefused) -> bool:
        """What becomes of a call that cannot be recorded: True: it runs as plain code, for its arguments have no exact
        form; False: it ran, and the framework gets ``value`` as it is. The trace says so, and a replay stops there.
        Raises ``refused`` where the tool itself raised it."""
        if self._raised:
            raise refused
        plain = not can_be_kept(dict(self.tool.args))
        what = f"tool {self.tool.name}: {refused.path} is {refused.type_name}: {refused.reason}"
        engine, effects = scope.session.engine, scope.session.effects
        where = engine.places.caller()
        if effects is not None:
            effects.attempt(Effect("tool", what, where))
        else:
            engine.mark("gap", {"kind": "tool", "what": what, "where": where}, why="unrecorded-effect")
        if not plain and not self._ran:
            raise refused
        return plain

    def _tell_agents(self) -> None:
        if self._agents and self.tool.name not in _told:
            _told.add(self.tool.name)
            _log.warning(
                "tool %s ran %s itself: what that asked is part of the tool, and not in the trace. If its code is the"
                ' agent\'s own, say so with metadata={"agentloom": "agent"} or tools={"%s": "agent"}',
                self.tool.name, ", ".join(self._agents), self.tool.name,
            )  # fmt: skip


_told: set[str] = set()


def _attach(error: Exception, done: Performed) -> None:
    try:
        setattr(error, _ATTRIBUTE, done)
    except AttributeError:  # an exception without attributes of its own
        _log.warning("what a tool printed or changed before %s is not recorded", type(error).__name__)
