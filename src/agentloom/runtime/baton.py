"""``parallel`` for sync agents: threads of which one runs at a time, handing a baton over at host calls and joins.

While every strand waits for a host call, the next recorded (or, live, the next arriving) outcome decides who goes on.
So the order of everything that the strands do is the order of deliveries, and a replay repeats it.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from agentloom.errors import ControlFlow
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


_strand: contextvars.ContextVar[_Strand | None] = contextvars.ContextVar("agentloom.strand", default=None)


class Baton:
    """The scheduler of one run's strands. Exists while the run is inside its outermost ``parallel``."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ready: deque[_Strand] = deque()
        self._waiting: list[_Strand] = []
        self._arrived = threading.Event()
        session.source.on_arrival = self._arrived.set

    def call(self, spec: CallSpec, scope: Scope, perform: Callable[[Call], object]) -> object:
        """Make a host call from a strand: the baton passes on until its outcome is delivered."""
        strand = _strand.get()
        if strand is None:
            raise RuntimeError(
                f"{spec.type} {spec.name} was called in a thread that parallel() did not start; start it there"
            )
        engine = self._session.engine
        call = engine.begin(spec, scope)
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

    def fork(
        self, strand: _Strand, branches: list[tuple[contextvars.Context, Callable[[], Any]]]
    ) -> list[_Strand]:
        """Run branches as strands below ``strand``, which waits for all of them."""
        made = [_Strand(strand) for _ in branches]
        strand.children = len(made)
        for child, (context, branch) in zip(made, branches, strict=True):
            context.run(_strand.set, child)
            thread = threading.Thread(target=context.run, args=(self._run, child, branch), daemon=True)
            thread.start()
            self._ready.append(child)
        self._pass_on(strand)
        return made

    def _run(self, strand: _Strand, branch: Callable[[], Any]) -> None:
        strand.go.wait()
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
        except BaseException as failure:  # noqa: BLE001 - handed to every strand
            # The run is over: every strand is woken, and its next host call raises what is kept.
            if engine.failure is None and isinstance(failure, ControlFlow):
                engine.failure = failure
            for strand in self._waiting:
                strand.waiting = None
                strand.delivery = Delivery(None, "outcome", error=engine.failure or failure)
                self._ready.append(strand)
            self._waiting.clear()
            return
        woken = delivery.call.sink if delivery.call is not None else None
        if isinstance(woken, _Strand):
            woken.delivery = delivery
            woken.waiting = None
            self._waiting.remove(woken)
            self._ready.append(woken)


def parallel(*branches: Callable[[], Any]) -> list[Any]:
    """Call functions without arguments side by side; their results in argument order.

    All run to their end; then the first error in argument order, if any, is raised. Between host calls only one
    runs at a time: it speeds up waiting, not computing, and needs no locks.
    """
    scope = require("parallel")
    session = scope.session
    if not branches:
        return []
    outermost = session.baton is None
    baton = session.baton if session.baton is not None else Baton(session)
    session.baton = baton
    strand = _strand.get() or _Strand(None)
    prepared: list[tuple[contextvars.Context, Callable[[], Any]]] = []
    for branch in branches:
        with entered(scope.started("parallel")):
            prepared.append((contextvars.copy_context(), branch))
    try:
        made = baton.fork(strand, prepared)
    finally:
        if outermost:
            session.baton = None
            session.source.on_arrival = None
    for child in made:
        if child.error is not None:
            raise child.error
    return [child.value for child in made]
