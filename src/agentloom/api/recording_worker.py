"""One run for each call of a function: the decorator behind ``instrument`` and the methods of ``wrap``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, cast

from agentloom.api.recording_call import record_call
from agentloom.api.recording_keep import Keep, checked_keep, checked_rate, sampled
from agentloom.api.recording_mode import mode
from agentloom.api.recording_run import RecordedRun
from agentloom.api.recording_target import target_of_coroutine, target_of_function
from agentloom.errors import NotSupported
from agentloom.runtime.guard import GuardPolicy, chosen_policy
from agentloom.runtime.left_out import left_out
from agentloom.runtime.recorder import RunOptions
from agentloom.runtime.scope import current
from agentloom.runtime.tool_use import ToolEffect, checked_tools
from agentloom.store import Store

__all__ = ["Service", "recorded_function"]

Labels = Mapping[str, str] | Callable[..., Mapping[str, str]] | None


@dataclass(frozen=True, slots=True)
class Service:
    """How the runs of a service are recorded. ``tags``, ``conversation`` and ``name`` may be functions of what a run is
    given. Raises ``ValueError`` for a rate or a word that is none, before anything runs."""

    name: str | Callable[..., str] | None = None
    tags: Labels = None
    conversation: str | Callable[..., str | None] | None = None
    rate: float = 1.0
    keep: Keep = "all"
    store: Store | None = None
    guard: GuardPolicy | None = None
    seed: int | None = None
    tools: Mapping[str, ToolEffect] | None = None

    def __post_init__(self) -> None:
        checked_tools(self.tools)
        checked_rate(self.rate)
        checked_keep(self.keep)
        if self.guard is not None:
            chosen_policy(self.guard)

    def named(self, default: str, *given: Any, **named: Any) -> str:
        """The name of a run."""
        if callable(self.name):
            return self.name(*given, **named)
        return self.name if self.name is not None else default

    def options(self, *given: Any, **named: Any) -> RunOptions:
        """The labels of a run."""
        tags = self.tags(*given, **named) if callable(self.tags) else self.tags
        conversation = (
            self.conversation(*given, **named) if callable(self.conversation) else self.conversation
        )
        return RunOptions(
            self.seed, dict(tags or {}), conversation, self.guard, tools=checked_tools(self.tools)
        )

    def chosen(self, options: RunOptions, key: str | None = None) -> bool:
        """Whether a run with these labels is recorded: by ``key``, else its conversation, else its tags, else drawn.
        Only what would be recorded is sampled: a replay replays all of it."""
        if self.rate >= 1 or mode() != "record":
            return True
        if key is None:
            key = options.conversation
        if key is None and options.tags:
            key = repr(sorted(options.tags.items()))
        return sampled(self.rate, key)


def recorded_function(function: Callable[..., Any], service: Service) -> Callable[..., Any]:
    """``function`` with each call as a run; in a run of somebody else it is a part of that."""
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        raise NotSupported(
            f"{function.__qualname__} is a generator: where its run ends is up to its reader",
            hint='use with record("name"): around the reading, or instrument the function that reads it',
        )
    if inspect.iscoroutinefunction(function):
        return _awaited(function, service)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        name = service.named(function.__name__, *args, **kwargs)
        options = service.options(*args, **kwargs)
        if current() is None and not service.chosen(options):
            with left_out():
                return function(*args, **kwargs)
        target = target_of_function(function, args, kwargs, name)
        return record_call(function, args, kwargs, target, options, service.store, service.keep)

    return called


def _awaited(function: Callable[..., Any], service: Service) -> Callable[..., Any]:
    @functools.wraps(function)
    async def called(*args: Any, **kwargs: Any) -> Any:
        name = service.named(function.__name__, *args, **kwargs)
        options = service.options(*args, **kwargs)
        if current() is None and not service.chosen(options):
            with left_out():
                return await function(*args, **kwargs)
        coroutine = cast("Coroutine[Any, Any, Any]", function(*args, **kwargs))
        return await RecordedRun(
            coroutine, target_of_coroutine(coroutine, name), options, service.store, service.keep
        )

    return called
