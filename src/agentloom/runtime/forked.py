"""A process that a run's code forks is not part of the run: in it no run is active, and its code is plain code.

What a run has put in place stays where it is, and passes on to what was there, as it does outside of every run. The
parent's run goes on; that it forked is an effect like another (``effects``). The store's writer sees to itself.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from agentloom.runtime import interrupts, thread_locks
from agentloom.runtime.scope import enter_scope
from agentloom.runtime.strands import STRANDS, WAITING

if TYPE_CHECKING:
    from agentloom.runtime.session import Session

__all__ = ["ends_with_fork"]

_sessions: weakref.WeakSet[Session] = weakref.WeakSet()


def ends_with_fork(session: Session) -> None:
    """From now on ``session`` is over in every process that is forked off this one."""
    _sessions.add(session)


def _after_fork() -> None:
    enter_scope(None)
    for session in list(_sessions):
        session.over = True
        session.adopts = False
        session.baton = None
    _sessions.clear()
    for strand in [*STRANDS.values()]:
        strand.free = True
        strand.baton.over = True
    STRANDS.clear()
    WAITING.clear()
    thread_locks.after_fork()
    interrupts.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
