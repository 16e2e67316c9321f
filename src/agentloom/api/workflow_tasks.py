"""Tasks that work side by side at one place of a run: their paths come from the program, their end is waited for."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from agentloom.runtime.scope import Scope, entered

__all__ = ["Crew"]

T = TypeVar("T")


class Crew(Generic[T]):
    """An async context manager that, left by an error, cancels its tasks and waits for their clean-up."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[T], int] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def spawn(self, key: int, scope: Scope, work: Coroutine[Any, Any, T]) -> None:
        """Start ``work`` as a task whose scope is ``scope``. ``key`` names it and orders it among the others."""
        scope.fresh = True
        with entered(scope):
            context = contextvars.copy_context()
        self._tasks[asyncio.get_running_loop().create_task(work, context=context)] = key

    async def some(self) -> list[tuple[int, T]]:
        """The results of the tasks that end next, by key. Raises the error of the first of them that failed."""
        done, _ = await asyncio.wait(list(self._tasks), return_when=asyncio.FIRST_COMPLETED)
        ended = sorted(((self._tasks.pop(task), task) for task in done), key=lambda pair: pair[0])
        failed = [task for _, task in ended if task.cancelled() or task.exception() is not None]
        if failed:
            failed[0].result()
        return [(key, task.result()) for key, task in ended]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        left = list(self._tasks)
        self._tasks.clear()
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left)
            for task in left:
                if not task.cancelled():
                    task.exception()  # an error of the clean-up gives way to the one that caused it
