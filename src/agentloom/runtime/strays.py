"""Threads that a run's own code starts: not part of the run, and no way around it either.

What happens in such a thread has no place in the recorded order. So a tool refuses to be called there, in both modes,
where outside of any run it would just be the function: a replay would really run it. ``asyncio.to_thread``,
``run_in_executor`` and ``parallel`` are not meant; they carry the run along.
"""

from __future__ import annotations

import _thread
import contextvars
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from agentloom.errors import NotSupported
from agentloom.runtime.scope import current

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["mark_threads", "refuse_stray", "started_by", "stray"]

_session: contextvars.ContextVar[Session | None] = contextvars.ContextVar("agentloom.stray", default=None)
started_by = _session.get
"""The run whose code started this thread, or None; without the checks of ``stray``."""
_installed = False


def stray() -> Session | None:
    """The run whose code started this thread, when the code is not itself part of a run; None once that run is over.
    A replay never is."""
    if current() is not None:
        return None
    session = _session.get()
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


def mark_threads() -> None:
    """From now on threads know the run that started them. Done once in a process, before its first run."""
    global _installed
    if _installed:
        return
    _installed = True
    # Every way to start a thread in Python comes down to one of these. threading keeps them under names of its own.
    for module, name in (
        (_thread, "start_new_thread"),
        (_thread, "start_new"),
        (_thread, "start_joinable_thread"),
        (threading, "_start_new_thread"),
        (threading, "_start_joinable_thread"),
    ):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _marking(original))


def _marking(start: Callable[..., Any]) -> Callable[..., Any]:
    def start_marked(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        scope = current()
        session = scope.session if scope is not None else _session.get()
        return start(function if session is None else _within(session, function), *args, **kwargs)

    start_marked.__name__ = cast(Any, start).__name__
    return start_marked


def _within(session: Session, function: Callable[..., Any]) -> Callable[..., Any]:
    context = contextvars.Context()
    context.run(_session.set, session)

    def run(*args: Any, **kwargs: Any) -> Any:
        return context.run(function, *args, **kwargs)

    return run
