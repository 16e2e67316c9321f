"""The inner loop as CPython's tests meet it: with a simple driver, and with the few hooks that the tests poke at."""

from __future__ import annotations

import asyncio
import collections
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, TypeVarTuple

from agentloom.runtime.loop import Deadlock, InnerLoop

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context

_Ts = TypeVarTuple("_Ts")

_SPIN_S = 0.02  # a signal handler in the main thread cannot wake the waiting driver, so it looks this often
_PATIENCE_S = 20.0


class NoSignals:
    """A bridge that accepts signal handlers and never calls them (child watchers of some tests install one)."""

    def add_signal_handler(self, *_args: object) -> None:
        pass

    def remove_signal_handler(self, _sig: int) -> bool:
        return True


class SuiteLoop(InnerLoop):
    """An inner loop that accepts callbacks of other threads and waits for them.

    Timers fire at once, in virtual time, unless another thread is alive that could still hand something over.
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.bridge = NoSignals()
        self.drive = lambda _loop, done: _drive(self, done)
        self.inject = self._from_thread
        self.arrived = threading.Event()

    def _from_thread(self, callback: Any, args: tuple[Any, ...], context: Any) -> Any:
        handle = self._call_soon(callback, args, context)  # a deque append is atomic
        self.arrived.set()
        return handle

    def _run_once(self) -> None:
        """One round, as tests call it by hand."""
        self.pump(rounds=1)


def _drive(loop: SuiteLoop, done: Any) -> None:
    while True:
        loop.arrived.clear()
        quiescent = loop.pump(rounds=1000)
        if done():
            return
        if quiescent:
            _next_event(loop)
        elif (deadline := loop.next_timer()) is not None:
            loop.fire_timer(deadline)  # the program polls: its time goes by


def _next_event(loop: SuiteLoop) -> None:
    """Fire the first timer, in its time, or wait for another thread."""
    start = time.monotonic()
    deadline = loop.next_timer()
    while threading.active_count() > 1:
        if loop.arrived.wait(_SPIN_S) or loop._ready:
            return
        waited = time.monotonic() - start
        if deadline is not None and loop.vt + waited * 1e9 >= deadline:
            break
        if waited > _PATIENCE_S:
            raise Deadlock("no callback arrived from another thread")
    if loop._ready:
        return
    if deadline is None:
        raise Deadlock("nothing is ready, no timer is live, no other thread is alive")
    loop.fire_timer(deadline)


class GeneratorLoop(SuiteLoop):
    """Stands in for ``test.test_asyncio.utils.TestLoop``: a generator of the test says how time moves.

    The generator is sent the deadline of each new timer and yields by how much time then advances.
    """

    def __init__(self, gen: Any = None) -> None:
        super().__init__()
        self._check_on_close = gen is not None
        self._gen = _no_time() if gen is None else gen()
        next(self._gen)
        self.drive = lambda _loop, done: _drive_by_generator(self, done)
        self._new_timers: list[float] = []
        self._transports: Any = weakref.WeakValueDictionary()
        self.readers: dict[int, Any] = {}
        self.writers: dict[int, Any] = {}
        self.reset_counters()

    def reset_counters(self) -> None:
        self.remove_reader_count: Any = collections.defaultdict(int)
        self.remove_writer_count: Any = collections.defaultdict(int)

    def advance_time(self, advance: float) -> None:
        if advance:
            self.advance(self.vt + round(advance * 1e9))

    def call_at(
        self, when: float, callback: Callable[[*_Ts], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._new_timers.append(when)
        return super().call_at(when, callback, *args, context=context)

    def close(self) -> None:
        super().close()
        if self._check_on_close:
            self._check_on_close = False
            try:
                self._gen.send(0)
            except StopIteration:
                return
            raise AssertionError("Time generator is not finished")


def _no_time() -> Any:
    yield


def _drive_by_generator(loop: GeneratorLoop, done: Any) -> None:
    idle = 0
    while True:
        while (deadline := loop.next_timer()) is not None and deadline <= loop.vt + 1:
            loop.fire_timer(loop.vt)
        loop._run_once()
        new, loop._new_timers = loop._new_timers, []
        for when in new:
            loop.advance_time(loop._gen.send(when))
        if done():
            return
        idle = 0 if loop._ready or new else idle + 1
        if idle > 3 and not loop.arrived.wait(_SPIN_S) and threading.active_count() == 1:
            raise Deadlock("the test's clock does not move any more")
