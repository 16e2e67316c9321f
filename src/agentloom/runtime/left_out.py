"""Code that is left alone on purpose: under ``AGENTLOOM=off``, and where sampling left a request out.

It goes the way that it would go in a run: host functions perform what they are asked for, plainly and for real, what
it would record inside belongs to it, and nothing is held or written. When it is over, what outlives it is on its own,
as what outlives a run.
"""

from __future__ import annotations

import contextvars
import threading
from asyncio import events
from collections.abc import Generator
from contextlib import contextmanager

from agentloom.errors import NotSupported
from agentloom.runtime.contexts import put
from agentloom.runtime.scope import Scope, current, require
from agentloom.runtime.work import under_way

__all__ = [
    "NOT_SAMPLED",
    "OFF",
    "LeftOut",
    "entered_left_out",
    "left_out",
    "left_out_here",
    "refuse_run",
    "taking_part",
]

OFF = "AGENTLOOM=off"
NOT_SAMPLED = "sampling left it out"


class LeftOut:
    """One such stretch of code, and why it is one."""

    __slots__ = ("over", "why")

    def __init__(self, why: str) -> None:
        self.why = why
        self.over = False


_here: contextvars.ContextVar[LeftOut | None] = contextvars.ContextVar("agentloom.left_out", default=None)
_in_sync: dict[LeftOut, int] = {}
"""Those that stand in sync code, with their threads: threads that such code starts are part of it, and know of no
context."""


@contextmanager
def left_out(why: str = NOT_SAMPLED) -> Generator[LeftOut]:
    """A block that is left alone; over at its end. In one that is under way already it is a part of that."""
    found = left_out_here()
    if found is not None:
        with entered_left_out(found):
            yield found
        return
    made = LeftOut(why)
    if events._get_running_loop() is None:  # pyright: ignore[reportPrivateUsage]
        _in_sync[made] = threading.get_ident()
    try:
        with entered_left_out(made):
            yield made
    finally:
        made.over = True
        _in_sync.pop(made, None)


@contextmanager
def entered_left_out(which: LeftOut) -> Generator[None]:
    """The code of the block belongs to ``which``."""
    token = put(_here, which)
    try:
        yield
    finally:
        _here.reset(token)


def left_out_here() -> LeftOut | None:
    """What the running code belongs to, outside of every run; None: to nothing that was left out."""
    found = _here.get()
    if found is not None and not found.over:
        return found
    if not _in_sync or threading.get_ident() == threading.main_thread().ident:
        return None
    mine = threading.get_ident()
    others = [one for one, thread in [*_in_sync.items()] if thread != mine]
    return others[-1] if len(others) == len(_in_sync) and under_way() is None else None


def taking_part(what: str) -> Scope | None:
    """The scope of the running code; None where it is left alone. ``NoActiveRun`` naming ``what`` elsewhere."""
    scope = current()
    if scope is not None:
        return scope
    return None if left_out_here() is not None else require(what)


def refuse_run(what: str) -> None:
    """``NotSupported`` where ``what`` would begin a run of its own in code that is left alone: as in a run."""
    found = left_out_here() if current() is None else None
    if found is not None:
        raise NotSupported(
            f"{what} was called in code that is part of a run when it is recorded (now it is not: {found.why})",
            hint="call the agent itself there, as a child agent of that run",
        )
