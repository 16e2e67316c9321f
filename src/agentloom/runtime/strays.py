"""Threads that a run's code starts and that are not part of it: no way around it either.

Those are threads of libraries, threads that were let go, and all of them under ``guard="off"`` (``threads`` says which
are the run's own). What happens in them has no place in the recorded order. So a tool refuses to be called there, in
both modes, where outside of any run it would just be the function: a replay would really run it.
"""

from __future__ import annotations

import _thread
import contextvars
import threading
from collections.abc import Callable
from threading import get_ident  # before the guard watches who asks for it by its name
from typing import TYPE_CHECKING, Any, cast

from agentloom.errors import NotSupported
from agentloom.runtime.collecting import COLLECTING
from agentloom.runtime.left_out import left_out_here
from agentloom.runtime.scope import current
from agentloom.runtime.unrecorded import refuse_unrecorded
from agentloom.runtime.work import under_way

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["mark_threads", "refuse_stray", "started_by", "started_in_context", "stray"]

Adopt = Callable[[Callable[..., Any]], "tuple[Callable[..., Any], Callable[[], Any]] | None"]
"""Takes what a thread is to do; gives what it does as part of the run and what to call once it was started, or None."""

_session: contextvars.ContextVar[Session | None] = contextvars.ContextVar("agentloom.stray", default=None)
started_in_context = _session.get
"""As ``started_by``, for those who must be quick and look at ``COLLECTING`` themselves."""


def started_by() -> Session | None:
    """The run whose code started this thread, or None, also in finalisers that the garbage collector calls; without the
    checks of ``stray``."""
    if COLLECTING and get_ident() in COLLECTING:
        return None
    return _session.get()


def stray() -> Session | None:
    """The run whose code started this thread, when the code is not itself part of a run; None once that run is over.
    A replay never is."""
    if current() is not None:
        return None
    session = started_by()
    return None if session is None or session.over else session


def refuse_stray(what: str) -> None:
    """Raise ``NotSupported`` where ``what`` is called in a thread of its own that a run started."""
    session = stray()
    if session is not None:
        raise NotSupported(
            f"{what} was called in a thread that the run of {session.agent} started: it has no place in the recorded"
            " order there",
            hint="start it with agentloom.sync.parallel(...), or in async code with asyncio.to_thread or gather",
        )
    if under_way() is None and left_out_here() is None:
        refuse_unrecorded(f"a call of {what}")


def mark_threads(adopt: Adopt) -> None:
    """From now on threads know the run that started them. Done once in a process, before its first run. ``adopt`` says
    of a thread that is started below ``threading`` whether it is part of the run, and what it does then."""
    # Every way to start a thread in Python comes down to one of these. threading keeps them under names of its own.
    for module, name, how in (
        (_thread, "start_new_thread", adopt),
        (_thread, "start_new", adopt),
        (_thread, "start_joinable_thread", None),
        (threading, "_start_new_thread", None),
        (threading, "_start_joinable_thread", None),
    ):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _marking(original, how))


def _marking(start: Callable[..., Any], adopt: Adopt | None) -> Callable[..., Any]:
    def start_marked(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        adopted = None if adopt is None else adopt(function)
        work_under_way = under_way()
        if work_under_way is not None and work_under_way.shares is not None:
            thread = getattr(function, "__self__", None)
            if isinstance(thread, threading.Thread):
                work_under_way.shares.started(thread)
        scope = current()
        session = scope.session if scope is not None else started_by()
        work = function if adopted is None else adopted[0]
        started = start(work if session is None else _within(session, work), *args, **kwargs)
        if adopted is not None:
            adopted[1]()
        return started

    start_marked.__name__ = cast(Any, start).__name__
    return start_marked


def _within(session: Session, function: Callable[..., Any]) -> Callable[..., Any]:
    context = contextvars.Context()
    context.run(_session.set, session)

    def run(*args: Any, **kwargs: Any) -> Any:
        return context.run(function, *args, **kwargs)

    return run
