"""Agents: how a user's function is run under a session, live or from a recording."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentloom.errors import ControlFlow, NotSupported, ValueRefused
from agentloom.runtime.calls import CallSpec
from agentloom.runtime.changes import profiles_of, use_profiles
from agentloom.runtime.driver_async import AsyncDriver
from agentloom.runtime.driver_sync import run_sync
from agentloom.runtime.guard import GuardPolicy
from agentloom.runtime.interrupts import held_back
from agentloom.runtime.names import name_of, refuse_uncallable
from agentloom.runtime.profiles import Profile
from agentloom.runtime.redaction_rules import NO_RULES, Rules
from agentloom.runtime.registry import declare_annotations
from agentloom.runtime.scope import Scope, entered, require
from agentloom.runtime.session import Session

__all__ = [
    "CHILD_RUNS",
    "AgentFunction",
    "call_child",
    "call_child_async",
    "execute",
    "execute_blocking",
    "finish_raised",
    "finish_returned",
    "refuse_awaited",
]

CHILD_RUNS = 50
"""How many child runs (agents, workflows, verify steps) may be inside one another. Each needs up to 13 frames of
Python's stack, of which there are 1,000: an agent that calls itself without end stops here, at the same call on replay,
and not wherever the stack of that day ends."""


@dataclass(frozen=True, slots=True)
class AgentFunction:
    """A user's function as an agent. ``file`` is where it is defined; ``profiles`` hold in its runs, and for its calls
    where it is a child; ``guard`` is the policy of its runs (None: the default), ``secrets`` what is
    kept out of them; where it is a child, out of the run that it is part of, from then on."""

    name: str
    function: Callable[..., object]
    module: str
    qualname: str
    file: str | None
    profiles: tuple[Profile, ...] = ()
    guard: GuardPolicy | None = None
    secrets: Rules = NO_RULES

    @classmethod
    def of(
        cls,
        function: Callable[..., object],
        name: str | None = None,
        profiles: Iterable[Profile] = (),
        guard: GuardPolicy | None = None,
        secrets: Rules = NO_RULES,
    ) -> AgentFunction:
        """Describe ``function``; its annotations declare the types of its input and output."""
        refuse_uncallable("an agent", function)
        declare_annotations(function)
        module = str(getattr(function, "__module__", "?"))
        code = getattr(function, "__code__", None)
        file = os.path.abspath(code.co_filename) if code is not None else None
        qualname = str(getattr(function, "__qualname__", type(function).__qualname__))
        called = str(getattr(function, "__name__", qualname)) if name is None else name_of("an agent", name)
        return cls(called, function, module, qualname, file, profiles_of(profiles), guard, secrets)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return inspect.iscoroutinefunction(self.function)

    @property
    def root(self) -> str:
        """The folder that places in the code are relative to: above the top package, or the file's folder."""
        if self.file is None:
            return os.getcwd()
        folder = os.path.dirname(self.file)
        package = getattr(sys.modules.get(self.module), "__package__", "") or ""
        for _ in filter(None, package.split(".")):
            folder = os.path.dirname(folder)
        return folder or os.getcwd()


async def execute(
    session: Session, agent: AgentFunction, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """Run an async agent while the caller's event loop performs its host work; returns its output, decoded."""
    driver: AsyncDriver | None = None
    _keep_out(session, agent)
    with held_back(), use_profiles(*agent.profiles):
        try:
            main = _coroutine(agent, args, kwargs)
            driver = AsyncDriver(session)
            value = await driver.run(main)
        except BaseException as error:
            finish_raised(session, error)
            raise
        output = finish_returned(session, value)
    if driver.cancelled:
        raise asyncio.CancelledError  # it came when the agent had returned; whoever asked for it must see it
    return output


def execute_blocking(
    session: Session, agent: AgentFunction, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """Run a sync agent (live or replayed), or an async agent from a source that never waits (replay)."""
    _keep_out(session, agent)
    with held_back(), use_profiles(*agent.profiles):
        try:
            if agent.is_async:
                main = _coroutine(agent, args, kwargs)
                value = AsyncDriver(session).run_blocking(main)
            else:
                value = run_sync(session, lambda: agent.function(*args, **kwargs))
        except BaseException as error:
            finish_raised(session, error)
            raise
        return finish_returned(session, value)


def _keep_out(session: Session, agent: AgentFunction) -> None:
    """On replay too: what of an agent's rules is code (functions, values) is not in the trace."""
    if session.engine.redactor is not None:
        session.engine.redactor.add(agent.secrets)


def _coroutine(
    agent: AgentFunction, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Coroutine[Any, Any, object]:
    return cast("Coroutine[Any, Any, object]", agent.function(*args, **kwargs))


def finish_returned(session: Session, value: object) -> object:
    """Write how an agent that returned ended. A result that cannot be kept is a failure of the run, said in it."""
    try:
        return session.engine.finish("completed", value)
    except ValueRefused as refused:
        session.engine.finish("failed", refused)
        raise


def finish_raised(session: Session, error: BaseException) -> None:
    """Write how an agent that raised ended. A kept verdict goes first, whatever the agent raised afterwards."""
    session.engine.judge()
    if isinstance(error, ControlFlow):
        session.engine.fail(error)
    stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
    session.engine.finish("cancelled" if stopped else "failed", error)


# -- child agents ----------------------------------------------------------------------------------------------------


def refuse_awaited(scope: Scope, agent: AgentFunction) -> None:
    """Raise ``NotSupported`` where an async agent is called in the run of a sync one, which nothing can await."""
    if scope.session.blocking:
        raise NotSupported(
            f"{agent.name} is an async agent and was called in the run of {scope.session.agent}, a sync one",
            hint=f"make {scope.session.agent} async and await it there, or make {agent.name} sync",
        )


def _child(scope: Scope, agent: AgentFunction, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
    if scope.depth >= CHILD_RUNS:
        raise NotSupported(
            f"{agent.name} was called {scope.depth + 1} child runs deep (agents and workflows inside one another);"
            f" at most {CHILD_RUNS} are supported",
            hint="an agent or workflow that calls itself needs an end; make a loop of a long chain",
            depth=scope.depth + 1,
        )
    _keep_out(scope.session, agent)
    spec = CallSpec("agent", agent.name, {"args": list(args), "kwargs": dict(kwargs)})
    call = scope.session.engine.begin(spec, scope)
    below = scope.child(agent.name, parent=call.id)
    below.depth += 1
    return call, below


async def call_child_async(
    agent: AgentFunction, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """Run another async agent inside this run: its calls lie below the ``agent`` call, its result is recorded.

    The scope is the one in which the coroutine is awaited, not the one that made it.
    """
    scope = require(agent.name)
    engine = scope.session.engine
    call, below = _child(scope, agent, args, kwargs)
    try:
        with entered(below), use_profiles(*agent.profiles):
            value = await _coroutine(agent, args, kwargs)
    except asyncio.CancelledError:
        engine.end_by_agent(call, "cancelled")
        raise
    except (ControlFlow, GeneratorExit):
        raise
    except BaseException as error:
        engine.end_by_agent(call, "error", error)
        raise
    return engine.end_by_agent(call, "ok", value)


def call_child(
    scope: Scope, agent: AgentFunction, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """As ``call_child_async``, for a sync agent."""
    engine = scope.session.engine
    call, below = _child(scope, agent, args, kwargs)
    try:
        with entered(below), use_profiles(*agent.profiles):
            value = agent.function(*args, **kwargs)
    except ControlFlow:
        raise
    except BaseException as error:
        engine.end_by_agent(call, "error", error)
        raise
    return engine.end_by_agent(call, "ok", value)
