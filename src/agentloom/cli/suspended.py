"""What ``run`` and ``resume`` say of a run that is suspended: what it waits for, how to answer, what could lose it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from agentloom.api.answering import waiting
from agentloom.cli.asking import moment, suspended_lines
from agentloom.errors import RunNotFound
from agentloom.store.fate import dies_with

if TYPE_CHECKING:
    from agentloom.cli.render import Screen
    from agentloom.store import Store

__all__ = ["facts_of", "show_suspended"]

_GONE = (
    "it was kept in memory alone, and is gone with its process: nobody can answer it (--store DIR keeps it)"
)


def show_suspended(screen: Screen, store: Store, run: str) -> None:
    """The open questions with their command lines; a warning where the store is gone with its machine."""
    try:
        asks = waiting(store, run)
    except RunNotFound:
        screen.note(("warn", "   beware    "), _GONE)
        return
    now = time.time_ns()
    for spans in suspended_lines(asks, 100, now=now):
        screen.note(*spans)
    due = min((one.due for one in asks if one.due is not None), default=None)
    if due is not None and len(asks) > 1:
        screen.note("   ", ("label", "first due".ljust(10)), moment(due, now))
    if (why := dies_with(store)) is not None:
        screen.note(("warn", "   beware    "), why)


def facts_of(store: Store, run: str) -> dict[str, Any]:
    """The same for ``--json``."""
    try:
        asks = [one.facts() for one in waiting(store, run)]
    except RunNotFound:
        return {"asks": [], "store_dies_with": _GONE}
    return {"asks": asks, "store_dies_with": dies_with(store)}
