"""Threads that a run's code starts are adopted: they run under the baton, with a place of their own in the run.

Which ones: all but those that are a library's own business. ``whose`` states the rule; ``docs/guard.md`` says it to
people. What is not adopted stays an ordinary thread, outside of the run, and is noted in the trace.
"""

from __future__ import annotations

import contextvars
import functools
import os
import socket
import socketserver
import sys
import threading
from asyncio import events
from asyncio.base_events import BaseEventLoop
from collections.abc import Callable
from functools import partial
from threading import get_ident
from types import CodeType, FrameType, MethodType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, cast

from agentloom.errors import ControlFlow
from agentloom.runtime.baton import Baton
from agentloom.runtime.collecting import is_inner
from agentloom.runtime.places import PACKAGE, in_site
from agentloom.runtime.scope import Scope, current, enter_scope, entered, here
from agentloom.runtime.strands import Strand, holder
from agentloom.runtime.strays import mark_threads

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["adopting", "context_for", "drain", "in_stock_loop", "install_threads", "numbered", "whose"]

Whose = Literal["run", "library", "loop", "ours"]
"""Whose a thread is: the run's; a library's; one started under an event loop that is not the run's; this package's."""

_STDLIB = os.path.dirname(os.__file__) + os.sep
_OURS = os.path.join(PACKAGE, "runtime", "live.py")
"""Where this package starts threads from inside of a run: they perform host calls."""

_real_start, _real_join = threading.Thread.start, threading.Thread.join
_real_is_alive, _real_init = threading.Thread.is_alive, threading.Thread.__init__
_installed = False


def adopting() -> Session | None:
    """The run that adopts what the running code starts, or None: outside a run, in host work, in a thread that has no
    place in the run, while modules are imported, under ``guard="off"``, in traces from before threads were adopted."""
    scope = here()
    if scope is None:
        return None
    session = scope.session
    if not session.adopts or session.over or session.guard.suspended or session.engine.thread != get_ident():
        return None
    return session


def in_stock_loop() -> bool:
    """Whether the running code is under an event loop that is not the run's own: a sync agent that runs one."""
    loop = events._get_running_loop()  # pyright: ignore[reportPrivateUsage]
    return loop is not None and not is_inner(loop)


# -- whose a thread is -------------------------------------------------------------------------------------------------


def _codes(work: object, depth: int = 0) -> list[CodeType]:
    """The code of a callable, and of callables that are bound to it or handed to it."""
    if depth > 4:
        return []
    if isinstance(work, partial):
        parts: list[object] = [work.func, *work.args, *work.keywords.values()]
        return [code for part in parts for code in _codes(part, depth + 1)]
    if isinstance(work, MethodType):
        return _codes(work.__func__, depth + 1)
    code = getattr(work, "__code__", None)
    if isinstance(code, CodeType):
        inner = getattr(work, "__wrapped__", None)  # a tool, or what stands in for a function of Python's
        return (
            _codes(inner, depth + 1) if inner is not None and code.co_filename.startswith(PACKAGE) else [code]
        )
    call = getattr(type(work), "__call__", None)  # noqa: B004
    code = getattr(call, "__code__", None)
    return [code] if isinstance(code, CodeType) and not isinstance(work, type) else []


def _works_of(thread: threading.Thread) -> tuple[list[object], list[object]]:
    """What a thread does, and what it is given for it."""
    given = cast(Any, thread)
    if isinstance(thread, threading.Timer):
        return [thread.function], [*thread.args, *thread.kwargs.values()]
    if type(thread).run is not threading.Thread.run:
        return [type(thread).run], []
    return [getattr(given, "_target", None)], [*given._args, *given._kwargs.values()]


def whose(session: Session, works: list[object], given: list[object], *, daemon: bool) -> Whose:
    """The rule. A thread that runs any of the agent's own code is the run's, and so is one that a library starts for
    its caller. A daemon that runs a library's code alone is that library's: it has a loop of its own, and nobody waits
    for it. So is what runs the standard library's own loops (servers, event loops, feeders of queues)."""
    codes = [code for work in works for code in _codes(work)]
    if any(code.co_filename == _OURS for code in codes):
        return "ours"
    if in_stock_loop():
        return "loop"
    places = session.engine.places
    handed = [code for part in given for code in _codes(part)]
    # This package starts no thread for itself in the agent's code: what it gives one to run is the agent's.
    if any(
        places.name(code) is not None or code.co_filename.startswith(PACKAGE) for code in (*codes, *handed)
    ):
        return "run"
    plain = bool(codes) and all(_is_stdlib(code.co_filename) for code in codes)
    return "library" if daemon or plain else "run"


