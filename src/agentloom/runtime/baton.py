"""The baton of a run: of all its threads one runs at a time, and hands over where it waits.

A thread of a run (``Strand``) hands the baton over at host calls, at locks, queues and joins, and at its end. Who is
ready goes on, in order; when nobody is, the next recorded (or, live, the next arriving) event decides. So the order of
everything that the threads do follows from the order of deliveries, and a replay repeats it.

Whoever hands the baton over decides who gets it. When nobody is ready and nothing has arrived the baton lies free, and
the thread in which something arrives takes it up. In an async run the loop's own thread keeps it meanwhile.
"""

from __future__ import annotations

import contextvars
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

from agentloom.errors import ControlFlow, NotSupported, Stopped, StoreFailed
from agentloom.format.words import kind_of
from agentloom.runtime import plainly, thread_locks
from agentloom.runtime.calls import Arrival, Call, CallSpec
from agentloom.runtime.deadlines import NEVER_NS, deadline_ns
from agentloom.runtime.engine import Delivery
from agentloom.runtime.left_out import taking_part
from agentloom.runtime.parking import Gate, Mutex
from agentloom.runtime.scope import Scope, entered
from agentloom.runtime.strands import STRANDS, WAITING, Strand, holder

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["Baton", "parallel"]

_NOBODY: Any = object()
"""Owner of the baton while it is decided who gets it."""

_log = logging.getLogger("agentloom.threads")

STALLED = 10.0
"""Seconds after which it is said that one thread of a run keeps the others waiting."""

PATIENCE = 10.0
"""Seconds for which a run that cannot go on waits for threads that are not its own, before it says so."""

_start_thread = threading.Thread.start


