"""What a run's loop does not do itself, done outside of the run: the way there and back.

Under a guard that refuses nothing, a run's loop passes what needs the operating system on to the outer loop. It is not
recorded: the trace is marked ("not replayable past"), and a replay stops at the line that asks for it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agentloom.runtime.effects import Effect, Kind
from agentloom.runtime.live import LiveSource
from agentloom.runtime.loop_io import LoopNotSupported
from agentloom.runtime.passed import client_of
from agentloom.runtime.scope import outside

if TYPE_CHECKING:
    from agentloom.runtime.driver_async import AsyncDriver

__all__ = ["Outside"]

T = TypeVar("T")


class Outside:
    """The outer loop, as code of the run's loop of ``driver`` reaches it."""

    def __init__(self, driver: AsyncDriver) -> None:
        self._driver = driver

    def tell(self, what: str, kind: Kind = "network") -> None:
        """Have it noted, with the client's name; on replay that is where the run stops."""
        frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
        client = client_of(frame)
        self.tell_at(f"{what}{f' ({client})' if client else ''}", kind, self.place())

    def tell_at(self, what: str, kind: Kind, place: str) -> None:
        """As ``tell``, for what code at ``place`` has asked for."""
        effects = self._driver.session.effects
        if effects is not None:
            effects.attempt(Effect(kind, what, place))

    def place(self) -> str:
        """Where the code of the program is that runs now."""
        return self._driver.session.engine.places.caller()

    @property
    def replays(self) -> bool:
        """Whether nothing happens outside of this run, because it is replayed."""
        return not isinstance(self._driver.session.source, LiveSource)

    def outer(self) -> asyncio.AbstractEventLoop:
        """The loop that performs host work. ``LoopNotSupported`` where there is none."""
        source = self._driver.session.source
        outer = source.outer if isinstance(source, LiveSource) else None
        if outer is None:
            raise LoopNotSupported(
                "this cannot be done here: no loop performs host work",
                hint="await it in an async run, or use a tool",
            )
        return outer

    def inner(self) -> asyncio.AbstractEventLoop:
        """The run's own loop."""
        return self._driver.loop

    async def outside(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do ``work`` on the outer loop; wait for it on this one."""
        waiting = self.inner().create_future()
        task = self.outer().create_task(_awaited(work), context=outside())

        def over(done: asyncio.Task[T]) -> None:
            self.hand_in(_settle, (waiting, done), context)

        context = copy_context()
        task.add_done_callback(over, context=outside())
        try:
            return cast(T, await waiting)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def hand_in(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        """Have something that happened outside handled in the run."""
        loop = self._driver.loop
        if not loop.is_closed():
            loop.call_soon(callback, *args, context=context)
            self._driver.wake_up()


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


def _settle(waiting: asyncio.Future[Any], done: asyncio.Task[Any]) -> None:
    if waiting.done():
        return
    if done.cancelled():
        waiting.cancel()
    elif (error := done.exception()) is not None:
        waiting.set_exception(error)
    else:
        waiting.set_result(done.result())
