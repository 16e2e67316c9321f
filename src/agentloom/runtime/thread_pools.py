"""Pools of threads inside a run: what is handed to a ``ThreadPoolExecutor`` runs in threads of the run.

A pool may be older than the run and outlive it, and its threads too. So a run never uses them: it has workers of its
own for each pool that it hands work to, as many as the pool may have.
"""

from __future__ import annotations

import asyncio
import concurrent.futures._base as base
import concurrent.futures.thread as module
import functools
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agentloom.runtime.baton import Baton
from agentloom.runtime.places import is_library
from agentloom.runtime.scope import Scope, current, enter_scope, entered, here
from agentloom.runtime.strands import Strand, holder
from agentloom.runtime.threads import adopting, carried, context_for, in_stock_loop, numbered

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["in_thread", "install_pools", "unfinished"]

WORKERS = 32
"""Workers of a pool made in a run that does not say how many: not a matter of how many processors there are."""

_real_submit, _real_shutdown = ThreadPoolExecutor.submit, ThreadPoolExecutor.shutdown
_real_init = ThreadPoolExecutor.__init__
_new_future: Callable[..., Any] = cast("Callable[..., Any]", Future)
_real_future: Callable[[Any], None] = cast(Any, Future).__init__


class _Item(NamedTuple):
    """Work that was handed over: ``there`` is the scope of the code that did it, ``scope`` the work's own."""

    future: Future[Any]
    work: Callable[[], Any]
    there: Scope
    scope: Scope

    def run(self, strand: Strand) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        enter_scope(self.scope)
        strand.instead = (self.there, self.scope)
        try:
            result = self.work()
        except BaseException as error:  # noqa: BLE001 - as in any pool: it is the future's
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class RunPool:
    """What stands for ``pool`` in one run."""

    def __init__(self, baton: Baton, pool: ThreadPoolExecutor) -> None:
        self.pool: Any = pool
        self._baton = baton
        self._queue: deque[_Item] = deque()
        self._workers: list[Strand] = []
        self._resting: deque[Strand] = deque()
        self._running: dict[Future[Any], None] = {}

    @classmethod
    def of(cls, baton: Baton, pool: ThreadPoolExecutor) -> RunPool:
        """That of ``pool``, made when it is first used in the run."""
        found = baton.pools.get(id(pool))
        if found is None:
            found = baton.pools[id(pool)] = cls(baton, pool)
        return cast(RunPool, found)

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        pool = self.pool
        if pool._broken:
            raise module.BrokenThreadPool(pool._broken)
        if pool._shutdown:
            raise RuntimeError("cannot schedule new futures after shutdown")
        there = cast(Scope, current())
        future: Future[Any] = _new_future()
        self._queue.append(_Item(future, work, there, there.started("thread")))
        while self._resting:
            worker = self._resting.popleft()
            if not worker.done:
                self._baton.wake(worker)
                return future
        if len(self._workers) < pool._max_workers:
            self._start(there)
        return future

    def _start(self, scope: Scope) -> None:
        pool = self.pool
        name = f"{pool._thread_name_prefix or pool}_{len(self._workers)}"
        strand = Strand(self._baton, name)
        context = context_for(scope)
        life = partial(self._baton.life, strand, lambda: context.run(self._work, strand))
        thread = threading.Thread(target=life, name=name, daemon=True)
        cast(Any, thread).agentloom_strand = strand
        self._workers.append(strand)
        try:
            self._baton.launch(strand, thread)
        except RuntimeError:  # the system has no more threads: those that there are must do
            self._workers.remove(strand)
            if not self._workers:
                raise

    def _work(self, strand: Strand) -> None:
        """The life of a worker. It ends where the pool is shut down, or the run is over."""
        pool, queue = self.pool, self._queue
        if pool._initializer is not None:
            try:
                pool._initializer(*pool._initargs)
            except BaseException:  # noqa: BLE001 - as in any pool: it is broken then
                base.LOGGER.critical("Exception in initializer:", exc_info=True)
                self._break()
                return
        while not strand.free:
            if queue:
                item = queue.popleft()
                self._running[item.future] = None
                item.run(strand)
                del self._running[item.future]
                del item
            elif pool._shutdown:
                return
            else:
                self._resting.append(strand)
                self._baton.rest(strand, self)

    def _break(self) -> None:
        self.pool._initializer_failed()
        while self._queue:
            self._queue.popleft().future.set_exception(module.BrokenThreadPool(self.pool._broken))

    def shutdown(self, mine: Strand, *, wait: bool, cancel_futures: bool) -> None:
        if cancel_futures:
            while self._queue:
                self._queue.popleft().future.cancel()
        self._baton.wake_all(self)
        self._resting.clear()
        if wait:
            for worker in self._workers:
                while worker is not mine and not worker.done and not mine.free:
                    self._baton.block(mine, worker)

    @property
    def left(self) -> list[Future[Any]]:
        """Work that is not done."""
        return [*self._running, *(item.future for item in self._queue)]


