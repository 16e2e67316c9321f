"""The threads of a run as its scheduler sees them, and who of them holds the baton.

A strand is a thread that is part of a run: the agent's own, a branch of ``parallel``, or one that the run's code
started. Of all strands of a run one runs at a time: the one that holds the baton.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

from agentloom.runtime.parking import Gate

if TYPE_CHECKING:
    from agentloom.runtime.baton import Baton
    from agentloom.runtime.calls import Call
    from agentloom.runtime.engine import Delivery
    from agentloom.runtime.scope import Scope

__all__ = ["STRANDS", "WAITING", "Strand", "holder", "let_others", "polled"]


class Strand:
    """One thread of a run. ``name`` is what messages call it. ``apart``: its host calls are performed in threads of
    their own, so that it can be woken before they end; else it performs them itself.
    """

    __slots__ = (
        "apart", "baton", "before", "call", "daemon", "deadline", "delivery", "done", "error", "free", "gate", "group",
        "ident", "idle", "instead", "key", "late", "name", "unsure", "value",
    )  # fmt: skip

    def __init__(self, baton: Baton, name: str, *, daemon: bool = False, apart: bool = False) -> None:
        self.baton = baton
        self.name = name
        self.daemon = daemon
        self.apart = apart
        self.gate = Gate()
        self.ident = 0
        self.before: Strand | None = None
        """Of the agent's own thread: the strand that it already was, of a run around this one."""
        self.instead: tuple[Scope, Scope] | None = None
        """The scope of the code that started it, and what stands for that here: contexts are copied into threads."""
        self.call: Call | None = None
        """The host call that it waits for."""
        self.key: object = None
        """What it waits for: a lock, a queue, another strand; None: nothing."""
        self.unsure = False
        """Whether what it waits for may come free without anybody saying so: who holds the lock is not known."""
        self.deadline: int | None = None
        self.late = False
        self.delivery: Delivery | None = None
        self.error: BaseException | None = None
        self.value: Any = None
        self.group = False
        """Whether it waits for branches of ``parallel``."""
        self.idle = False
        """A thread of a pool without work: it does not keep the run from ending."""
        self.done = False
        self.free = False
        """Its run is over, or it was let go: an ordinary thread from then on."""


STRANDS: dict[int, Strand] = {}
"""Strands by the identity of their threads, of all runs of the process."""

WAITING: dict[int, list[Strand]] = {}
"""Strands by the identity of what they wait for, in their order. ``Strand.key`` keeps it alive."""


def holder() -> Strand | None:
    """The strand that the running code is, if it holds the baton: not outside runs, not in host work."""
    strand = STRANDS.get(get_ident())
    return strand if strand is not None and strand.baton.owner is strand else None


def let_others() -> None:
    """Let the threads of the run that are ready go on before the running code does."""
    strand = holder()
    if strand is not None:
        strand.baton.turn(strand)


def polled() -> bool:
    """The running code asks for nothing but that others go on (``time.sleep(0)``). False: it is for the system to see
    to that."""
    strand = holder()
    if strand is None or not strand.baton.beside or not strand.baton.session.yields:
        return False
    return strand.baton.poll(strand)
