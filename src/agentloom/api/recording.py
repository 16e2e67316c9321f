"""``record``: a coroutine, or a block of code, as one run."""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar, cast, overload

from agentloom.api.recording_block import RecordedBlock
from agentloom.api.recording_keep import Keep, checked_keep
from agentloom.api.recording_mode import StoreLike, opened, replaying
from agentloom.api.recording_run import RecordedRun
from agentloom.api.recording_target import target_of_block, target_of_coroutine
from agentloom.format.words import kind_of
from agentloom.runtime.guard import GuardPolicy
from agentloom.runtime.names import name_of
from agentloom.runtime.recorder import RunOptions
from agentloom.runtime.tool_use import ToolEffect, checked_tools

__all__ = ["RecordedBlock", "RecordedRun", "StoreLike", "opened", "record", "replaying"]

R = TypeVar("R")


@overload
def record(
    what: str,
    /,
    *,
    tags: Mapping[str, str] | None = None,
    conversation: str | None = None,
    store: StoreLike = None,
    guard: GuardPolicy | None = None,
    seed: int | None = None,
    keep: Keep = "all",
    tools: Mapping[str, ToolEffect] | None = None,
) -> RecordedBlock: ...
@overload
def record(
    what: Coroutine[Any, Any, R],
    /,
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    conversation: str | None = None,
    store: StoreLike = None,
    guard: GuardPolicy | None = None,
    seed: int | None = None,
    keep: Keep = "all",
    tools: Mapping[str, ToolEffect] | None = None,
) -> RecordedRun[R]: ...
def record(
    what: object,
    /,
    *,
    name: str | None = None,
    tags: Mapping[str, str] | None = None,
    conversation: str | None = None,
    store: StoreLike = None,
    guard: GuardPolicy | None = None,
    seed: int | None = None,
    keep: Keep = "all",
    tools: Mapping[str, ToolEffect] | None = None,
) -> Any:
    """Make a coroutine a run (to be awaited), or a block of code (``with record("name"):``).

    ``keep`` says whether the run stays once it has ended: ``"failed"``, ``"flagged"``, or a function of its trace.
    ``tools`` says what tools of frameworks do to the world, by name: ``read`` or ``pure`` (``write`` otherwise), or
    ``agent`` for one whose code is the agent's own: it runs again on replay, and what it asks is recorded.
    The coroutine runs on the deterministic loop; its result is its own, its exceptions are raised as they are. The
    block runs where it stands.
    """
    options = RunOptions(seed, tags or {}, conversation, guard, tools=checked_tools(tools))
    checked_keep(keep)
    if isinstance(what, str):
        if name is not None:
            raise TypeError("record() was given two names for a block")
        target = target_of_block(name_of("a run", what))
        return RecordedBlock(target, options, opened(store), keep)
    if isinstance(what, Coroutine):
        return _coroutine(cast("Coroutine[Any, Any, object]", what), name, options, store, keep)
    raise TypeError(f"record() takes a coroutine, or a name for a block, not {kind_of(what)}")


def _coroutine(
    coroutine: Coroutine[Any, Any, R], name: str | None, options: RunOptions, store: StoreLike, keep: Keep
) -> RecordedRun[R]:
    try:
        target = target_of_coroutine(coroutine, None if name is None else name_of("a run", name))
        return RecordedRun(coroutine, target, options, opened(store), keep)
    except BaseException:
        began = getattr(coroutine, "cr_frame", None) is None
        if not began and inspect.getcoroutinestate(cast(Any, coroutine)) == inspect.CORO_CREATED:
            coroutine.close()  # one that never began says so, which would hide the error
        raise
