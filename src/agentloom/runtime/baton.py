"""``parallel`` for sync agents: threads of which one runs at a time, handing a baton over at host calls and joins.

While every strand waits for a host call, the next recorded (or, live, the next arriving) outcome decides who goes on.
So the order of everything that the strands do is the order of deliveries, and a replay repeats it.

The agent's own thread only waits: a Ctrl-C that reaches it is handed to the strands as one recorded event, and is
never raised in the middle of an entry.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from agentloom.errors import ControlFlow, NotSupported
from agentloom.format.words import kind_of
from agentloom.runtime.calls import Call, CallSpec
from agentloom.runtime.engine import Delivery
from agentloom.runtime.scope import Scope, entered, require
from agentloom.runtime.session import Session

__all__ = ["Baton", "parallel"]


class _Strand:
    """One thread of a run. ``go`` is set when it holds the baton; ``children`` counts strands that it waits for."""

    __slots__ = ("children", "delivery", "error", "go", "parent", "value", "waiting")

    def __init__(self, parent: _Strand | None) -> None:
        self.go = threading.Event()
        self.parent = parent
        self.children = 0
        self.waiting: Call | None = None
        self.delivery: Delivery | None = None
        self.value: Any = None
        self.error: BaseException | None = None


Branches = list[tuple[contextvars.Context, Callable[[], Any]]]
_strand: contextvars.ContextVar[_Strand | None] = contextvars.ContextVar("agentloom.strand", default=None)


class Baton:
    """The scheduler of one run's strands. Exists while the run is inside its outermost ``parallel``."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ready: deque[_Strand] = deque()
        self._waiting: list[_Strand] = []
        self._arrived = threading.Event()
        session.source.on_arrival = self._arrived.set

    # -- what strands do -----------------------------------------------------------------------------------------

    def call(self, spec: CallSpec, scope: Scope, perform: Callable[[Call], object]) -> object:
        """Make a host call from a strand: the baton passes on until its outcome is delivered."""
        engine = self._session.engine
        call = engine.begin(spec, scope)
        strand = _strand.get()
        if strand is None:
            raise RuntimeError(
                f"{spec.type} {spec.name} was called inside parallel(), but in none of its branches"
            )
        call.sink = strand
        strand.waiting = call
        self._waiting.append(strand)
        self._session.source.start_blocking(call, partial(perform, call))
        self._pass_on(strand)
        delivery, strand.delivery = strand.delivery, None
        if delivery is None:
            engine.guard()
            raise RuntimeError(f"strand woken without a delivery for {call.id}")
        return delivery.unwrap()

    def conduct(self, branches: Branches) -> list[_Strand]:
        """Run the outermost branches, in a thread of their own; called, and waited in, by the agent's thread.

        The first Ctrl-C there is delivered to every strand that waits for a call; at the second the run is given up.
        """
        finished = threading.Event()
        made: list[_Strand] = []

        def work() -> None:
            self._session.engine.take()
            made.extend(self.fork(_Strand(None), branches))
            finished.set()

        conductor = threading.Thread(target=work, name="agentloom parallel", daemon=True)
        asked = False
        while not finished.is_set():
            try:
                if conductor.ident is None:
                    conductor.start()
                finished.wait()
            except KeyboardInterrupt as stopped:
                if conductor.ident is None:
                    raise
                if asked or not self._session.source.interrupt():
                    # No entry may follow while strands are left behind: the trace stays without an end.
                    self._session.engine.failure = self._session.engine.failure or stopped
                    self._arrived.set()
                    raise
                asked = True
        self._session.engine.take()
        return made

    def fork(self, strand: _Strand, branches: Branches) -> list[_Strand]:
        """Run branches as strands below ``strand``, which waits for all of them."""
        made = [_Strand(strand) for _ in branches]
        strand.children = len(made)
        for child, (context, branch) in zip(made, branches, strict=True):
            context.run(_strand.set, child)
            thread = threading.Thread(target=context.run, args=(self._run, child, branch), daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more threads: an error of this branch
                child.error = error
                strand.children -= 1
            else:
                self._ready.append(child)
        if strand.children:
            self._pass_on(strand)
        return made

    # -- who goes on ---------------------------------------------------------------------------------------------

    def _run(self, strand: _Strand, branch: Callable[[], Any]) -> None:
        strand.go.wait()
        self._session.engine.take()
        try:
            strand.value = branch()
        except BaseException as error:  # noqa: BLE001 - kept, and raised where the strands are joined
            strand.error = error
        parent = strand.parent
        if parent is not None:
            parent.children -= 1
            if parent.children == 0:
                self._ready.append(parent)
        self._next().go.set()

    def _pass_on(self, strand: _Strand) -> None:
        """Give the baton to whoever is next and wait for it to come back."""
        strand.go.clear()
        chosen = self._next()
        if chosen is not strand:
            chosen.go.set()
            strand.go.wait()
        strand.go.clear()
        self._session.engine.take()

    def _next(self) -> _Strand:
        """Who goes on: a strand that is ready, in order; else the one whose outcome is delivered next."""
        while not self._ready:
            self._deliver_one()
        return self._ready.popleft()

    def _deliver_one(self) -> None:
        engine = self._session.engine
        try:
            engine.guard()
            arrival = self._session.source.poll(None)
            if arrival is None:
                self._arrived.wait()
                self._arrived.clear()
                return
            delivery = engine.deliver(arrival)
            if delivery.kind == "cancel":
                self._cancel_all()
                return
        except BaseException as failure:  # noqa: BLE001 - handed to every strand
            # The run is over: every strand is woken, and its next host call stops it again.
            if engine.failure is None and isinstance(failure, ControlFlow):
                engine.failure = failure
            while self._waiting:
                self._wake(self._waiting[0], Delivery(None, "outcome", error=failure))
            return
        woken = delivery.call.sink if delivery.call is not None else None
        if isinstance(woken, _Strand):
            self._wake(woken, delivery)

    def _cancel_all(self) -> None:
        """Somebody outside ended the run: calls that are waited for are cancelled, in the order they were made."""
        while self._waiting:
            strand = self._waiting[0]
            if strand.waiting is not None:
                self._session.engine.end_by_agent(strand.waiting, "cancelled")
            self._wake(strand, Delivery(strand.waiting, "cancel", error=KeyboardInterrupt()))

    def _wake(self, strand: _Strand, delivery: Delivery) -> None:
        self._waiting.remove(strand)
        strand.waiting = None
        strand.delivery = delivery
        self._ready.append(strand)


def parallel(*branches: Callable[[], Any]) -> list[Any]:
    """Call functions without arguments side by side; their results in argument order.

    All run to their end; then the first error in argument order, if any, is raised (an interruption before any
    other). Between host calls only one runs at a time: it speeds up waiting, not computing, and needs no locks.
    """
    scope = require("parallel")
    session = scope.session
    if session.loop is not None:
        raise NotSupported(
            "agentloom.sync.parallel() was called in an async agent",
            hint="await agentloom.parallel(...) there",
        )
    for number, branch in enumerate(branches, start=1):
        if not callable(branch):
            raise TypeError(f"parallel() takes functions; argument {number} is {kind_of(branch)}")
    if not branches:
        return []
    prepared: Branches = []
    for branch in branches:
        with entered(scope.started("parallel")):
            prepared.append((contextvars.copy_context(), branch))
    strand = _strand.get()
    if session.baton is not None and strand is not None:
        return _joined(session.baton.fork(strand, prepared))
    baton = session.baton = Baton(session)
    try:
        return _joined(baton.conduct(prepared))
    finally:
        session.baton = None
        session.source.on_arrival = None


def _joined(made: list[_Strand]) -> list[Any]:
    errors = [child.error for child in made if child.error is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, Exception)):
        raise error
    return [child.value for child in made]
