"""The deterministic inner event loop of one run.

An ``asyncio`` loop without I/O, threads or a clock. It never waits: a driver outside pumps it until nothing is
ready, then delivers one event (sets a future, fires a timer), and pumps again. Given the same program and the same
order of deliveries, every callback runs in the same order in every process. Why it is built so, and what it does not
promise: ``docs/adr/0004-inner-loop.md``.

Contract with the driver:

* `InnerLoop.pump` runs ready callbacks until none is left. Virtual time stands still meanwhile.
* `InnerLoop.next_timer` and `InnerLoop.fire_timer` deliver timers, one at a time.
* ``InnerLoop.drive`` is called when the program itself runs the loop (``asyncio.run`` in a script). It must pump,
  then stop when ``done()`` is true, then deliver the next event, and so on.
"""

# An event loop, its tasks and its handles speak through underscore names of asyncio; there is no public way.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import asyncio.format_helpers
import heapq
import sys
import threading
import weakref
from asyncio import events
from asyncio.base_events import BaseEventLoop
from contextvars import copy_context
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple, cast

from agentloom.errors import LoomError, NotSupported
from agentloom.runtime.deadlines import NEVER_NS, deadline_ns
from agentloom.runtime.loop_io import LoopNotSupported, RefusedIO
from agentloom.runtime.loop_tasks import Future, Task, install

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Coroutine, Generator, Iterator
    from contextvars import Context

    _InThread = Callable[[Any, Callable[..., Any], tuple[Any, ...]], "asyncio.Future[Any] | None"]

__all__ = [
    "Deadlock", "Future", "InnerLoop", "LoopNotSupported", "Task", "drive_virtual", "refused_threadsafe",
]  # fmt: skip

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")

#: Rounds after which `InnerLoop.pump` returns although callbacks are ready. Part of the replay rules: a program that
#: polls (``while not done: await sleep(0)``) meets its next event after exactly so many rounds.
SPIN_ROUNDS = 10_000

_STALE_TIMERS = 64  # cancelled timers that may stay in the heap before it is rebuilt

_EAGER_FACTORY = getattr(asyncio, "eager_task_factory", None)  # Python 3.12 and up
_new_task = Task.__new__
_new_handle = asyncio.Handle.__new__
_init_task: Callable[..., None] = cast("Any", asyncio.Task).__init__


class Deadlock(LoomError, RuntimeError):
    """Nothing is ready, no timer is live and no driver is attached: the program can never go on."""


def _handle(
    callback: Callable[..., object], args: tuple[Any, ...], loop: InnerLoop, context: Context
) -> asyncio.Handle:
    """A handle without the look at debug mode that the stock constructor makes for each callback."""
    handle: Any = _new_handle(asyncio.Handle)
    handle._context = context
    handle._loop = loop
    handle._callback = callback
    handle._args = args
    handle._cancelled = False
    handle._repr = handle._source_traceback = None
    return cast("asyncio.Handle", handle)


class _OrderedWeakSet:
    """A weak set that iterates in insertion order, where ``weakref.WeakSet`` iterates by address."""

    def __init__(self) -> None:
        self._items: weakref.WeakKeyDictionary[Any, None] = weakref.WeakKeyDictionary()

    def add(self, item: object) -> None:
        self._items[item] = None

    def discard(self, item: object) -> None:
        self._items.pop(item, None)

    def clear(self) -> None:
        self._items.clear()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)


def drive_virtual(loop: InnerLoop, done: Callable[[], bool]) -> None:
    """Run ``loop`` in virtual time alone: when nothing is ready, the first timer fires at once.

    The driver of a loop that was given none. Raises `Deadlock` when nothing can happen any more.
    """
    while True:
        quiescent = loop.pump()
        if done():
            return
        deadline = loop.next_timer()
        if deadline is not None:
            loop.fire_timer(deadline)  # also for a program that polls: its time goes by
        elif quiescent:
            raise Deadlock(
                "the loop waits for what can never happen: nothing is ready, no timer is live",
                hint="look for a future, queue or lock that nothing will set",
            )