# -- stand-ins ---------------------------------------------------------------------------------------------------------


def _submit(self: ThreadPoolExecutor, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    session = adopting()
    if session is None:
        scope = None if here() is None else carried([fn, *args, *kwargs.values()])
        work = fn if scope is None else partial(_carrying, scope, fn)
        return _real_submit(self, work, *args, **kwargs)
    work = partial(fn, *args, **kwargs)
    if in_stock_loop():
        return _inline(work)
    return RunPool.of(Baton.of(session), self).submit(work)


def _carrying(scope: Scope, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    with entered(scope):
        return fn(*args, **kwargs)


def _inline(work: Callable[[], Any]) -> Future[Any]:
    """Under an event loop that is not the run's, a worker could never tell it that it is done: done at once."""
    future: Future[Any] = _new_future()
    future.set_running_or_notify_cancel()
    loop = asyncio.events._get_running_loop()
    asyncio.events._set_running_loop(None)
    try:
        future.set_result(work())
    except BaseException as error:  # noqa: BLE001 - as in any pool: it is the future's
        future.set_exception(error)
    finally:
        asyncio.events._set_running_loop(loop)
    return future


def _shutdown(self: ThreadPoolExecutor, wait: bool = True, *, cancel_futures: bool = False) -> None:
    mine = holder()
    if mine is None:
        _real_shutdown(self, wait, cancel_futures=cancel_futures)
        return
    pool: RunPool | None = mine.baton.pools.get(id(self))
    with mine.baton.aside():  # threads of its own, from outside of the run, end in place
        _real_shutdown(self, wait and bool(self._threads), cancel_futures=cancel_futures)
    if pool is not None:
        pool.shutdown(mine, wait=wait, cancel_futures=cancel_futures)


def _init(self: ThreadPoolExecutor, max_workers: int | None = None, *args: Any, **kwargs: Any) -> None:
    if max_workers is None and adopting() is not None:
        max_workers = WORKERS
    _real_init(self, max_workers, *args, **kwargs)


def _init_future(self: Any) -> None:
    _real_future(self)
    session = adopting()
    if session is not None:
        number = session.counts["futures"] = session.counts.get("futures", 0) + 1
        self.agentloom_number = number


def _hash(self: Any) -> int:
    """Sets of futures iterate in the order of their making in a run, not by their addresses."""
    number = self.__dict__.get("agentloom_number")
    return object.__hash__(self) if number is None else cast(int, number)


def install_pools() -> None:
    """Put the stand-ins in place. Done once in a process."""
    pool, future = cast(Any, ThreadPoolExecutor), cast(Any, Future)
    pool.submit = functools.wraps(cast(Any, _real_submit))(_submit)
    pool.shutdown = functools.wraps(_real_shutdown)(_shutdown)
    pool.__init__ = functools.wraps(_real_init)(_init)
    pool._counter = staticmethod(numbered("pools", pool._counter, 0))
    future.__init__ = functools.wraps(_real_future)(_init_future)
    future.__hash__ = _hash


# -- event loops -------------------------------------------------------------------------------------------------------


def in_thread(
    session: Session, loop: Any, executor: Any, func: Callable[..., Any], args: tuple[Any, ...]
) -> asyncio.Future[Any] | None:
    """``run_in_executor`` of the run's own loop: the future of ``func`` in a thread of the run. None: it is answered
    inline, because nothing of the agent's can be in it, or because the executor is none of threads."""
    if _is_helper(func, args) or session.engine.failure is not None:
        return None
    if executor is None:
        executor = loop._default_executor
        if executor is None:
            executor = loop._default_executor = ThreadPoolExecutor(WORKERS, thread_name_prefix="asyncio")
    if not isinstance(executor, ThreadPoolExecutor):
        return None
    return asyncio.wrap_future(executor.submit(func, *args), loop=loop)


def _is_helper(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether ``func`` is a library's function that is given nothing: an SDK that asks what system it runs on."""
    while isinstance(func, partial):
        if func.keywords or len(func.args) > 1:
            return False
        inner = func.func
        if not func.args:
            func = inner
        elif (
            getattr(inner, "__name__", "") == "run"
            and type(getattr(inner, "__self__", None)).__name__ == "Context"
        ):
            func = func.args[0]
        else:
            return False
    code = getattr(func, "__code__", None)
    if args or code is None or getattr(func, "__closure__", None):
        return False
    return is_library(code.co_filename) and not hasattr(func, "__self__")


def unfinished(executor: object) -> list[Future[Any]]:
    """What was handed to ``executor`` in this run and is not done."""
    mine = holder()
    pool = None if mine is None else mine.baton.pools.get(id(executor))
    return [] if pool is None else cast(RunPool, pool).left
