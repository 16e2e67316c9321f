"""Event loops of a script: whatever way it makes one in its main run, it gets the deterministic inner loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from typing import Any, cast

from agentloom.runtime.driver_async import AsyncDriver
from agentloom.runtime.loop import InnerLoop
from agentloom.runtime.scope import current
from agentloom.runtime.session import Session

__all__ = ["close_outer", "inner_loops"]

_CLOSING_SECONDS = 1.0


@contextlib.contextmanager
def inner_loops(session: Session, outer: asyncio.AbstractEventLoop | None) -> Generator[None]:
    """For the block: ``asyncio.run``, ``Runner`` (its ``loop_factory`` is dropped), ``new_event_loop`` and
    ``get_event_loop`` give inner loops of ``session``; threads outside the run keep stock loops. ``outer`` performs
    host work while an inner loop waits (None: nothing ever has to be waited for)."""
    # Deprecated from 3.14 on; the pythons that this version supports have nothing else.
    module = cast(Any, asyncio)
    stock = module.get_event_loop_policy()

    def new_loop() -> asyncio.AbstractEventLoop:
        if current() is None:
            return cast("asyncio.AbstractEventLoop", stock.new_event_loop())
        return _driven(session, outer)

    class Policy(module.DefaultEventLoopPolicy):  # type: ignore[misc, name-defined]
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            return new_loop()

    runner = cast(Any, asyncio.Runner)
    set_policy, init_runner = module.set_event_loop_policy, runner.__init__

    def set_event_loop_policy(policy: object) -> None:
        """A policy chooses the loop's implementation; here that is fixed."""

    def init(self: Any, *, debug: bool | None = None, loop_factory: object = None) -> None:
        del loop_factory
        init_runner(self, debug=debug)

    set_policy(Policy())
    module.set_event_loop_policy = module.events.set_event_loop_policy = set_event_loop_policy
    runner.__init__ = init
    try:
        yield
    finally:
        runner.__init__ = init_runner
        module.set_event_loop_policy = module.events.set_event_loop_policy = set_policy
        set_policy(stock)


def _driven(session: Session, outer: asyncio.AbstractEventLoop | None) -> InnerLoop:
    loop = AsyncDriver(session, outer).loop
    drive = loop.drive
    if drive is None:
        raise RuntimeError("the driver attached no drive to its loop")

    def drive_this(inner: InnerLoop, done: Callable[[], bool]) -> None:
        before, session.loop = (
            session.loop,
            inner,
        )  # a script may hold several loops; calls belong to the running one
        try:
            drive(inner, done)
        finally:
            session.loop = before

    loop.drive = drive_this
    return loop


def close_outer(outer: asyncio.AbstractEventLoop) -> None:
    """End the loop that performed host work: connections of closed clients, tasks left over, generators."""

    async def end() -> None:
        left = [task for task in asyncio.all_tasks(outer) if task is not asyncio.current_task()]
        if left:
            await asyncio.wait(left, timeout=_CLOSING_SECONDS)
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=_CLOSING_SECONDS)

    if outer.is_closed():
        return
    outer.run_until_complete(end())
    outer.run_until_complete(outer.shutdown_asyncgens())
    outer.close()
