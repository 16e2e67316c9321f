"""Which node or agent of a framework asked: a segment in the path of the calls below it."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Generator
from contextlib import contextmanager

from agentloom.errors import NotSupported
from agentloom.runtime.contexts import put
from agentloom.runtime.scope import Scope, current, entered

__all__ = ["in_tool", "inside", "tool_runs", "within"]

_agents: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("agentloom.in_tool", default=None)
"""In a tool that runs: the agents that it ran itself."""


@contextmanager
def inside(scope: Scope, name: str) -> Generator[None]:
    """A block whose calls are made at ``NAME[i]`` below ``scope``; i counts its blocks of that name."""
    try:
        below = scope.child(name)
    except NotSupported:  # too far down: the calls are recorded all the same, with the path that there is
        yield
        return
    manager = entered(below)
    manager.__enter__()
    try:
        yield
    finally:
        with contextlib.suppress(
            ValueError
        ):  # a generator that somebody else closes, in a context of its own
            manager.__exit__(None, None, None)


@contextmanager
def within(name: str) -> Generator[None]:
    """``inside`` of the running scope. Outside of a run nothing but a note for the tool that it is in."""
    scope = current()
    if scope is not None:
        with inside(scope, name):
            yield
        return
    agents = _agents.get()
    if agents is not None and name not in agents:
        agents.append(name)
    yield


def in_tool() -> bool:
    """Whether a framework's tool runs here: what it does is part of its call."""
    return _agents.get() is not None


@contextmanager
def tool_runs(agents: list[str]) -> Generator[None]:
    """A block in which a tool runs; ``agents`` gets the names of those that it runs itself."""
    token = put(_agents, agents)
    try:
        yield
    finally:
        _agents.reset(token)