class InnerLoop(RefusedIO, BaseEventLoop):
    """A pure asyncio loop that an outside driver pumps.

    ``start_ns`` is the virtual time (ns) that the loop starts at. ``on_new_task(context)`` is called for each new
    task before its coroutine starts, in the creator's own context, with the context that the task will run in;
    the order of these calls within one parent identifies the task. ``run_inline(thunk)`` performs what the program
    handed to ``run_in_executor`` and returns its value; without it the thunk is simply called. ``salt`` (below
    2**29, recorded by the caller) keeps the hashes of tasks of many loops in one process apart.
    """

    _ready: deque[asyncio.Handle]
    _closed: bool
    _stopping: bool
    _debug: bool
    _thread_id: int | None
    _task_factory: Callable[..., Any] | None
    _current_handle: asyncio.Handle | None

    def __init__(
        self,
        *,
        start_ns: int = 0,
        on_new_task: Callable[[Context], None] | None = None,
        run_inline: Callable[[Callable[[], object]], object] | None = None,
        salt: int = 0,
    ) -> None:
        install()
        super().__init__()
        self.vt: int = start_ns
        self.on_new_task = on_new_task
        self.run_inline = run_inline
        self.drive: Callable[[InnerLoop, Callable[[], bool]], None] | None = None
        #: Called when the loop is asked for the time; may advance it.
        self.look: Callable[[], None] | None = None
        #: Takes ``(callback, args, context)`` that another thread handed to ``call_soon_threadsafe``.
        self.inject: Callable[[Callable[..., object], tuple[Any, ...], Context], asyncio.Handle] | None = None
        #: Takes ``(executor, func, args)``; the future of ``func`` in a thread of the run, or None: it is to be inline.
        self.in_thread: _InThread | None = None
        #: What stands still until whoever reads from the run asks for more (`hold`), and how that is told.
        self.held: Future[Any] | None = None
        self.more: Callable[[], None] | None = None
        self._clock_resolution = 1e-9
        self._owner = get_ident()
        self._pumping = False
        #: The thread whose hooks for async generators know this loop (`hold_hooks`); 0: they are set for each `pump`.
        self.hooked = 0
        self._timers: list[tuple[int, int, Any]] = []
        self._timer_seq = 0
        self._stale = 0
        self._base_number = salt << 32
        self._task_count = 0
        self._future_count = 0
        self._asyncgens = _OrderedWeakSet()

    # -- what is read from outside

    async def hold(self) -> None:
        """Something was handed out: the run stands still until its reader asks for more, by ``more``. Nothing is
        delivered meanwhile but a cancellation."""
        self.held = self.create_future()
        try:
            await self.held
        finally:
            self.held = None

    # -- virtual time and timers

    def time(self) -> float:
        """Virtual time in seconds."""
        if self.look is not None:
            self.look()
        return self.vt / 1e9

    def advance(self, vt_ns: int) -> None:
        """Move virtual time to ``vt_ns`` unless it is already there or past it. No timer fires."""
        if vt_ns > self.vt:  # noqa: PLR1730 - without a call: this is done for every event
            self.vt = vt_ns

    def next_timer(self) -> int | None:
        """Deadline (virtual ns) of the first live timer; None when there is none that ever fires."""
        timers = self._timers
        while timers:
            deadline, _, handle = timers[0]
            if not handle._cancelled:
                return deadline if deadline < NEVER_NS else None
            heapq.heappop(timers)
            handle._scheduled = False
            self._stale -= 1
        return None

    def fire_timer(self, vt_ns: int) -> None:
        """Make the first live timer ready, at virtual time ``vt_ns`` or its deadline if that is later.

        Live timers of the very same deadline become ready with it, in creation order, as they do on the stock
        loop: together they are one event. Raises RuntimeError when no timer is live.
        """
        deadline = self.next_timer()
        if deadline is None:
            raise RuntimeError("fire_timer: the loop has no live timer")
        self.advance(max(vt_ns, deadline))
        while self.next_timer() == deadline:
            handle = heapq.heappop(self._timers)[2]
            handle._scheduled = False
            self._ready.append(handle)

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Schedule ``callback`` at ``when`` (virtual seconds). Timers of equal deadline fire in creation order."""
        self._check_closed()
        deadline = deadline_ns(when)
        if self._debug:
            self._check_thread()
            self._check_callback(callback, "call_at")
        timer: Any = asyncio.TimerHandle(when, callback, args, self, context)
        if timer._source_traceback:
            del timer._source_traceback[-1]
        self._timer_seq = seq = self._timer_seq + 1
        heapq.heappush(self._timers, (deadline, seq, timer))
        timer._scheduled = True
        return cast("asyncio.TimerHandle", timer)

    def _timer_handle_cancelled(self, handle: Any) -> None:
        """A live timer was cancelled: rebuild the heap when most of it is dead."""
        if not handle._scheduled:
            return
        self._stale += 1
        if self._stale > _STALE_TIMERS and self._stale * 2 > len(self._timers):
            live: list[tuple[int, int, Any]] = []
            for entry in self._timers:
                # The handle being cancelled is not yet marked; it stays until it surfaces.
                if entry[2]._cancelled:
                    entry[2]._scheduled = False
                else:
                    live.append(entry)
            self._stale = 1
            heapq.heapify(live)
            self._timers = live

    # -- callbacks

    def call_soon(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Schedule ``callback`` behind all that is ready."""
        if self._closed:
            raise RuntimeError("Event loop is closed")
        if self._debug:
            checked: Any = super().call_soon(callback, *args, context=context)
            if checked._source_traceback:
                del checked._source_traceback[-1]  # this frame
            return cast("asyncio.Handle", checked)
        # What ``_handle`` does, without a step between: this is done for every event.
        handle: Any = _new_handle(asyncio.Handle)
        handle._context = copy_context() if context is None else context
        handle._loop = self
        handle._callback = callback
        handle._args = args
        handle._cancelled = False
        handle._repr = handle._source_traceback = None
        self._ready.append(handle)
        return cast("asyncio.Handle", handle)

    def call_soon_threadsafe(
        self, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """`call_soon` from the loop's own thread; from another thread only when the driver set ``inject``.

        Raises `NotSupported` for another thread without ``inject``: the moment of its call cannot be replayed.
        """
        self._check_closed()
        own_context = copy_context() if context is None else context
        if get_ident() == self._owner:
            if self._debug:
                self._check_callback(callback, "call_soon_threadsafe")
            handle: Any = self._call_soon(callback, args, own_context)
            if handle._source_traceback:
                del handle._source_traceback[-1]  # this frame
            return cast("asyncio.Handle", handle)
        if self.inject is not None:
            return self.inject(callback, args, own_context)
        raise refused_threadsafe()

    def pump(self, rounds: int = SPIN_ROUNDS) -> bool:
        """Run ready callbacks until nothing is ready; virtual time stands still.

        Works with no loop running, and from inside a callback or task of another loop, which is the running loop
        again afterwards. Returns True when nothing is ready any more; False when `stop` was called, or when
        ``rounds`` rounds went by and callbacks are still ready (a program that polls).
        """
        if not self._ready:
            return True
        if self._pumping:
            raise RuntimeError("this inner loop is already being pumped")
        outer = events._get_running_loop()
        thread_id = self._thread_id
        self._pumping = True
        self._thread_id = self._owner = own = get_ident()
        hooks = sys.get_asyncgen_hooks() if self.hooked != own else None
        if hooks is not None:
            sys.set_asyncgen_hooks(self._asyncgen_firstiter_hook, self._asyncgen_finalizer_hook)
        if self._debug:
            self._set_coroutine_origin_tracking(True)
        events._set_running_loop(self)
        try:
            return self._run_rounds(rounds)
        finally:
            events._set_running_loop(outer)
            self._current_handle = None
            if self._coroutine_origin_tracking_enabled:
                self._set_coroutine_origin_tracking(False)
            if hooks is not None:
                sys.set_asyncgen_hooks(*hooks)
            self._thread_id = thread_id
            self._pumping = False

    def _run_rounds(self, rounds: int) -> bool:
        """The loop of `pump`: one round runs what was ready when it began, as on the stock loop."""
        ready = self._ready
        next_handle = ready.popleft
        handle: Any = None
        for _ in range(rounds):
            for _ in range(len(ready)):
                handle = next_handle()
                if handle._cancelled:
                    continue
                if self._debug:
                    self._current_handle = handle
                try:
                    # What Handle._run does, without its frame.
                    handle._context.run(handle._callback, *handle._args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as exc:  # noqa: BLE001  # as on the stock loop: reported, never lost
                    self._report(handle, exc)
            if self._stopping or not ready:
                break
        handle = None  # breaks a cycle when an exception is under way
        return not ready

    def _report(self, handle: Any, exc: BaseException) -> None:
        """Hand an exception of a callback to the exception handler, in the words of the stock loop."""
        where = asyncio.format_helpers._format_callback_source(handle._callback, handle._args)
        context: dict[str, Any] = {
            "message": f"Exception in callback {where}",
            "exception": exc,
            "handle": handle,
        }
        if handle._source_traceback:
            context["source_traceback"] = handle._source_traceback
        self.call_exception_handler(context)

    # -- tasks and futures

    def next_task_number(self) -> int:
        """The hash of the next task that is constructed directly, not by `create_task`."""
        self._task_count = count = self._task_count + 1
        return self._base_number + count

    def next_future_number(self) -> int:
        """The hash of the next future that is hashed."""
        self._future_count = count = self._future_count + 1
        return self._base_number + count

    def create_future(self) -> Future[Any]:
        """A pending future of this loop."""
        return Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, _T] | Coroutine[Any, Any, _T],
        *,
        name: object = None,
        context: Context | None = None,
        **kwargs: Any,
    ) -> Task[_T]:
        """Schedule a coroutine. ``kwargs`` (``eager_start``) go to the task where the Python has them.

        Unnamed tasks are ``Task-1``, ``Task-2``, ... per loop, so that a name read by the program replays.
        """
        if self._closed:
            self._check_closed()
        own = copy_context() if context is None else context
        if self.on_new_task is not None:
            self.on_new_task(own)
        factory = self._task_factory
        if factory is not None:
            if factory is not _EAGER_FACTORY:
                made: Task[_T] = self._task_from_factory(factory, coro, name, context, own, kwargs)
                return made
            kwargs.setdefault("eager_start", True)
        self._task_count = count = self._task_count + 1
        task: Any = _new_task(cast("Any", Task))
        task.number = self._base_number + count
        _init_task(
            task, coro, loop=self, name=f"Task-{count}" if name is None else name, context=own, **kwargs
        )
        if task._source_traceback:
            del task._source_traceback[-1]
        return cast("Task[_T]", task)

    def _task_from_factory(
        self,
        factory: Callable[..., Any],
        coro: object,
        name: object,
        context: Context | None,
        own: Context,
        kwargs: dict[str, Any],
    ) -> Any:
        """A task from the program's own factory; without a ``context`` argument it copies ``own`` itself."""
        if context is not None:
            kwargs["context"] = context
            task = factory(self, coro, **kwargs)
        else:
            task = own.run(factory, self, coro, **kwargs)
        if name is not None:
            set_name = getattr(task, "set_name", None)
            if set_name is not None:
                set_name(name)
        return task

    def _asyncgen_finalizer_hook(self, agen: Any) -> None:
        """Close a generator that was dropped half-way. No thread check: it runs where the last reference went."""
        self._asyncgens.discard(agen)
        if not self._closed:
            self._ready.append(_handle(self.create_task, (agen.aclose(),), self, copy_context()))

    # -- executors: in threads of the run, or inline

    def run_in_executor(self, executor: Any, func: Callable[[*_Ts], _T], *args: *_Ts) -> asyncio.Future[_T]:
        """Call ``func`` in a thread of the run where ``in_thread`` says so; else at once, here, and the future is done
        one round later.

        Inline ``executor`` is not used. ``func`` runs in a copy of the context and sees no running loop, as in a
        thread. What it raises goes into the future.
        """
        self._check_closed()
        if self._debug:
            self._check_callback(func, "run_in_executor")
        if executor is None:
            self._check_default_executor()
        if self.in_thread is not None:
            made = self.in_thread(executor, func, args)
            if made is not None:
                return made
        future: Future[_T] = Future(loop=self)
        context = copy_context()
        running = events._get_running_loop()
        events._set_running_loop(None)
        try:
            if self.run_inline is None:
                value: Any = context.run(func, *args)
            else:
                value = self.run_inline(lambda: context.run(func, *args))
        except BaseException as exc:  # noqa: BLE001  # every one of them reaches who awaits, as from a worker thread
            self.call_soon(_set_exception, future, exc)
        else:
            self.call_soon(_set_result, future, value)
        finally:
            events._set_running_loop(running)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109  # asyncio's
        """Refuse further ``run_in_executor(None, ...)``, and wait for what was handed to it."""
        self._executor_shutdown_called = True
        executor = self._default_executor
        if executor is not None and self.in_thread is not None:
            from agentloom.runtime.thread_pools import unfinished

            left = unfinished(executor)
            executor.shutdown(wait=False)
            if left:
                await asyncio.wait([asyncio.wrap_future(future, loop=self) for future in left])

    # -- running by the program itself, and the end

    def run_forever(self) -> None:
        """Run until `stop`, through ``drive`` (or in virtual time when no driver is attached)."""
        self._check_closed()
        self._check_running()
        self._thread_id = self._owner = get_ident()
        try:
            if self._stopping:
                self.pump()
            else:
                (self.drive or drive_virtual)(self, self._stop_asked)
        finally:
            self._stopping = False
            self._thread_id = None

    def _stop_asked(self) -> bool:
        return self._stopping

    @property
    def stopping(self) -> bool:
        """Whether `stop` was called and the loop has not come to its stop yet."""
        return self._stopping

    def close(self) -> None:
        """Close the loop: nothing that was scheduled runs any more."""
        super().close()
        # They hold the driver, which holds this loop: a cycle.
        self.drive = self.look = self.more = self.in_thread = self.inject = None
        self._timers.clear()
        self._stale = 0

    def _write_to_self(self) -> None:
        """Nothing sleeps, so nothing needs waking."""

    def _process_events(self, event_list: object) -> None:
        """No selector, no events of it."""

    if TYPE_CHECKING:
        _asyncgens: Any
        _clock_resolution: float
        _coroutine_origin_tracking_enabled: bool
        _default_executor: Any
        _executor_shutdown_called: bool

        def _check_closed(self) -> None: ...
        def _call_soon(self, callback: object, args: object, context: object) -> asyncio.Handle: ...
        def _check_running(self) -> None: ...
        def _check_thread(self) -> None: ...
        def _check_default_executor(self) -> None: ...
        def _check_callback(self, callback: object, method: str) -> None: ...
        def _set_coroutine_origin_tracking(self, enabled: bool) -> None: ...
        def _asyncgen_firstiter_hook(self, agen: Any) -> None: ...


def refused_threadsafe() -> NotSupported:
    """The error for ``call_soon_threadsafe`` in a thread that is not the run's: its moment cannot be replayed."""
    return NotSupported(
        f"call_soon_threadsafe from thread {threading.current_thread().name!r} is not supported inside a run",
        hint="use asyncio.to_thread, or start the thread in a tool, which runs outside the run",
        what="call_soon_threadsafe",
    )


def _set_result(future: Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)


def _set_exception(future: Future[Any], exc: BaseException) -> None:
    if future.done():
        return
    if isinstance(exc, StopIteration):
        # A future cannot carry StopIteration; stock asyncio never completes there (3.11) or wraps it so (3.12).
        wrapped = RuntimeError(
            "StopIteration interacts badly with generators and cannot be raised into a Future"
        )
        wrapped.__cause__ = exc
        exc = wrapped
    future.set_exception(exc)
