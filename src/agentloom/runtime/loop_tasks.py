"""Tasks and futures whose sets iterate in the same order in every process.

asyncio keeps tasks in sets (``asyncio.wait``, ``TaskGroup``, ``all_tasks``), and a stock task hashes by its
address, so the order in which it cancels or visits them differs from process to process. The classes here hash by
a number counted per loop. Three places of ``asyncio.tasks`` order things by address before any task exists, or mix
tasks of several loops; `install` gives that module its own ``set`` and ``list`` for them (see each function).
"""

# An event loop, its tasks and its handles speak through underscore names of asyncio; there is no public way.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import asyncio.events
import asyncio.tasks
import builtins
from typing import TYPE_CHECKING, Any, TypeVar

from agentloom.runtime.collecting import is_inner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agentloom.runtime.loop import InnerLoop

__all__ = ["Future", "Task", "install"]

_T = TypeVar("_T")


class Future(asyncio.Future[_T]):
    """A future of an inner loop. Its hash is a number of the loop, drawn when it is first hashed."""

    __slots__ = ("number",)
    number: int

    def __hash__(self) -> int:
        """The number of this future; the program's own order of hashing decides it."""
        try:
            return self.number
        except AttributeError:
            loop: InnerLoop = self.get_loop()  # type: ignore[assignment]
            self.number = number = loop.next_future_number()
            return number


class Task(asyncio.Task[_T]):
    """A task of an inner loop. Its hash is a number of the loop, drawn when it is created."""

    __slots__ = ("number",)
    number: int

    def __hash__(self) -> int:
        """The number of this task; `InnerLoop.create_task` sets it, a direct construction draws it here."""
        try:
            return self.number
        except AttributeError:
            loop: InnerLoop = self.get_loop()  # type: ignore[assignment]
            self.number = number = loop.next_task_number()
            return number


def _number_of_gather(future: Any) -> int:
    """Hash of the future that ``asyncio.gather`` returns: numbered like a `Future` on an inner loop."""
    next_number: Callable[[], int] | None = getattr(future.get_loop(), "next_future_number", None)
    if next_number is None:
        return object.__hash__(future)
    try:
        number: int = future.number
    except AttributeError:
        future.number = number = next_number()
    return number


def _set_in_argument_order(*args: Iterable[Any]) -> object:
    """Stands in for ``set`` inside ``asyncio.tasks``.

    ``as_completed`` and ``wait`` start with ``set(fs)``; a set of coroutines iterates by address, and
    ``as_completed`` makes its tasks in that order. On an inner loop the answer is a dict of the members in argument
    order, which is all that the two functions ask of it. Everywhere else it is the builtin.
    """
    if args and is_inner(asyncio.events._get_running_loop()):
        return dict.fromkeys(*args)
    members: builtins.set[Any] = builtins.set(*args)
    return members


def _number(task: object) -> int:
    return getattr(task, "number", -1)


def _list_in_number_order(*args: Iterable[Any]) -> list[Any]:
    """Stands in for ``list`` inside ``asyncio.tasks``.

    ``all_tasks`` starts from ``list(...)`` of process-wide sets, whose order depends on what other loops did.
    Sorting by number (stable, tasks of other loops first) gives each inner loop its own tasks in creation order.
    """
    items: list[Any] = builtins.list(*args)
    items.sort(key=_number)
    return items


def install() -> None:
    """Give ``asyncio.tasks`` its ordered ``set`` and ``list``. Idempotent; changes nothing on other loops.

    Module globals are set, not ``asyncio.as_completed`` itself, so that a program that did ``from asyncio import
    as_completed`` before is covered too.
    """
    module = asyncio.tasks
    if module.__dict__.get("set") is _set_in_argument_order:
        return
    gathering: Any = module.__dict__["_GatheringFuture"]
    gathering.__hash__ = _number_of_gather
    module.__dict__["list"] = _list_in_number_order
    module.__dict__["set"] = _set_in_argument_order