class Baton:
    """The scheduler of one run's threads. Made by the first of them, in the run's own thread; there to its end."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.over = False
        self.live = 0
        """Strands beside the run's own that can do something."""
        self.pools: dict[int, Any] = {}
        """What stands for pools in this run (``thread_pools``), by the identity of the pool."""
        self.main = main = Strand(self, "MainThread")
        self.owner: Any = main
        self._strands: dict[Strand, None] = {}
        self._ready: deque[Strand] = deque()
        self._calls: dict[Strand, None] = {}
        self._blocked: dict[Strand, None] = {}
        self._outside: list[Strand] = []
        self._signal = Gate()
        self._watching: Strand | None = None
        """Who waits, while the run stands still, whether a thread outside does something."""
        self._mutex = Mutex()
        self._lending = False
        self._said_stalled = False
        self._pressed_once = self._cancelling = False
        main.ident = get_ident()
        main.before = self.enter()
        session.baton = self
        session.source.on_arrival = self.arrived
        thread_locks.install()

    @classmethod
    def of(cls, session: Session) -> Baton:
        """The baton of a run, made where there is none yet."""
        return session.baton or cls(session)

    # -- what strands do -----------------------------------------------------------------------------------------

    @property
    def beside(self) -> bool:
        """Whether a host call of the running code lets others go on: not where it is the only strand, and not in the
        thread of an event loop."""
        return self.live > 0 and (self.session.loop is None or self.owner is not self.main)

    def call(self, spec: CallSpec, scope: Scope, perform: Callable[[Call], object]) -> object:
        """Make a host call from a strand: the baton passes on until its outcome is delivered."""
        engine, source = self.session.engine, self.session.source
        call = engine.begin(spec, scope)
        strand = holder()
        if strand is None or strand.baton is not self:
            raise RuntimeError(f"{spec.type} {spec.name} was called in a thread that does not hold the baton")
        call.sink = strand
        strand.call = call
        self._calls[strand] = None
        came: list[Arrival] = []
        if strand.apart:
            source.start_blocking(call, partial(perform, call))
            self._pass_on(strand)
        else:
            work = source.prepare_blocking(call, partial(_kept, came, perform, call))
            self._next()
            if work is not None:
                work()
            self._park(strand)
        delivery, strand.delivery = strand.delivery, None
        strand.call = None
        if delivery is None:
            self._raise_kept(strand)
            if not strand.free:
                engine.guard()
            stock = self.session.stock
            if stock is not None and engine.ended and not call.ended:
                return stock.came_late(call, scope, came)
            raise Stopped(f"the run ended before {call.id} did")
        return delivery.unwrap()

    def block(
        self, strand: Strand, key: object, deadline: int | None = None, *, unsure: bool = False
    ) -> bool:
        """Hand the baton over until ``wake`` or ``woken_by(key)``, or until ``deadline`` (virtual ns): then False.
        Raises what ends the wait otherwise. ``strand.free`` afterwards: the run is over, and the wait was not."""
        if self.over:
            strand.free = True
            return True
        strand.key, strand.deadline, strand.unsure = key, deadline, unsure
        self._blocked[strand] = None
        WAITING.setdefault(id(key), []).append(strand)
        try:
            self._pass_on(strand)
        finally:
            self._unblock(strand)
        self._raise_kept(strand)
        late, strand.late = strand.late, False
        return not late

    def _raise_kept(self, strand: Strand) -> None:
        error, strand.error = strand.error, None
        if error is not None:
            raise error

    def deadline(self, seconds: float) -> int:
        """``seconds`` from now, in virtual time (ns)."""
        return deadline_ns(self.session.engine.vt / 1e9 + seconds)

    def next_timer(self) -> int | None:
        """The first deadline that a strand waits for."""
        deadline = min((one.deadline for one in self._blocked if one.deadline is not None), default=None)
        return None if deadline is None or deadline >= NEVER_NS else deadline

    def scope_of(self, scope: Scope) -> Scope:
        """What ``scope`` is in the running thread: contexts are copied into threads, and scopes with them."""
        strand = STRANDS.get(get_ident())
        if strand is None or strand.baton is not self or strand.instead is None:
            return scope
        there, here = strand.instead
        return here if scope is there else scope

    # -- threads of the run ----------------------------------------------------------------------------------------

    def enrol(self, strand: Strand) -> None:
        """A thread was started whose work is ``life``: it has its turn."""
        self._strands[strand] = None
        self.live += 1
        self._ready.append(strand)

    def life(self, strand: Strand, work: Callable[[], object]) -> None:
        """What the thread of a strand does: wait for its turn, do ``work``, hand on. Errors are in ``strand.error``."""
        strand.ident = ident = get_ident()
        STRANDS[ident] = strand
        try:
            self._park(strand)
            self._raise_kept(strand)
            strand.value = work()
        except BaseException as error:  # noqa: BLE001 - kept, and raised where the strand is joined, if it is
            strand.error = error
        finally:
            if STRANDS.get(ident) is strand:
                del STRANDS[ident]
            self._finish(strand)

    def start(self, context: contextvars.Context, work: Callable[[], object], name: str) -> Strand:
        """Start a branch of ``parallel``. Raises ``RuntimeError`` where the system has no more threads."""
        strand = Strand(self, name, daemon=True, apart=True)
        thread = threading.Thread(
            target=self.life, args=(strand, partial(context.run, work)), name=name, daemon=True
        )
        self.launch(strand, thread)
        return strand

    def launch(
        self, strand: Strand, thread: threading.Thread, start: Callable[..., None] | None = None
    ) -> None:
        """Start the thread of a strand. That it has begun is waited for in place: nobody else goes on meanwhile."""
        with self.aside():
            (start or _start_thread)(thread)
        self.enrol(strand)

    @contextmanager
    def aside(self) -> Generator[None]:
        """For the block, what the holder waits for is waited for in place, and the baton does not move."""
        owner, self.owner = self.owner, _NOBODY
        try:
            yield
        finally:
            self.owner = owner

    def _finish(self, strand: Strand) -> None:
        strand.done = True
        if self._strands.pop(strand, _NOBODY) is not _NOBODY and not strand.idle:
            self.live -= 1
        if strand.free or self.over:
            for waiting in [*WAITING.get(id(strand), ())]:
                self.wake_from_outside(waiting)
            return
        self.wake_all(strand)
        if self.main.key is self:
            self.wake(self.main)
        self._next()

    def rest(self, strand: Strand, key: object) -> None:
        """``strand`` of a pool has no work: it waits for ``key``, and keeps nobody waiting."""
        strand.idle = True
        self.live -= 1
        if self.main.key is self:
            self.wake(self.main)
        try:
            self.block(strand, key)
        finally:
            strand.idle = False
            self.live += 1

    def turn(self, strand: Strand) -> None:
        """Whoever is ready goes on first."""
        if self._ready:
            self._ready.append(strand)
            self._pass_on(strand)

    def poll(self, strand: Strand) -> bool:
        """``strand`` polls for what others are to do: they go on first, those too whose event has arrived. False: there
        is none of either."""
        if not self._ready:
            self._look_again()
        if not self._ready:
            engine = self.session.engine
            with self._mutex:
                engine.guard()
                arrival = self.session.source.turn(self.next_timer())
            if arrival is None:
                return False
            engine.deliver(arrival)
            while not self._ready and self._deliver_one():
                pass
            self.owner = strand
        self.turn(strand)
        return True

    def let_go(self, strand: Strand) -> None:
        """The running strand is no part of the run from here on: it goes on as an ordinary thread."""
        STRANDS.pop(strand.ident, None)
        self._strands.pop(strand, None)
        self.live -= 1
        strand.free = True
        self._next()

    # -- who goes on -----------------------------------------------------------------------------------------------

    def arrived(self) -> None:
        """Something has arrived; called in whatever thread it arrived in. Where the baton lies free it is taken up."""
        with self._mutex:
            free = self.owner is None
            if free:
                self.owner = _NOBODY
        if free:
            self._next()
        elif self.session.driver is not None:
            self.session.driver.wake_up()

    def wake(
        self, strand: Strand, delivery: Delivery | None = None, error: BaseException | None = None
    ) -> None:
        """``strand`` waits no more: it is ready. Does nothing where it was woken before."""
        if self._calls.pop(strand, _NOBODY) is _NOBODY and strand not in self._blocked:
            return
        self._unblock(strand)
        strand.delivery = delivery
        if error is not None:
            strand.error = error
        self._ready.append(strand)

    def wake_all(self, key: object) -> None:
        """Wake who waits for ``key``, in order."""
        for waiting in [*WAITING.get(id(key), ())]:
            if waiting.baton is self:
                self.wake(waiting)

    def wake_from_outside(self, strand: Strand) -> None:
        """A thread that is not of this run did what ``strand`` waits for. It is woken where the run stands still, or as
        an event of its own: when that was is no matter of the run's own order."""
        with self._mutex:
            self._outside.append(strand)
        self._signal.open()
        self.arrived()

    def _unblock(self, strand: Strand) -> None:
        if self._blocked.pop(strand, _NOBODY) is _NOBODY:
            return
        waiting = WAITING.get(id(strand.key))
        if waiting is not None and strand in waiting:
            waiting.remove(strand)
            if not waiting:
                del WAITING[id(strand.key)]
        strand.key = strand.deadline = None

    def _pass_on(self, strand: Strand) -> None:
        self._next()
        self._park(strand)

    def _park(self, strand: Strand) -> None:
        """Wait until the baton comes to ``strand``."""
        late = False
        while self.owner is not strand and not strand.free:
            seconds = None
            watching = self._watching is strand
            if watching:
                seconds = PATIENCE
            elif strand.deadline is not None and not late:
                seconds = (strand.deadline - self.session.source.now()) / 1e9
            how = strand.gate.wait(STALLED if seconds is None else seconds)
            if how == "late" and watching:
                self._give_up()
            elif how == "late" and seconds is None:
                self._say_stalled(strand)
            elif how == "late":
                late = True
                self.arrived()
            elif how == "pressed":
                self._pressed()
        if not strand.free:
            self.session.engine.take()

    def _say_stalled(self, strand: Strand) -> None:
        """``strand`` could go on, and the one that has the baton keeps it: it computes, or waits past every lock."""
        owner = self.owner
        if strand in self._ready and isinstance(owner, Strand) and not self._said_stalled:
            self._said_stalled = True
            _log.warning(
                "%s in %s holds up the threads of its run: one of them runs at a time, and they change over at host"
                " calls, locks, queues and joins only",
                owner.name,
                self._place(owner),
            )

    def _give(self, strand: Strand) -> None:
        self.owner = strand
        strand.gate.open()

    def _next(self) -> None:
        """Decide who goes on. The calling thread has the baton, and has it no more afterwards."""
        self.owner = _NOBODY
        self._watching = None
        self.session.engine.take()
        while not self.over:
            if not self._ready:
                self._look_again()
            if self._ready:
                self._give(self._ready.popleft())
                return
            if self._lending:
                self._give(self.main)
                return
            if not (self._stand_still() if self._stands_still else self._deliver_one()):
                return

    def _look_again(self) -> None:
        """Who waits for a lock whose holder is not known may find it free."""
        for strand in [one for one in self._blocked if one.unsure]:
            if thread_locks.is_free(strand.key):
                self.wake(strand)

    def _deliver_one(self) -> bool:
        """Deliver the next event. False: nothing has arrived, and the baton lies free now."""
        engine = self.session.engine
        try:
            with self._mutex:
                engine.guard()
                arrival = self.session.source.poll(self.next_timer())
                if arrival is None and self._outside:
                    arrival = Arrival("turn", vt=engine.vt)
                if arrival is None:
                    self.session.source.rests(self.next_timer())
                    self.owner = None
                    return False
            self.hand_over(engine.deliver(arrival))
        except BaseException as failure:  # noqa: BLE001 - handed to every strand
            return self._fail(failure)
        return True

    def _fail(self, failure: BaseException) -> bool:
        """The run is over: every strand is woken, and its next host call stops it again. False: there is none."""
        engine = self.session.engine
        if engine.failure is None and isinstance(failure, ControlFlow | StoreFailed):
            engine.failure = failure
        for strand in [*self._calls]:
            self.wake(strand, Delivery(None, "outcome", error=failure))
        joining = {one: None for one in self._blocked if isinstance(one.key, Strand) or one.key is self}
        for strand in [one for one in self._blocked if one not in joining and not one.idle]:
            self.wake(strand, error=failure)
        if not self._ready and self.main.key is self:
            self.main.late = True
            self.wake(self.main)
        for strand in joining if not self._ready else ():  # the others come to their end first
            self.wake(strand, error=failure)
        if not self._ready:
            self.owner = None
        return bool(self._ready)

    def hand_over(self, delivery: Delivery) -> None:
        """Give what was delivered to whom it is for."""
        driver = self.session.driver
        sink = delivery.call.sink if delivery.call is not None else None
        if isinstance(sink, Strand):
            self.wake(sink, delivery)
        elif delivery.kind == "timer":
            self.fire(self.next_timer())
        elif delivery.kind == "turn":
            self.from_outside()
        elif delivery.kind == "cancel":
            self._cancel()
        elif driver is not None:
            driver.hand_over(delivery)

    def fire(self, deadline: int | None) -> None:
        """The time of strands that wait until ``deadline`` is over."""
        for strand in [one for one in self._blocked if one.deadline is not None and one.deadline == deadline]:
            strand.late = True
            self.wake(strand)

    # -- what comes from outside -----------------------------------------------------------------------------------

    @property
    def _stands_still(self) -> bool:
        """Whether nothing that the run itself waits for can come."""
        return not self._calls and not self._cancelling and self.next_timer() is None

    def _stand_still(self) -> bool:
        """Nothing of the run can go on: a thread outside must do something, or nobody ever will. False: the baton lies
        free until then."""
        main = self.main
        failure = self.session.engine.failure
        if failure is not None:
            return self._fail(failure)
        if main.key is self:
            main.late = True
            self.wake(main)
            return True
        waiting = next((one for one in (main, *self._blocked) if one in self._blocked and not one.idle), None)
        if waiting is None:
            self.owner = None
            return False
        if not self._outside and not self._others():
            self._deadlock()
            return True
        with self._mutex:
            if not self._outside:
                self.owner, self._watching = None, waiting
                waiting.gate.open()
                return False
        self.from_outside()
        return True

    def _give_up(self) -> None:
        """Nothing came from outside either."""
        with self._mutex:
            if self.owner is not None:
                return
            self.owner = _NOBODY
        self._deadlock()
        self._next()

    def from_outside(self) -> None:
        """Wake who waits for threads outside of the run, once one of them has done something."""
        if not self._outside:
            self._signal.wait(PATIENCE)
        with self._mutex:
            woken, self._outside = self._outside, []
        for strand in woken:
            self.wake(strand)

    @property
    def outside(self) -> bool:
        """Whether a thread outside of the run did what a strand waits for."""
        return bool(self._outside)

    def _others(self) -> bool:
        """Whether there are threads that are not this run's."""
        for thread in threading.enumerate():
            strand = getattr(thread, "agentloom_strand", None) or STRANDS.get(thread.ident or 0)
            if strand is None or strand.baton is not self or strand.free:
                return True
        return False

    def _deadlock(self) -> None:
        from agentloom.runtime.loop import Deadlock

        waiting = [one for one in self._blocked if not one.idle]
        waiting.sort(key=lambda one: one is not self.main)
        words = "; ".join(f"{one.name} in {self._place(one)}" for one in waiting[:6])
        for strand in waiting:
            error = Deadlock(
                f"every thread of the run waits, and nothing is left that could wake one: {words}",
                hint="look for a lock that is never released, or a queue or event that nobody fills or sets",
            )
            self.wake(strand, error=error)

    def _place(self, strand: Strand) -> str:
        frame = sys._current_frames().get(strand.ident)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            name = self.session.engine.places.name(frame.f_code)
            if name is not None:
                return f"{name}:{frame.f_lineno} {frame.f_code.co_name}"
            frame = frame.f_back
        return "a library"

    # -- interruptions ---------------------------------------------------------------------------------------------

    def _pressed(self) -> None:
        """Ctrl-C reached the run's own thread while it waits. The first press is one recorded event; at the second the
        run is given up, and nothing more of it is recorded."""
        first, self._pressed_once = not self._pressed_once, True
        if first and self.session.source.interrupt():
            self._cancelling = True
            self.arrived()
            return
        stopped = KeyboardInterrupt()
        self.session.engine.failure = self.session.engine.failure or stopped
        self._abandon(stopped)
        raise stopped

    def _cancel(self) -> None:
        """Somebody outside ended the run: the agent's own thread is interrupted where it waits; where that is
        ``parallel``, the calls of its branches are cancelled, in the order they were made."""
        self._cancelling = False
        main = self.main
        engine = self.session.engine
        if main.group:
            for strand in [one for one in self._calls if one.apart]:
                call = strand.call
                if call is not None:
                    engine.end_by_agent(call, "cancelled")
                self.wake(strand, Delivery(call, "cancel", error=KeyboardInterrupt()))
            for strand in [one for one in self._blocked if one.apart and not one.group]:
                self.wake(strand, error=KeyboardInterrupt())
        elif main in self._calls and main.call is not None:
            engine.end_by_agent(main.call, "cancelled")
            self.wake(main, Delivery(main.call, "cancel", error=KeyboardInterrupt()))
        elif main in self._blocked:
            self.wake(main, error=KeyboardInterrupt())

    # -- event loops -----------------------------------------------------------------------------------------------

    def enter(self) -> Strand | None:
        """The run's own thread is its strand from now on; what it was before. Loops of several runs may share it."""
        before = STRANDS.get(self.main.ident)
        STRANDS[self.main.ident] = self.main
        return before

    def leave(self, before: Strand | None) -> None:
        """The counterpart of ``enter``."""
        if before is None:
            STRANDS.pop(self.main.ident, None)
        else:
            STRANDS[self.main.ident] = before

    def lend(self) -> bool:
        """The loop has come to rest: strands that are ready go on until none is, or the loop has something to do.
        Called by the driver, in the loop's thread; whether there were any."""
        if not self._ready:
            self._look_again()
        if not self._ready:
            return False
        self._lending = True
        try:
            self._pass_on(self.main)
        finally:
            self._lending = False
        return True

    def loop_ready(self) -> None:
        """A strand gave the loop something to do."""
        if self._lending and self.main not in self._ready:
            self._ready.append(self.main)

    # -- the end ---------------------------------------------------------------------------------------------------

    @property
    def drained(self) -> bool:
        """Whether no thread is left that is no daemon and can go on."""
        return not self._left or (not self._ready and not self._calls and self.next_timer() is None)

    @property
    def _left(self) -> bool:
        """Whether strands are left that are to come to their end before the run does; after a failure all of them."""
        failed = self.session.engine.failure is not None
        return any((failed or not one.daemon) and not one.idle for one in self._strands)

    def drain(self) -> None:
        """The agent has returned: its threads that are no daemons come to their end, as Python lets them; those that
        wait for what will not happen in this run are left. Then ``end``."""
        before = self.enter()
        if before is not self.main:
            self.main.before = before
        try:
            while self._left:
                if not self.block(self.main, self):
                    break
        finally:
            self.end()

    def end(self) -> None:
        """Nothing of the run goes on any more. Threads that are left are let go; their calls end cancelled."""
        if self.over and self.session.baton is not self:
            return
        engine = self.session.engine
        engine.take()
        for strand in [*self._calls]:
            if strand.call is not None and engine.failure is None and not self._leaves(strand.call):
                engine.end_by_agent(strand.call, "cancelled")
        self._abandon(engine.failure)
        thread_locks.uninstall()
        if STRANDS.get(self.main.ident) is self.main:
            self.leave(self.main.before)
        self.session.baton = None
        self.session.source.on_arrival = None

    def _leaves(self, call: Call) -> bool:
        """Whether a call that is under way goes on without the run: in place of a loop or a process that ends too."""
        stock = self.session.stock
        return stock is not None and stock.leaves_behind(call)

    def _abandon(self, failure: BaseException | None) -> None:
        """Every strand but the run's own goes on as an ordinary thread; with ``failure`` where there is one."""
        self.over = True
        for strand in [*self._strands]:
            self._unblock(strand)
            if failure is not None and strand.error is None:
                strand.error = (
                    failure if isinstance(failure, ControlFlow) else Stopped("the run was given up")
                )
            strand.free = True
            STRANDS.pop(strand.ident, None)
            strand.gate.open()
        self._strands.clear()
        self._calls.clear()
        self._ready.clear()
        self.owner = self.main


