"""``run_sync`` of a framework in a sync run: what it awaits gets the deterministic loop, as under ``record(coro)``, so
that tools side by side replay in their recorded order."""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Awaitable
from typing import Any

from agentloom.runtime.contexts import put
from agentloom.runtime.scope import current

__all__ = ["awaited_in_sync", "ordered", "ordered_run"]

_asked: contextvars.ContextVar[bool] = contextvars.ContextVar("agentloom.run_sync", default=False)


def ordered(work: Awaitable[Any]) -> Awaitable[Any]:
    """``work`` as a part of the sync run that it is driven from; elsewhere itself."""
    scope = current()
    if scope is None or scope.session.stock is None or scope.session.loop is not None:
        return work
    below = scope.started("run_sync")

    async def whole() -> Any:
        return await work

    return scope.session.stock.segment(below, whole())


def awaited_in_sync(run_sync: Any) -> Any:
    """``run_sync`` of a class that calls its own ``run`` (see ``ordered_run``)."""

    @functools.wraps(run_sync)
    def called(*args: Any, **kwargs: Any) -> Any:
        token = put(_asked, True)
        try:
            return run_sync(*args, **kwargs)
        finally:
            _asked.reset(token)

    return called


def ordered_run(run: Any) -> Any:
    """The ``run`` that it calls."""

    @functools.wraps(run)
    async def awaited(*args: Any, **kwargs: Any) -> Any:
        if not _asked.get():
            return await run(*args, **kwargs)
        token = put(_asked, False)  # what it calls in turn is a part of it
        try:
            return await ordered(run(*args, **kwargs))
        finally:
            _asked.reset(token)

    return awaited
