"""``record``: a coroutine, or a block of code, as one run."""

from __future__ import annotations

import inspect
import os
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar, cast

from agentloom.api.recording_mode import replaying
from agentloom.api.recording_run import RecordedRun
from agentloom.api.recording_target import target_of_coroutine
from agentloom.format.words import kind_of
from agentloom.runtime.guard import GuardPolicy
from agentloom.runtime.names import name_of
from agentloom.runtime.recorder import RunOptions
from agentloom.store import Store, open_store

__all__ = ["RecordedRun", "record", "replaying"]

R = TypeVar("R")
StoreLike = Store | str | os.PathLike[str] | None


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
) -> RecordedRun[R]:
    """Make a coroutine a run. The result is the coroutine's own, its exceptions are raised as they are."""
    options = RunOptions(seed, tags or {}, conversation, guard)
    if isinstance(cast("object", what), Coroutine):
        try:
            chosen = store if store is None or isinstance(store, Store) else open_store(store)
            target = target_of_coroutine(what, None if name is None else name_of("a run", name))
        except BaseException:
            if (
                getattr(what, "cr_frame", None) is not None
                and inspect.getcoroutinestate(what) == inspect.CORO_CREATED
            ):
                what.close()  # one that never began says so, which would hide the error
            raise
        return RecordedRun(what, target, options, chosen)
    raise TypeError(f"record() takes a coroutine, or a name for a block, not {kind_of(what)}")
