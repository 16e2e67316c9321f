"""Awaited host work on the real event loop, begun at once.

Most calls of a fast tool, a cache or a test's model never wait. A task and a turn of the loop for each of them would
cost more than writing it down. So the first step of the work is done where the run comes to rest, with a spare task as
the current one (``asyncio.current_task()``), and only work that waits takes the task with it. What it sees is what it
would see in a task of its own: its context, the running loop, a current task that stays the same until it ends.
"""

# Tasks end and spare ones are looked at through underscore names of asyncio; there is no public way.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import types
from asyncio import events, tasks
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextvars import Context
from functools import partial
from typing import Any, cast

from agentloom.runtime.scope import leave, outside

__all__ = ["HostWork", "Waiting"]

_NAME = "agentloom host call"
_Work = Coroutine[Any, Any, object]
_Finish = Callable[[object, BaseException | None], bool]
"""Takes the result, or the exception; False: nobody waits for it any more."""


class Waiting:
    """A task that goes on with work that waits; a spare one until it is given some."""

    __slots__ = ("_cancelled", "_parked", "_started", "task")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._parked: asyncio.Future[tuple[_Work, Any, Context, _Finish]] = loop.create_future()
        self._started = False
        self._cancelled = False
        self.task = asyncio.Task(_carry(self), loop=loop, context=outside(), name=_NAME)

    def give(self, work: _Work, waits_for: object, context: Context, finish: _Finish) -> None:
        """It goes on with ``work``, which waits for ``waits_for``."""
        self._parked.set_result((work, waits_for, context, finish))

    def cancel(self) -> None:
        """As ``Task.cancel``; a task that had no turn yet would not even begin."""
        if self._started or not self._parked.done():
            self.task.cancel()
        else:
            self._cancelled = True


class HostWork:
    """The host work of one run on ``loop``."""

    __slots__ = ("_loop", "_spare")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._spare: Waiting | None = None

    def begin(
        self,
        perform: Callable[[], Awaitable[object]],
        context: Context,
        finish: Callable[..., bool],
        *of: object,
    ) -> Waiting | asyncio.Task[None] | None:
        """Do ``perform`` and the first step of what it returns, in ``context``. ``finish`` gets ``of`` and the result,
        or the exception, now or later; what goes on with it and can be cancelled, or None: it is over."""
        loop = self._loop
        if events._get_running_loop() is not loop:
            return asyncio.Task(
                _all_of(perform, partial(finish, *of)), loop=loop, context=context, name=_NAME
            )
        spare = self._spare
        if spare is None:
            spare = self._spare = Waiting(loop)
        task = spare.task
        aside = tasks.current_task(loop)
        if aside is not None:
            tasks._leave_task(loop, aside)
        tasks._enter_task(loop, task)
        work: _Work | None = None
        waits_for: object = None
        try:
            work, waits_for = context.run(_first_step, perform)
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the outcome
            finish(*of, None, error)
        else:
            if work is None:
                finish(*of, waits_for, None)
        finally:
            tasks._leave_task(loop, task)
            if aside is not None:
                tasks._enter_task(loop, aside)
        if work is not None:
            self._spare = None
            spare.give(work, waits_for, context, partial(finish, *of))
            return spare
        if task.cancelling() or getattr(task, "_callbacks", None):
            self.close()  # the work has left something with its task: it ends with the work
        return None

    def close(self) -> None:
        """Let go of the spare task."""
        if self._spare is not None:
            self._spare.cancel()
            self._spare = None


def _first_step(perform: Callable[[], Awaitable[object]]) -> tuple[_Work | None, object]:
    """The coroutine and what it waits for; or None and its result: it is over."""
    leave()
    made: object = perform()
    is_coroutine = type(made) is types.CoroutineType
    work = cast("_Work", made) if is_coroutine else _awaiting(made)  # type: ignore[arg-type]
    try:
        return work, work.send(None)
    except StopIteration as stop:
        return None, stop.value


async def _awaiting(work: Awaitable[object]) -> object:
    return await work


async def _all_of(perform: Callable[[], Awaitable[object]], finish: _Finish) -> None:
    """The whole work in a task of its own: where its loop does not run yet."""
    leave()
    try:
        value = await perform()
    except BaseException as error:
        if not finish(None, error):
            raise
    else:
        finish(value, None)


async def _carry(own: Waiting) -> None:
    """A spare task: goes on with work that waits."""
    own._started = True
    parked = own._parked
    cancelled: BaseException | None = None
    try:
        await parked
    except asyncio.CancelledError as error:
        if parked.cancelled():
            raise  # a spare one to the end
        cancelled = error  # the work was given over, and cancelled before this task had its turn
    if own._cancelled:
        cancelled = asyncio.CancelledError()
    work, waits_for, context, finish = parked.result()
    try:
        value = await _rest_of(work, waits_for, context, cancelled)
    except BaseException as error:
        if not finish(None, error):
            raise
    else:
        finish(value, None)


@types.coroutine
def _rest_of(
    work: _Work, waits_for: Any, context: Context, cancelled: BaseException | None
) -> Generator[object, Any, object]:
    """What ``await work`` does after its first step, in ``context``. ``cancelled`` before it: what it waits for is
    cancelled, as a task does it, or else the work itself."""
    thrown = None if cancelled is not None and waits_for is not None and waits_for.cancel() else cancelled
    while True:
        step: Callable[[Any], object] = work.send
        sent: Any = None
        if thrown is None:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - thrown into the task: it is the work's
                thrown = error
        if thrown is not None:
            step, sent, thrown = work.throw, thrown, None
        try:
            waits_for = context.run(step, sent)
        except StopIteration as stop:
            return stop.value