def _kept(came: list[Arrival], perform: Callable[[Call], object], call: Call) -> object:
    """Do the work of a call, and keep what comes of it for who asked: the run may be over by then."""
    try:
        value = perform(call)
    except BaseException as error:
        came.append(Arrival("outcome", call, "error", error=error))
        raise
    came.append(Arrival("outcome", call, value=value))
    return value


def parallel(*branches: Callable[[], Any]) -> list[Any]:
    """Call functions without arguments side by side; their results in argument order.

    All run to their end; then the first error in argument order, if any, is raised (an interruption before any
    other). Between host calls only one runs at a time: it speeds up waiting, not computing, and needs no locks.
    """
    scope = taking_part("parallel")
    session = None if scope is None else scope.session
    strand = holder()
    if session is not None and session.loop is not None and (strand is None or strand is strand.baton.main):
        raise NotSupported(
            "agentloom.sync.parallel() was called in an async agent",
            hint="await agentloom.parallel(...) there",
        )
    for number, branch in enumerate(branches, start=1):
        if not callable(branch):
            raise TypeError(f"parallel() takes functions; argument {number} is {kind_of(branch)}")
    if scope is None or session is None:
        return plainly.side_by_side(branches)
    if not branches:
        return []
    session.engine.guard()
    baton = Baton.of(session)
    strand = holder() or baton.main
    made: list[Strand] = []
    for branch in branches:
        with entered(scope.started("parallel")):
            context = contextvars.copy_context()
        try:
            made.append(baton.start(context, branch, "agentloom parallel"))
        except RuntimeError as error:  # the system has no more threads: an error of this branch
            none = Strand(baton, "agentloom parallel")
            none.done, none.error = True, error
            made.append(none)
    before, strand.group = strand.group, True
    try:
        for one in made:
            while not one.done and not strand.free:
                baton.block(strand, one)
    finally:
        strand.group = before
    errors = [one.error for one in made if one.error is not None]
    for failure in sorted(errors, key=lambda one: isinstance(one, Exception)):
        raise failure
    return [one.value for one in made]
