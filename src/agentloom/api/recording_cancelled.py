"""Runs that somebody outside cancelled (a timeout around them, a race that they lost), replayed where they stand.

What cancelled such a run is no part of it, and is not in its trace. So its replay is over at once, and is then awaited
until the code around it cancels it, as it did when it was recorded: the timeout fires, the race is decided.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from agentloom.api.trace import Trace
from agentloom.errors import DivergenceError
from agentloom.replay import stock
from agentloom.replay.recording import Recording
from agentloom.replay.report import Finding, Report

__all__ = ["await_cancellation"]


async def await_cancellation(trace: Trace, report: Report) -> None:
    """Wait until the caller is cancelled, where the run was when recorded; else return at once. The cancellation is
    taken as the one that was recorded, and not raised. ``DivergenceError`` where none comes."""
    journal = trace.journal
    cancel = next((entry["seq"] for entry in journal.entries if entry["kind"] == "cancel"), None)
    if cancel is None:
        return
    after = Recording.from_journal(journal).seconds(0, cancel)
    limit = 2 * after + stock.MORE
    try:
        await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=limit)
    except asyncio.CancelledError:
        return
    message = (
        f"When recorded the run was cancelled from outside after {after:.3f} s; nothing has cancelled it here for"
        f" {limit:.1f} s. What cancels it (a timeout, a race, Ctrl-C) is the code around it, and no part of the run."
    )
    finding = Finding("ended early", None, message, reason="recording ends")
    raise DivergenceError(replace(report, verdict="diverged", finding=finding))