def _is_stdlib(filename: str) -> bool:
    return filename.startswith(_STDLIB) and not in_site(filename)


def _tell(session: Session, name: str, why: Whose) -> None:
    """Note that a thread stays outside of the run: once for each name."""
    said = f"foreign thread {name}"
    if why != "ours" and said not in session.declared:
        session.declared.add(said)
        session.engine.mark("note", {"foreign_thread": name, "because": why})


# -- runs in place -----------------------------------------------------------------------------------------------------


def carried(works: list[object]) -> Scope | None:
    """The scope that a thread with this work is to carry: that of a run in place, on a loop that is not its own, where
    the work is code of the program. None: it carries none, as a thread of a library has it."""
    scope = current()
    stock = None if scope is None else scope.session.stock
    if scope is None or stock is None or not stock.shared:
        return None
    name = scope.session.engine.places.name
    return scope if any(name(code) is not None for work in works for code in _codes(work)) else None


def _start_carrying(thread: threading.Thread, scope: Scope) -> None:
    run, put_back = _what_it_runs(thread)

    def body() -> None:
        put_back()
        with entered(scope):
            run()

    cast(Any, thread).run = body
    try:
        start_aside(thread)
    except RuntimeError:  # the system has no more threads
        put_back()
        raise


def _what_it_runs(thread: threading.Thread) -> tuple[Callable[[], None], Callable[[], None]]:
    """The ``run`` of a thread, and what puts it back where another one was put in its place."""
    run, own = thread.run, thread.__dict__.get("run")

    def put_back() -> None:
        if own is None:
            thread.__dict__.pop("run", None)
        else:
            cast(Any, thread).run = own

    return run, put_back


# -- starting, joining -------------------------------------------------------------------------------------------------


def context_for(scope: Scope) -> contextvars.Context:
    """The context of a thread of the run: empty, as a thread's is, but for what makes it part of the run."""
    made = contextvars.Context()
    for variable, value in contextvars.copy_context().items():
        if variable.name.startswith("agentloom."):
            made.run(variable.set, value)
    made.run(enter_scope, scope)
    return made


def _adopted(session: Session, name: str, *, daemon: bool) -> tuple[Strand, contextvars.Context]:
    """A strand for a thread that the running code starts, and the context that its work is to run in."""
    scope = cast(Scope, current())
    strand = Strand(Baton.of(session), name, daemon=daemon)
    below = scope.started("thread")
    strand.instead = (scope, below)
    return strand, context_for(below)


def _init(self: threading.Thread, *args: Any, daemon: bool | None = None, **kwargs: Any) -> None:
    """A thread takes after the thread that makes it. In a run that is not the thread which the run happens to be in."""
    if daemon is None and adopting() is not None:
        strand = holder()
        daemon = strand is not None and strand.daemon
    _real_init(self, *args, daemon=daemon, **kwargs)


def _start(self: threading.Thread) -> None:
    session = adopting()
    if not hasattr(self, "_started") or self.ident is not None:
        start_aside(self)
        return
    if session is None:
        scope = None if here() is None else carried([work for works in _works_of(self) for work in works])
        if scope is None:
            start_aside(self)
        else:
            _start_carrying(self, scope)
        return
    works, given = _works_of(self)
    kind: Whose = whose(session, works, given, daemon=self.daemon)
    if kind != "run":
        _tell(session, self.name, kind)
        start_aside(self)
        return
    strand, context = _adopted(session, self.name, daemon=self.daemon)
    baton, (run, put_back) = strand.baton, _what_it_runs(self)
    cast(Any, self).agentloom_strand = strand

    def body() -> None:
        put_back()
        baton.life(strand, lambda: context.run(_whole, self, run))

    cast(Any, self).run = body
    try:
        baton.launch(strand, self, _real_start)
    except RuntimeError:  # the system has no more threads
        put_back()
        raise


def start_aside(thread: threading.Thread) -> None:
    """Start an ordinary thread; that it has begun is waited for in place."""
    strand = holder()
    if strand is None:
        _real_start(thread)
        return
    with strand.baton.aside():
        _real_start(thread)


def _whole(thread: threading.Thread, run: Callable[[], None]) -> None:
    """What a thread runs, to what Python does with its errors."""
    try:
        run()
    except ControlFlow:
        return  # the verdict is kept by the engine, and no matter of this thread
    except BaseException as error:  # noqa: BLE001 - what the interpreter does at the end of a thread
        error.__traceback__ = _as_of_python(error.__traceback__, sys._getframe())  # pyright: ignore[reportPrivateUsage]
        cast(Any, thread)._invoke_excepthook(thread)


