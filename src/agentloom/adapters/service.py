"""``instrument``: a service whose every request, or every call of a worker, is a run."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from agentloom.adapters.asgi import RecordedApp, is_asgi
from agentloom.api.recording import StoreLike, opened
from agentloom.api.recording_keep import Keep
from agentloom.api.recording_mode import ready, stand_by_unless_off
from agentloom.api.recording_worker import Service, recorded_function
from agentloom.format.words import kind_of
from agentloom.runtime.guard import GuardPolicy
from agentloom.runtime.tool_use import ToolEffect

__all__ = ["instrument"]

C = TypeVar("C", bound=Callable[..., Any])


@overload
def instrument(
    target: C,
    /,
    *,
    name: str | Callable[..., str] | None = None,
    tags: Mapping[str, str] | Callable[..., Mapping[str, str]] | None = None,
    conversation: str | Callable[..., str | None] | None = None,
    rate: float = 1.0,
    keep: Keep = "all",
    store: StoreLike = None,
    guard: GuardPolicy | None = None,
    seed: int | None = None,
    tools: Mapping[str, ToolEffect] | None = None,
) -> C: ...
@overload
def instrument(
    target: None = None,
    /,
    *,
    name: str | Callable[..., str] | None = None,
    tags: Mapping[str, str] | Callable[..., Mapping[str, str]] | None = None,
    conversation: str | Callable[..., str | None] | None = None,
    rate: float = 1.0,
    keep: Keep = "all",
    store: StoreLike = None,
    guard: GuardPolicy | None = None,
    seed: int | None = None,
    tools: Mapping[str, ToolEffect] | None = None,
) -> Callable[[C], C]: ...
def instrument(
    target: Any = None,
    /,
    *,
    name: str | Callable[..., str] | None = None,
    tags: Mapping[str, str] | Callable[..., Mapping[str, str]] | None = None,
    conversation: str | Callable[..., str | None] | None = None,
    rate: float = 1.0,
    keep: Keep = "all",
    store: StoreLike = None,
    guard: GuardPolicy | None = None,
    seed: int | None = None,
    tools: Mapping[str, ToolEffect] | None = None,
) -> Any:
    """Make each request of an ASGI application, or each call of a function, a run.

    ``app = instrument(app)``, ``app.add_middleware(instrument)``, ``@instrument`` or ``@instrument(rate=0.1)`` above a
    function. ``rate`` is the share that is recorded, ``keep`` which of these stay. ``tags``, ``conversation`` and
    ``name`` are values, or functions of the ASGI scope or of the function's arguments. Raises ``ValueError`` for a rate
    or a word that is none, ``TargetError`` for a word in ``AGENTLOOM`` that is no mode.
    """
    service = Service(name, tags, conversation, rate, keep, opened(store), guard, seed, tools)
    return (
        functools.partial(_instrumented, service=service)
        if target is None
        else _instrumented(target, service)
    )


def _instrumented(target: Any, service: Service) -> Any:
    if isinstance(target, type):
        raise TypeError(
            f"instrument() takes an application or a function, not the class {target.__qualname__}"
        )
    asgi = is_asgi(target)
    if not asgi and not callable(target):
        raise TypeError(f"instrument() takes an ASGI application or a function, not {kind_of(target)}")
    # Where a loop runs already a server is starting, which makes its middleware then: its lifespan is told of it.
    if not asgi or not _loop_runs():
        ready(service.store)
    stand_by_unless_off()
    return RecordedApp(target, service) if asgi else recorded_function(target, service)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