def _as_of_python(traceback: TracebackType | None, frame: FrameType | None) -> TracebackType | None:
    """A traceback that begins in ``frame``, which is below Python's own that runs a thread: from that one on."""
    inner = None if traceback is None else traceback.tb_next
    while frame is not None and frame.f_code is not _BOOTSTRAP:
        frame = frame.f_back
    return inner if frame is None else TracebackType(inner, frame, frame.f_lasti, frame.f_lineno)


_BOOTSTRAP = cast(Any, threading.Thread)._bootstrap_inner.__code__


def _join(self: threading.Thread, timeout: float | None = None) -> None:
    mine = holder()
    if mine is None:
        _real_join(self, timeout)
        return
    strand: Strand | None = self.__dict__.get("agentloom_strand")
    baton = mine.baton
    if strand is None or strand.baton is not baton or strand is mine or strand.free:
        with baton.aside():
            _real_join(self, timeout)
        return
    if timeout is not None and timeout <= 0 and not strand.done:
        return
    deadline = None if timeout is None else baton.deadline(max(timeout, 0.0))
    while not strand.done:
        if not baton.block(mine, strand, deadline):
            return
        if mine.free:
            _real_join(self, timeout)
            return
    with baton.aside():
        _real_join(self)  # its work is done; the system's thread ends now


def _is_alive(self: threading.Thread) -> bool:
    strand: Strand | None = self.__dict__.get("agentloom_strand")
    if strand is None or strand.free:
        return _real_is_alive(self)
    mine = holder()
    return not strand.done if mine is not None and mine.baton is strand.baton else _real_is_alive(self)


def drain() -> None:
    """At the end of a script's main code: the threads of the run that are no daemons come to their end."""
    scope = here()
    if scope is not None and not scope.session.over and scope.session.baton is not None:
        scope.session.baton.drain()


# -- threads that are let go -------------------------------------------------------------------------------------------


def _letting_go(original: Callable[..., Any]) -> Callable[..., Any]:
    """A function that waits for the world, in a loop: a thread of the run that calls it is let go."""

    @functools.wraps(original)
    def waits(self: Any, *args: Any, **kwargs: Any) -> Any:
        strand = holder()
        if strand is not None and strand is not strand.baton.main:
            session = strand.baton.session
            _tell(session, strand.name, "loop")
            enter_scope(None)
            strand.baton.let_go(strand)
        return original(self, *args, **kwargs)

    return waits


# -- in place ----------------------------------------------------------------------------------------------------------


def numbered(kind: str, original: Callable[[], int], first: int) -> Callable[[], int]:
    """A counter of the process that inside a run counts for the run."""

    def count() -> int:
        session = adopting()
        if session is None:
            return original()
        number = session.counts.get(kind, first)
        session.counts[kind] = number + 1
        return number

    return count


def install_threads() -> None:
    """Put in place what adopts threads and pools. Done once in a process, before its first run."""
    global _installed
    if _installed:
        return
    _installed = True
    mark_threads(_adopt_raw)
    thread: Any = threading.Thread
    thread.__init__ = functools.wraps(_real_init)(_init)
    thread.start = functools.wraps(_real_start)(_start)
    thread.join = functools.wraps(_real_join)(_join)
    thread.is_alive = functools.wraps(_real_is_alive)(_is_alive)
    module: Any = threading
    module._counter = numbered("threads", module._counter, 1)
    loop: Any = BaseEventLoop
    loop.run_forever = _letting_go(loop.run_forever)
    accepting: Any = socket.socket
    accepting.accept = _letting_go(accepting.accept)
    server: Any = socketserver.BaseServer
    server.serve_forever = _letting_go(server.serve_forever)
    from agentloom.runtime.thread_pools import install_pools

    install_pools()


def _adopt_raw(function: Callable[..., Any]) -> tuple[Callable[..., Any], Callable[[], Any]] | None:
    """For ``_thread.start_new_thread``: what the thread is to run instead, and what to call once it was started; None
    where it is not the run's."""
    session = adopting()
    if session is None or not any(session.engine.places.name(code) is not None for code in _codes(function)):
        return None
    strand, context = _adopted(session, "a thread of _thread", daemon=True)
    baton = strand.baton

    def run(*given: Any, **named: Any) -> None:
        baton.life(strand, partial(context.run, function, *given, **named))
        error = strand.error
        if error is not None and not isinstance(error, ControlFlow):
            raise error

    return run, partial(baton.enrol, strand)
